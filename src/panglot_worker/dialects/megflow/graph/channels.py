"""Bounded channels between nodes, and the two ends that readers see.

A channel has two kinds of end. Shared nodes rely on these rules:

- The end of the channel (CLOSED) is no message. Every reader sees it when the last sender has gone and nothing is left
  to read, and sees it again whenever it reads on.
- The end of one user of a shared node (UserEnd) is a message, since the node and its channels go on for other users. It
  follows the last envelope of its user, once all senders of such envelopes have passed it on (EndTally). It overtakes
  nothing, no envelope of its user comes after it, and the channel drops it when every reader has seen it.

A channel without readers drops its input, so that no sender waits for ever.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Set

from panglot_worker.dialects.megflow.graph.envelope import Contents


class _Mark:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


CLOSED: Any = _Mark("closed")
LATE: Any = _Mark("late")


class UserEnd:
    """The end of one user of a shared node, as a message in a channel. Every reader sees it once."""

    __slots__ = ("seen", "user")

    def __init__(self, user: int) -> None:
        self.user = user
        self.seen: Set[Any] = set()


class EndTally:
    """Notes, for one channel, router or hub, which of its members have passed on the end of which user.

    The end of a user is whole, and goes on, when all members have passed it on. Members are the senders
    of a channel or router, or the threads of a shared node. Not thread-safe: its owner guards it with a lock.
    """

    def __init__(self) -> None:
        self.members: Set[Any] = set()
        self.silent: Set[Any] = set()
        """Members from which no end is awaited: they send for no user, or in a circle that leads back here."""
        self._passed: Dict[int, Set[Any]] = {}

    def add(self, member: Any) -> None:
        """Count one more member. Ends that are on their way already are not awaited from it."""
        self.members.add(member)
        # Else an end that is on its way would wait for ever for a member that never saw it.
        for passed in self._passed.values():
            passed.add(member)

    def drop(self, member: Any) -> List[int]:
        """Count one member less. Returns the users whose end is whole by that."""
        self.members.discard(member)
        self.silent.discard(member)
        return self._whole()

    def expect(self, user: int) -> List[int]:
        """Note that the end of a user is on its way. Returns the users whose end is whole by that."""
        self._passed.setdefault(user, set())
        return self._whole()

    def passed(self, user: int, member: Any) -> List[int]:
        """Note that a member has passed on the end of a user. Returns the users whose end is whole by that."""
        if member in self.silent:
            return []
        self._passed.setdefault(user, set()).add(member)
        return self._whole()

    def _whole(self) -> List[int]:
        awaited = self.members - self.silent
        whole = [user for user, passed in self._passed.items() if awaited <= passed]
        for user in whole:
            del self._passed[user]
        return whole


class Target:
    """A place to put contents into: a channel, several, or a function. A sender is an object for one handle."""

    def put(self, contents: Contents) -> None:
        raise NotImplementedError

    def add_sender(self, sender: Any) -> None:
        """Count one more handle that may put."""

    def drop_sender(self, sender: Any) -> None:
        """Count one handle less; after the last one the receivers see the end."""

    def end(self, user: int, sender: Any) -> None:
        """Note that nothing of a user of a shared node comes by this handle any more."""

    def final_targets(self) -> "List[Target]":
        """The channels, or other ends of the way, that contents reach by this target."""
        return [self]


class Channel(Target):
    """A queue of at most `cap` envelopes. `put` waits while it is full, `take` while it is empty."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.items: Deque[Any] = deque()
        self.tally = EndTally()
        self.readers: Set[Any] = set()
        self.ended = False
        """Whether nobody reads any more: `put` drops its contents then."""
        lock = threading.Lock()
        self._lock = lock
        self._filled = threading.Condition(lock)
        self._emptied = threading.Condition(lock)
        self._readers_waiting = 0
        self._senders_waiting = 0

    def __len__(self) -> int:
        return len(self.items)

    def put(self, contents: Contents) -> None:
        """Append contents, waiting while the channel is full. Dropped where nobody reads any more."""
        with self._lock:
            items = self.items
            while len(items) >= self.cap and not self.ended:
                self._senders_waiting += 1
                self._emptied.wait()
                self._senders_waiting -= 1
            if self.ended:
                return
            items.append(contents)
            # Counted by hand, because notifying a condition nobody waits on costs time for each envelope.
            if self._readers_waiting:
                self._filled.notify()

    def take(self, reader: Any, deadline: Optional[float] = None) -> Any:
        """The next contents or UserEnd for this reader; CLOSED, or LATE when the deadline passes first."""
        with self._lock:
            items = self.items
            while True:
                # Looked at before the deadline: this reader may have been notified just when its wait ran out.
                if items:
                    head = items[0]
                    if head.__class__ is Contents:
                        items.popleft()
                        if self._senders_waiting:
                            self._emptied.notify()
                        return head
                    if reader not in head.seen:
                        # The end stays at the head for the other readers: clones of a node each have to see it.
                        head.seen.add(reader)
                        self._pass_ends()
                        return head
                # Only an empty channel is closed: what the last sender left is still read.
                elif not self.tally.members:
                    return CLOSED
                timeout = None
                if deadline is not None:
                    timeout = deadline - time.monotonic()
                    if timeout <= 0:
                        return LATE
                self._readers_waiting += 1
                self._filled.wait(timeout)
                self._readers_waiting -= 1

    def _pass_ends(self) -> None:
        """Take out the ends that all readers have seen."""
        items = self.items
        while items and items[0].__class__ is UserEnd and self.readers <= items[0].seen:
            items.popleft()
            # All readers, not one: those that saw the end already wait for what is behind it.
            self._filled.notify_all()
            self._emptied.notify()

    def add_sender(self, sender: Any) -> None:
        with self._lock:
            self.tally.add(sender)

    def drop_sender(self, sender: Any) -> None:
        with self._lock:
            self._append(self.tally.drop(sender))
            if not self.tally.members:
                self._filled.notify_all()

    def end(self, user: int, sender: Any) -> None:
        with self._lock:
            self._append(self.tally.passed(user, sender))

    def _append(self, users: List[int]) -> None:
        if users and not self.ended:
            # Beyond the capacity too: the caller may have the lock of a hub, and must not wait here.
            self.items.extend(UserEnd(user) for user in users)
            self._filled.notify_all()

    def close(self) -> None:
        """Drop what is left and let senders go on, since nobody reads any more."""
        with self._lock:
            self.ended = True
            # Dropped after the lock is released: finalisers of envelopes may run code that puts into channels.
            dropped = list(self.items)
            self.items.clear()
            self._emptied.notify_all()
        del dropped

    def drop_reader(self, reader: Any) -> None:
        """Count one reader less: ends need not wait for it. After the last one the channel swallows what is put."""
        with self._lock:
            self.readers.discard(reader)
            last = not self.readers
            if not last:
                self._pass_ends()
        if last:
            self.close()


class Discard(Target):
    """Used instead of a channel where an output is connected to nothing."""

    def put(self, contents: Contents) -> None:
        pass


class FanOut(Target):
    """Gives every envelope to all of several targets. The message is one object for all of them."""

    def __init__(self, targets: List[Target]) -> None:
        self.targets = targets

    def put(self, contents: Contents) -> None:
        for target in self.targets[1:]:
            target.put(contents.copy(contents.msg))
        # The original goes last: once it is put, its receiver may change it.
        self.targets[0].put(contents)

    def add_sender(self, sender: Any) -> None:
        for target in self.targets:
            target.add_sender(sender)

    def drop_sender(self, sender: Any) -> None:
        for target in self.targets:
            target.drop_sender(sender)

    def end(self, user: int, sender: Any) -> None:
        for target in self.targets:
            target.end(user, sender)

    def final_targets(self) -> List[Target]:
        return [final for target in self.targets for final in target.final_targets()]


class Sink(Target):
    """Hands contents to a function in the sender's own thread."""

    def __init__(self, receive: Callable[[Contents], None]) -> None:
        self.receive = receive

    def put(self, contents: Contents) -> None:
        self.receive(contents)


def fan_out(targets: List[Target]) -> Target:
    """One target for all of these."""
    if not targets:
        return Discard()
    return targets[0] if len(targets) == 1 else FanOut(targets)
