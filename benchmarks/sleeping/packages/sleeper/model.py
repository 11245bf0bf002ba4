"""Sleeps in each call, as a script does that waits for a GPU: SLEEP_MS long. With TOUCH=1 it also reads every byte."""

from __future__ import annotations

import os
import time
import zlib
from typing import Any

SECONDS = float(os.environ.get("SLEEP_MS", "10")) / 1000
TOUCH = os.environ.get("TOUCH") == "1"


class Model:
    def predict_batch(self, items: list[Any]) -> list[int]:
        time.sleep(SECONDS)
        return [zlib.adler32(item.view) if TOUCH else len(item) for item in items]
