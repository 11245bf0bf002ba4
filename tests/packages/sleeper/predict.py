"""Loads slowly where SLOW_LOAD says so."""

import os
import time

time.sleep(float(os.environ.get("SLOW_LOAD", "0")))


def predict(number: int, sleep: float = 0.0) -> dict:
    """Double a number."""
    time.sleep(sleep)
    return {"doubled": 2 * number, "pid": os.getpid()}
