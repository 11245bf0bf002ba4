"""Works for half a millisecond on each request, and answers it."""

from __future__ import annotations

import time
from typing import Any


def predict(item: Any) -> Any:
    end = time.perf_counter() + 0.0005
    while time.perf_counter() < end:
        pass
    return item
