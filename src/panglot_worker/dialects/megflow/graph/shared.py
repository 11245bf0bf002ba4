"""Shared nodes: the process has one set of instances, which many graphs use at once."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from panglot_worker.dialects.megflow.graph.channels import Channel, EndTally, Target
from panglot_worker.dialects.megflow.graph.envelope import Contents, EnvelopeError
from panglot_worker.dialects.megflow.graph.handles import Sender

Key = Tuple[str, Optional[int]]
"""A port and its tag."""


class Hub:
    """The entrances and exits of one shared node.

    Every graph instance that uses it has a number. Envelopes are stamped with it on their way in and routed by it on
    their way out. When the last of a user's senders has gone, its UserEnd follows what they sent through the node: each
    thread in it passes the UserEnd on when it has seen it at all its inputs, behind everything it sends for that user.
    Where the UserEnd comes out, the user's side is closed; when all threads have passed it on, the user has departed.
    """

    def __init__(self, name: str, skipped: Callable[[str, str], None]) -> None:
        self.name = name
        self.inputs: Dict[Key, Sender] = {}
        self.routers: Dict[Key, Router] = {}
        self._skipped = skipped
        self._said = False
        self._lock = threading.Lock()
        self._users = 0
        self._present: Dict[int, threading.Event] = {}
        """The users that have not departed."""
        self._open: Dict[int, int] = {}
        """How many senders of a user are left."""
        self._threads = EndTally()

    # Users

    def join(self) -> int:
        """Give a new user its number."""
        with self._lock:
            self._users += 1
            self._present[self._users] = threading.Event()
            return self._users

    def entrance(self, user: int, key: Key) -> "Entrance":
        return Entrance(self, user, self.inputs[key].target)

    def connect(self, user: int, key: Key, target: Target) -> None:
        """Lead what comes out at a port for a user to the target."""
        self.routers[key].connect(user, target)

    def count(self, user: int, change: int) -> None:
        """Count more senders of a user, or fewer; after the last one has gone, its UserEnd goes in."""
        with self._lock:
            self._open[user] = self._open.get(user, 0) + change
            if not self._open[user]:
                self._leave(user)

    def settle(self, user: int) -> None:
        """Note that all senders of a user are there by now. A user without senders ends at once."""
        with self._lock:
            if user in self._present and user not in self._open:
                self._leave(user)

    def _leave(self, user: int) -> None:
        # Called with the lock, so that no thread can pass the end on before it is expected below.
        self._open.pop(user, None)
        for sender in self.inputs.values():
            sender.end(user)
        self._depart(self._threads.expect(user))

    def wait(self, user: int) -> None:
        """Wait until a user has departed: all it sent has passed through the node, and all that came of it is out."""
        departed = self._present.get(user)
        if departed is not None:
            departed.wait()

    def unsent(self, user: int) -> None:
        """Warn, once, of contents that the node sent for a user that had departed."""
        if user not in self._present and not self._said:
            self._said = True
            why = "an envelope that was sent after its user had ended; send stored envelopes when recv() gives None"
            self._skipped(self.name, why + " (said once)")

    # Its threads

    def carry(self, thread: Any) -> None:
        """Wait for this thread too before a user has departed: ends pass through it."""
        with self._lock:
            self._threads.add(thread)

    def passed(self, user: int, thread: Any) -> None:
        """Note that a thread has seen a user's UserEnd at all its inputs, and passed it on."""
        with self._lock:
            if user in self._present:
                self._depart(self._threads.passed(user, thread))

    def gone(self, thread: Any) -> None:
        """Note that a thread has ended: it is waited for no more."""
        with self._lock:
            self._depart(self._threads.drop(thread))

    def _depart(self, users: List[int]) -> None:
        for user in users:
            self._present.pop(user).set()

    def close(self) -> None:
        """End the node's own inputs: no user will come any more."""
        for sender in self.inputs.values():
            sender.close()


class Entrance(Target):
    """One user's way into a shared node: stamps its number on all it sends."""

    def __init__(self, hub: Hub, user: int, target: Target) -> None:
        self._hub = hub
        self._user = user
        self._target = target

    def put(self, contents: Contents) -> None:
        contents.transfer_addr = self._user
        self._target.put(contents)

    def add_sender(self, sender: Any) -> None:
        self._hub.count(self._user, 1)

    def drop_sender(self, sender: Any) -> None:
        self._hub.count(self._user, -1)


class Router(Target):
    """One output of a shared node: leads each envelope back to the user it came from."""

    def __init__(self, hub: Hub) -> None:
        self.tally = EndTally()
        self._hub = hub
        self._targets: Dict[int, Target] = {}
        self._ended = False
        """Whether nothing can come out any more."""
        self._lock = threading.Lock()

    def connect(self, user: int, target: Target) -> None:
        with self._lock:
            if self._ended:
                return
            self._targets[user] = target
        target.add_sender((self, user))

    def put(self, contents: Contents) -> None:
        """Pass contents on to their user. Raises EnvelopeError for an envelope of no user."""
        user = contents.transfer_addr
        if user is None:
            raise EnvelopeError(
                "the shared node '%s' sent a new envelope, which nobody waits for: send the one received, or "
                "envelope.repack(message)" % self._hub.name
            )
        target = self._targets.get(user)
        if target is not None:
            target.put(contents)
        else:
            self._hub.unsent(user)

    def add_sender(self, sender: Any) -> None:
        with self._lock:
            self.tally.add(sender)

    def drop_sender(self, sender: Any) -> None:
        with self._lock:
            whole = self.tally.drop(sender)
            self._ended = not self.tally.members
            users = list(self._targets) if self._ended else whole
        # Without the lock: dropping a sender may end other channels, and those may lead back here.
        self._release(users)

    def end(self, user: int, sender: Any) -> None:
        with self._lock:
            users = self.tally.passed(user, sender)
        self._release(users)

    def _release(self, users: List[int]) -> None:
        for user in users:
            target = self._targets.pop(user, None)
            if target is not None:
                target.drop_sender((self, user))


# The way of ends


def lead_ends(hub: Hub, inputs: List[Sender], threads: List[Any]) -> None:
    """Settle the way of the ends of users through threads, from the inputs on.

    A thread that they do not reach sends nothing for any user. A sender that leads back to its own thread is not waited
    for: its end would wait for itself.
    """
    reached = _downstream([sender.target for sender in inputs], threads)
    for thread in threads:
        for sender in thread.outlets:
            for final in sender.target.final_targets():
                if thread not in reached or thread in _downstream([final], threads):
                    silence(final, sender)
    for thread in threads:
        thread.carrying = [
            receiver for receiver in thread.receivers if thread in reached and _carries(receiver.channel)
        ]
        if thread.carrying:
            hub.carry(thread)


def silence(target: Target, sender: Sender) -> None:
    """Have the target wait for no end from this sender."""
    if isinstance(target, (Channel, Router)):
        target.tally.silent.add(sender)


def _carries(channel: Channel) -> bool:
    return bool(channel.tally.members - channel.tally.silent)


def _downstream(targets: List[Target], threads: List[Any]) -> Set[Any]:
    """The threads that contents of these targets may reach."""
    finals: Set[Target] = {final for target in targets for final in target.final_targets()}
    reached: Set[Any] = set()
    while True:
        unreached = [thread for thread in threads if thread not in reached]
        new = {thread for thread in unreached if any(receiver.channel in finals for receiver in thread.receivers)}
        if not new:
            return reached
        reached |= new
        finals.update(final for thread in new for sender in thread.outlets for final in sender.target.final_targets())
