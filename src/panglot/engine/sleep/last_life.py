"""What is remembered of a model that was loaded: enough to show its description, and to wake it, after a restart."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from panglot_worker.line import wire

FORMAT = 1
"""The form of the stored text. Another form counts as nothing stored."""


@dataclass(frozen=True)
class LastLife:
    """A model as it was when it was last awake."""

    ready: dict[str, Any]
    """What its worker said when it was ready."""
    workers: tuple[int, ...]
    """How many workers each of its pools begins with."""
    seconds: float
    """How long it took to load."""
    memory: int | None = None
    gpu_memory: int | None = None
    """The most memory, and GPU memory, that it was seen to use; None: nobody has looked."""

    def text(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)})


def read(text: str) -> LastLife | None:
    """The life that a stored text describes; None where the text is of another version, or damaged."""
    try:
        stored = json.loads(text)
        if stored["format"] != FORMAT:
            return None
        # Checked as the frame of a worker is: what reads a description relies on these types.
        ready = wire.control(wire.READY, json.dumps(stored["ready"]).encode())
        workers = tuple(int(count) for count in stored["workers"])
        used = [None if stored[name] is None else int(stored[name]) for name in ("memory", "gpu_memory")]
        life = LastLife(ready, workers, float(stored["seconds"]), *used)
    except (ValueError, TypeError, LookupError, RecursionError, wire.WireError):
        return None
    sound = all(0 < count <= 1024 for count in workers) and all((count or 0) >= 0 for count in used)
    return life if sound and workers and 0 <= life.seconds < math.inf else None
