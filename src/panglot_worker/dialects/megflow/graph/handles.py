"""What a plugin finds in `self.<port>`."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Tuple

from panglot_worker.dialects.megflow.graph.channels import CLOSED, LATE, Channel, Target
from panglot_worker.dialects.megflow.graph.envelope import Contents, Envelope, unwrap, wrap


class Receiver:
    """An input of a node. `closed` once its end was seen; `ends` are users of a shared node whose end was seen."""

    __slots__ = ("channel", "closed", "count", "ends", "port")

    def __init__(self, channel: Channel, port: str) -> None:
        self.channel = channel
        self.port = port
        self.closed = False
        self.count = 0
        self.ends: Deque[int] = deque()
        channel.readers.add(self)

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
        envelopes: List[Envelope] = []
        while len(envelopes) < n:
            contents = self.channel.take(self, deadline)
            if contents.__class__ is Contents:
                self.count += 1
                envelopes.append(wrap(contents))
            elif contents is LATE:
                return envelopes, False
            else:
                self._note(contents)
                return envelopes, True
        return envelopes, False

    def _note(self, mark: Any) -> None:
        if mark is CLOSED:
            self.closed = True
        else:
            self.ends.append(mark.user)

    def leave(self) -> None:
        """Read no more: the node has ended."""
        self.channel.drop_reader(self)


class Unconnected:
    """An input that nothing is connected to: it has ended before it began."""

    closed = True

    def recv(self) -> None:
        return None

    def batch_recv(self, n: int, ms: int) -> Tuple[List[Envelope], bool]:
        return [], True


class Sender:
    """An output of a node."""

    __slots__ = ("_open", "count", "port", "put", "target")

    def __init__(self, target: Target, port: str) -> None:
        self.target = target
        self.port = port
        self.count = 0
        # Looked up once, not for each envelope.
        self.put: Callable[[Contents], None] = target.put
        self._open = True
        target.add_sender(self)

    def send(self, envelope: Envelope) -> None:
        """Send an envelope, waiting while the channel is full. It belongs to its receiver afterwards."""
        self.count += 1
        self.put(unwrap(envelope))

    def end(self, user: int) -> None:
        """Note that nothing of a user of a shared node comes any more."""
        if self._open:
            self.target.end(user, self)

    def close(self) -> None:
        if self._open:
            self._open = False
            self.target.drop_sender(self)
