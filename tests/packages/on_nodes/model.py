"""Does what it is told, and says where it was."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

WORDS = Path("words.txt").read_text().strip()
print("loaded", WORDS)


def predict(value):
    do = value.get("do", "echo")
    if do == "echo":
        time.sleep(value.get("sleep", 0))
        return {"id": value.get("id"), "text": value.get("text", ""), "pid": os.getpid(), "version": 1}
    if do == "where":
        return {
            "pid": os.getpid(),
            "folder": os.path.basename(os.getcwd()),
            "path": os.getcwd(),
            "words": WORDS,
            "node": os.environ.get("TEST_RAY_NODE"),
            "environment": sorted(os.environ),
            "files": sorted(os.listdir()),
        }
    if do == "print":
        print(value["text"])
        return None
    if do == "kill":
        os.kill(os.getpid(), getattr(signal, value["signal"]))
    if do == "child":
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True).pid
    raise ValueError("it does not know how to " + do)
