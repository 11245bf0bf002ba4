"""Three stages, each of which can be told to misbehave: {"id": 1, "preprocess": "crash"}.

With "size" an array of so many numbers goes from stage to stage; every answer names the processes it went through.
"""

from __future__ import annotations

import os
import signal
import time

import numpy as np


class Model:
    factor = 0

    def load(self):
        self.factor = 2

    def preprocess(self, item):
        act(item, "preprocess")
        array = np.full(item.get("size", 8), item["id"], np.float32)
        return {"item": item, "array": array, "pids": [os.getpid()]}

    def predict_batch(self, values):
        for value in values:
            act(value["item"], "inference")
        for value in values:
            # In place, as scripts do: whoever runs the item again must not see it.
            value["array"] *= self.factor
            value["pids"].append(os.getpid())
        if any(value["item"].get("inference") == "late crash" for value in values):
            os.kill(os.getpid(), signal.SIGKILL)
        return values

    def postprocess(self, value):
        act(value["item"], "postprocess")
        array = value["array"]
        same = bool((array == array[0]).all())
        if value["item"].get("brief"):
            return {"id": value["item"]["id"], "twice": float(array[0]) if same else None}
        return {
            "id": value["item"]["id"],
            "twice": float(array[0]) if same else None,
            "size": len(array),
            "pids": [*value["pids"], os.getpid()],
            "loaded_here": self.factor == 2,
        }


def act(item, stage):
    what = item.get(stage, "")
    if what == "raise":
        raise ValueError(f"item {item['id']} is poison in {stage}")
    if what == "refuse":
        error = ValueError(f"{stage} refuses")
        error.status = 422
        raise error
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        time.sleep(600)
    if what == "wait":
        print(f"item {item['id']} waits in {stage} as {os.getpid()}", flush=True)
        while not os.path.exists(item["gate"]):
            time.sleep(0.005)
    if what == "sleep":
        time.sleep(item["seconds"])
