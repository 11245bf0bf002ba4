"""Top-level nodes: one set of instances for the whole process, used by many graphs at once."""

from __future__ import annotations

import threading
from typing import Any, Dict, List, Optional, Tuple

from panglot_worker.dialects.megflow.channels import Target
from panglot_worker.dialects.megflow.envelope import Contents, EnvelopeError

Key = Tuple[str, Optional[int]]
"""A port and its tag."""


class Hub:
    """The entrances and exits of one shared node.

    Every graph instance that uses it has a number. Envelopes are stamped with it on their way in and routed by it on
    their way out. When all of a user's inputs have closed, a mark passes through the node; where it comes out, that
    user's side is closed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: Dict[Key, Target] = {}
        self.routers: Dict[Key, Router] = {}
        self._lock = threading.Lock()
        self._users = 0
        self._open: Dict[int, int] = {}
        """How many senders of a user are left."""
        self._left: List[int] = []
        """Users that have gone, in the order of their marks."""

    def join(self) -> int:
        with self._lock:
            self._users += 1
            return self._users

    def entrance(self, user: int, key: Key) -> "Entrance":
        return Entrance(self, user, self.inputs[key])

    def connect(self, user: int, key: Key, target: Target) -> None:
        """What comes out at this port for this user goes to the target."""
        target.add_sender()
        self.routers[key].targets[user] = target

    def count(self, user: int, change: int) -> None:
        with self._lock:
            self._open[user] = self._open.get(user, 0) + change
            if self._open[user] > 0:
                return
            del self._open[user]
            self._left.append(user)
            for target in self.inputs.values():
                target.mark()

    def left(self, number: int) -> int:
        with self._lock:
            return self._left[number]

    def close(self) -> None:
        """No user will come any more: the node's own inputs end."""
        for target in self.inputs.values():
            target.drop_sender()


class Entrance(Target):
    """A user's way in."""

    def __init__(self, hub: Hub, user: int, target: Target) -> None:
        self._hub = hub
        self._user = user
        self._target = target

    def put(self, contents: Contents) -> None:
        contents.transfer_addr = self._user
        self._target.put(contents)

    def add_sender(self) -> None:
        self._hub.count(self._user, 1)

    def drop_sender(self) -> None:
        self._hub.count(self._user, -1)


class Router(Target):
    """One output of a shared node: back to whoever sent the envelope."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.targets: Dict[int, Target] = {}
        self._senders = 0
        self._flushes = 0
        self._lock = threading.Lock()

    def put(self, contents: Contents) -> None:
        user = contents.transfer_addr
        target: Any = self.targets.get(user) if user is not None else None
        if target is not None:
            target.put(contents)
        elif user is None:
            raise EnvelopeError(
                "the shared node '%s' sent a new envelope, which nobody waits for: send the one received, or "
                "envelope.repack(message)" % self._hub.name
            )

    def add_sender(self) -> None:
        with self._lock:
            self._senders += 1

    def drop_sender(self) -> None:
        with self._lock:
            self._senders -= 1
            ended = self._senders == 0
        if ended:
            for user in list(self.targets):
                self._release(user)

    def flush(self) -> None:
        with self._lock:
            self._flushes += 1
            if self._flushes % max(1, self._senders):
                return
            number = self._flushes // max(1, self._senders) - 1
        self._release(self._hub.left(number))

    def _release(self, user: int) -> None:
        target = self.targets.pop(user, None)
        if target is not None:
            target.drop_sender()
