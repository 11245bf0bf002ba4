"""One request as the engine sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from franca_worker import wire

QUEUED, RUNNING, DONE = 0, 1, 2


class Fault(NamedTuple):
    """An answer the engine gives in the script's place."""

    status: int
    code: str
    message: str
    retry_after: int = 0


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
        "parts",
        "pieces",
        "queued_us",
        "request_id",
        "size",
        "state",
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
        self.parts = 0
        self.worker = 0

    def reply(self, reply: wire.Reply) -> None:
        raise NotImplementedError

    def fail(self, fault: Fault) -> None:
        raise NotImplementedError
