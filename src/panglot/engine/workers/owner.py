"""What a worker expects of the pool it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.engine.workers.worker import Worker


class WorkerOwner(Protocol):
    """Who is told what a worker says: its pool."""

    title: str
    """What its workers are called in the log."""
    max_reply: int
    """The most bytes of one reply."""
    large: int
    """A frame of replies with more bytes may hold one for which there should have been shared memory."""

    def on_ready(self, worker: Worker, ready: dict[str, Any]) -> None: ...

    def on_replies(self, worker: Worker, replies: list[wire.Reply]) -> None: ...

    def on_large(self, replies: list[wire.Reply]) -> None: ...

    def on_event(self, worker: Worker, event: dict[str, Any]) -> None: ...

    def on_free(self, worker: Worker, items: Iterable[int]) -> None: ...

    def on_metrics(self, deltas: dict[str, float]) -> None: ...

    def on_death(self, worker: Worker) -> None: ...

    def schedule_pump(self) -> None: ...
