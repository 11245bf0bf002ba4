"""What a plugin finds in `self.<port>`."""

from __future__ import annotations

import time
from typing import Any, Callable, List, Optional, Tuple

from panglot_worker.dialects.megflow.channels import CLOSED, FLUSHED, LATE, Channel, Target
from panglot_worker.dialects.megflow.envelope import Contents, Envelope, unwrap, wrap


class Receiver:
    """An input. `closed` once the end was seen; `flushes` counts users of a shared node that have gone."""

    __slots__ = ("channel", "closed", "count", "flushes", "port")

    def __init__(self, channel: Channel, port: str) -> None:
        self.channel = channel
        self.port = port
        self.closed = False
        self.count = 0
        self.flushes = 0
        channel.readers += 1

    def recv(self) -> Optional[Envelope]:
        """The next envelope; None at the end, or when a user of a shared node has gone."""
        contents = self.channel.take(self)
        if contents.__class__ is Contents:
            self.count += 1
            return wrap(contents)
        self._note(contents)
        return None

    def batch_recv(self, n: int, ms: int) -> Tuple[List[Envelope], bool]:
        """Up to n envelopes, as many as come within `ms` milliseconds of the call; True when the end was seen."""
        deadline = time.monotonic() + ms / 1000
        found: List[Envelope] = []
        while len(found) < n:
            contents = self.channel.take(self, deadline)
            if contents.__class__ is Contents:
                self.count += 1
                found.append(wrap(contents))
            elif contents is LATE:
                return found, False
            else:
                self._note(contents)
                return found, True
        return found, False

    def _note(self, mark: Any) -> None:
        if mark is CLOSED:
            self.closed = True
        elif mark is FLUSHED:
            self.flushes += 1

    def leave(self) -> None:
        """The node has ended."""
        self.channel.drop_reader()


class Unconnected:
    """An input that nothing is connected to: it has ended before it began."""

    closed = True
    flushes = 0

    def recv(self) -> None:
        return None

    def batch_recv(self, n: int, ms: int) -> Tuple[List[Envelope], bool]:
        return [], True


class Sender:
    """An output."""

    __slots__ = ("_open", "count", "port", "put", "target")

    def __init__(self, target: Target, port: str) -> None:
        self.target = target
        self.port = port
        self.count = 0
        self.put: Callable[[Contents], None] = target.put
        self._open = True
        target.add_sender()

    def send(self, envelope: Envelope) -> None:
        """Waits while the channel is full. The envelope belongs to its receiver afterwards."""
        self.count += 1
        self.put(unwrap(envelope))

    def flush(self) -> None:
        if self._open:
            self.target.flush()

    def close(self) -> None:
        if self._open:
            self._open = False
            self.target.drop_sender()
