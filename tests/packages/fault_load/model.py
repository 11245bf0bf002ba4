"""Loads slowly, or not at all, as long as files named in the environment say so."""

from __future__ import annotations

import os
import pathlib
import time

if pathlib.Path(os.environ.get("FAULT_DIES", "/nonexistent")).exists():
    os._exit(9)


class Model:
    def load(self):
        gate = os.environ.get("FAULT_GATE")
        while gate and not pathlib.Path(gate).exists():
            time.sleep(0.01)

    def predict(self, item):
        if isinstance(item, dict):
            print("predict waits", flush=True)
            while not pathlib.Path(item["gate"]).exists():
                time.sleep(0.01)
        return item
