"""Sleeps for ten milliseconds on each request, as for a GPU, and says which process answers."""

from __future__ import annotations

import os
import time
from typing import Any


def predict(item: Any) -> int:
    time.sleep(0.01)
    return os.getpid()
