"""How many steps the interpreter takes for something: a measure of work that neighbours do not change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """The bytecode instructions of all Python functions that `work` calls. What C functions do counts as one each."""
    steps = 0

    def trace(frame: FrameType, event: str, _about: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps
