"""Says which process answers, and does what an item asks for before."""

from __future__ import annotations

import os
import time
from pathlib import Path


def predict(item):
    if "seen" in item:
        with open(item["seen"], "a") as file:
            file.write(f"{item['id']}\n")
    if "parts" in item:
        return parts(item)
    if "gate" in item:
        Path(item["gate"] + ".begun").write_text(str(os.getpid()))
        while not Path(item["gate"]).exists():
            time.sleep(0.005)
    if "death" in item and not Path(item["death"]).exists():
        Path(item["death"]).touch()
        os.kill(os.getpid(), 9)
    if item.get("crash"):
        os.abort()
    if item.get("fail"):
        raise ValueError("as the item wants it")
    time.sleep(item.get("sleep", 0))
    return {"pid": os.getpid(), "size": len(item.get("data", "")), "text": "y" * item.get("answer", 0)}


def parts(item):
    for number in range(item["parts"]):
        yield {"pid": os.getpid(), "part": number, "text": "x" * item.get("size", 0)}
        time.sleep(item.get("pause", 0))
