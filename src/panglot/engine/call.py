"""One request as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from panglot_worker import wire

QUEUED, RUNNING, DONE = 0, 1, 2


class Fault(NamedTuple):
    """An answer the engine gives in the script's place."""

    status: int
    code: str
    message: str
    retry_after: int = 0


class Step(NamedTuple):
    """What a call spent in one pool of a row."""

    pool: str
    queued_us: int
    run_us: int
    times: tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Outcome:
    """A script's failure on one item, as its worker told it."""

    code: str
    message: str
    traceback: str


class Call:
    """A request on its way. Whoever submits it subclasses this and is told the answer by `reply` or `fail`.

    Exactly one final `reply` (without the MORE flag) or one `fail` arrives, unless the call was cancelled first.
    """

    __slots__ = (
        "alone",
        "arrived",
        "deadline",
        "dispatched",
        "head",
        "id",
        "killers",
        "kind",
        "length",
        "parts",
        "pieces",
        "place",
        "queued_us",
        "request_id",
        "retried",
        "size",
        "slot",
        "state",
        "trail",
        "worker",
    )

    def __init__(self) -> None:
        self.id = 0
        self.request_id = b""
        self.head = b""
        self.pieces: Sequence[wire.Buffer] = ()
        self.size = 0
        self.arrived = 0.0
        self.deadline = 0.0
        self.dispatched = 0.0
        self.queued_us = 0
        self.state = QUEUED
        self.alone = False
        self.killers = 0
        self.kind = b""
        self.length = 0
        """What it was, and how long its body, once that was left in the first pool of a row. See `engine/poison.py`."""
        self.retried = 0
        self.parts = 0
        self.worker = 0
        self.place = 0
        """Which pool of the row it is in."""
        self.slot = 0
        """The shared memory its input lies in, while it waits in the queue of a later pool."""
        self.trail: list[Step] = []
        """The pools it has left, where the package is a row of several."""

    def grow(self, size: int) -> bool:
        """So many bytes are attached to the body; False when they may not be."""
        self.size += size
        return True

    def become(self, body: wire.Buffer) -> None:
        """What a pool made of the body takes its place, for the next pool of the row."""
        self.pieces, self.size = (body,), len(body)

    def reply(self, reply: wire.Reply) -> None:
        raise NotImplementedError

    def fail(self, fault: Fault) -> None:
        raise NotImplementedError
