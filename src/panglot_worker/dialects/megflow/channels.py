"""Bounded channels between nodes: closing when the last sender has gone, and flush marks for shared nodes."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Set

from panglot_worker.dialects.megflow.envelope import Contents


class _Mark:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


CLOSED: Any = _Mark("closed")
FLUSHED: Any = _Mark("flushed")
LATE: Any = _Mark("late")


class Flush:
    """A mark in a channel that every reader sees once, and nothing overtakes."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen: Set[Any] = set()


class Target:
    """Where a sender's contents go. Everything that is counted here is counted in handles, not in nodes."""

    def put(self, contents: Contents) -> None:
        raise NotImplementedError

    def add_sender(self) -> None:
        """One more handle may put."""

    def drop_sender(self) -> None:
        """One handle has gone; after the last one the receivers see the end."""

    def flush(self) -> None:
        """One handle has seen a user of a shared node go."""

    def mark(self) -> None:
        """Such a user goes here and now, whoever may still send."""


class Channel(Target):
    """A queue of at most `cap` envelopes. `put` waits while it is full, `take` while it is empty."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.items: Deque[Any] = deque()
        self.senders = 0
        self.readers = 0
        self.ended = False
        """Nobody reads any more: what is put is dropped."""
        self._flushes = 0
        lock = threading.Lock()
        self._lock = lock
        self._filled = threading.Condition(lock)
        self._emptied = threading.Condition(lock)
        self._readers_waiting = 0
        self._senders_waiting = 0

    def __len__(self) -> int:
        return len(self.items)

    def put(self, contents: Contents) -> None:
        with self._lock:
            items = self.items
            while len(items) >= self.cap and not self.ended:
                self._senders_waiting += 1
                self._emptied.wait()
                self._senders_waiting -= 1
            if self.ended:
                return
            items.append(contents)
            if self._readers_waiting:
                self._filled.notify()

    def take(self, reader: Any, deadline: Optional[float] = None) -> Any:
        """The next contents for this reader; FLUSHED, CLOSED, or LATE when the deadline passes first."""
        with self._lock:
            items = self.items
            while True:
                if items:
                    head = items[0]
                    if head.__class__ is Contents:
                        items.popleft()
                        if self._senders_waiting:
                            self._emptied.notify()
                        return head
                    if reader not in head.seen:
                        self._see(head, reader)
                        return FLUSHED
                elif not self.senders:
                    return CLOSED
                timeout = None
                if deadline is not None:
                    timeout = deadline - time.monotonic()
                    if timeout <= 0:
                        return LATE
                self._readers_waiting += 1
                self._filled.wait(timeout)
                self._readers_waiting -= 1

    def _see(self, mark: Flush, reader: Any) -> None:
        mark.seen.add(reader)
        if len(mark.seen) >= self.readers:
            self.items.popleft()
            self._filled.notify_all()
            self._emptied.notify()

    def add_sender(self) -> None:
        with self._lock:
            self.senders += 1

    def drop_sender(self) -> None:
        with self._lock:
            self.senders -= 1
            if self.senders <= 0:
                self._filled.notify_all()

    def flush(self) -> None:
        with self._lock:
            self._flushes += 1
            if self._flushes % max(1, self.senders) == 0:
                self.items.append(Flush())
                self._filled.notify_all()

    def mark(self) -> None:
        with self._lock:
            self.items.append(Flush())
            self._filled.notify_all()

    def end(self) -> None:
        """The last reader has gone: drop what is left, and let senders go on."""
        with self._lock:
            self.ended = True
            dropped = list(self.items)
            self.items.clear()
            self._emptied.notify_all()
        del dropped

    def drop_reader(self) -> None:
        with self._lock:
            self.readers -= 1
            last = self.readers <= 0
        if last:
            self.end()


class Discard(Target):
    """An output that is connected to nothing."""

    def put(self, contents: Contents) -> None:
        pass


class Fan(Target):
    """Gives every envelope to all of several targets. The message is one object for all of them."""

    def __init__(self, targets: List[Target]) -> None:
        self.targets = targets

    def put(self, contents: Contents) -> None:
        for target in self.targets[1:]:
            target.put(contents.copy(contents.msg))
        self.targets[0].put(contents)

    def add_sender(self) -> None:
        for target in self.targets:
            target.add_sender()

    def drop_sender(self) -> None:
        for target in self.targets:
            target.drop_sender()

    def flush(self) -> None:
        for target in self.targets:
            target.flush()

    def mark(self) -> None:
        for target in self.targets:
            target.mark()


class Sink(Target):
    """Hands contents to a function in the sender's own thread."""

    def __init__(self, receive: Callable[[Contents], None], ended: Optional[Callable[[], None]] = None) -> None:
        self.receive = receive
        self.ended = ended
        self.senders = 0
        self._lock = threading.Lock()

    def put(self, contents: Contents) -> None:
        self.receive(contents)

    def add_sender(self) -> None:
        with self._lock:
            self.senders += 1

    def drop_sender(self) -> None:
        with self._lock:
            self.senders -= 1
            last = self.senders == 0
        if last and self.ended is not None:
            self.ended()


def fan(targets: List[Target]) -> Target:
    if not targets:
        return Discard()
    return targets[0] if len(targets) == 1 else Fan(targets)
