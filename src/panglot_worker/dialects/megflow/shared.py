"""Top-level nodes: one set of instances for the whole process, used by many graphs at once."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from panglot_worker.dialects.megflow.channels import Channel, Roll, Target
from panglot_worker.dialects.megflow.envelope import Contents, EnvelopeError
from panglot_worker.dialects.megflow.handles import Sender

Key = Tuple[str, Optional[int]]
"""A port and its tag."""


class Hub:
    """The entrances and exits of one shared node.

    Every graph instance that uses it has a number. Envelopes are stamped with it on their way in and routed by it on
    their way out. When the last of a user's senders has gone, its End follows what they sent through the node: each
    thread in it passes the End on when it has seen it at all its inputs, behind everything it sends for that user.
    Where the End comes out, the user's side is closed; when all threads have passed it on, the user has departed.
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
        """Users that have not departed."""
        self._open: Dict[int, int] = {}
        """How many senders of a user are left."""
        self._threads = Roll()

    # Users

    def join(self) -> int:
        """The number of a new user."""
        with self._lock:
            self._users += 1
            self._present[self._users] = threading.Event()
            return self._users

    def entrance(self, user: int, key: Key) -> "Entrance":
        return Entrance(self, user, self.inputs[key].target)

    def connect(self, user: int, key: Key, target: Target) -> None:
        """What comes out at this port for this user goes to the target."""
        self.routers[key].connect(user, target)

    def count(self, user: int, change: int) -> None:
        """So many more senders of a user, or fewer; after the last one its End goes in."""
        with self._lock:
            self._open[user] = self._open.get(user, 0) + change
            if not self._open[user]:
                self._leave(user)

    def settle(self, user: int) -> None:
        """All of a user's senders are there by now. One without any leaves at once."""
        with self._lock:
            if user in self._present and user not in self._open:
                self._leave(user)

    def _leave(self, user: int) -> None:
        self._open.pop(user, None)
        for sender in self.inputs.values():
            sender.end(user)
        self._depart(self._threads.expect(user))

    def wait(self, user: int) -> None:
        """Until a user has departed: all it sent has passed through the node, and all that came of it is out."""
        departed = self._present.get(user)
        if departed is not None:
            departed.wait()

    def unsent(self, user: int) -> None:
        """The node sent something for a user that has not connected this port, or has departed: that is told, once."""
        if user not in self._present and not self._said:
            self._said = True
            why = "an envelope that was sent after its user had ended; send what is kept when recv() gives None"
            self._skipped(self.name, why + " (said once)")

    # Its threads

    def carry(self, thread: Any) -> None:
        """Ends pass through this thread."""
        with self._lock:
            self._threads.add(thread)

    def passed(self, user: int, thread: Any) -> None:
        """A thread has seen a user's End at all its inputs, and passed it on."""
        with self._lock:
            if user in self._present:
                self._depart(self._threads.passed(user, thread))

    def gone(self, thread: Any) -> None:
        """A thread has ended."""
        with self._lock:
            self._depart(self._threads.drop(thread))

    def _depart(self, users: List[int]) -> None:
        for user in users:
            self._present.pop(user).set()

    def close(self) -> None:
        """No user will come any more: the node's own inputs end."""
        for sender in self.inputs.values():
            sender.close()


class Entrance(Target):
    """A user's way in."""

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
    """One output of a shared node: back to whoever sent the envelope."""

    def __init__(self, hub: Hub) -> None:
        self.roll = Roll()
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
            self.roll.add(sender)

    def drop_sender(self, sender: Any) -> None:
        with self._lock:
            whole = self.roll.drop(sender)
            self._ended = not self.roll.members
            users = list(self._targets) if self._ended else whole
        self._release(users)

    def end(self, user: int, sender: Any) -> None:
        with self._lock:
            users = self.roll.passed(user, sender)
        self._release(users)

    def _release(self, users: List[int]) -> None:
        for user in users:
            target = self._targets.pop(user, None)
            if target is not None:
                target.drop_sender((self, user))


# The way of ends


def lead_ends(hub: Hub, inputs: List[Sender], threads: List[Any]) -> None:
    """Find the way that ends take through threads, from inputs on.

    What they do not reach sends nothing of any user, and what leads back to where it came from cannot be waited for.
    """
    reached = _downstream([sender.target for sender in inputs], threads)
    for thread in threads:
        for sender in thread.outlets:
            for place in sender.target.places():
                if thread not in reached or thread in _downstream([place], threads):
                    silence(place, sender)
    for thread in threads:
        thread.carrying = [one for one in thread.receivers if thread in reached and _carries(one.channel)]
        if thread.carrying:
            hub.carry(thread)


def silence(place: Target, sender: Sender) -> None:
    if isinstance(place, (Channel, Router)):
        place.roll.silent.add(sender)


def _carries(channel: Channel) -> bool:
    return bool(channel.roll.members - channel.roll.silent)


def _downstream(targets: List[Target], threads: List[Any]) -> Set[Any]:
    """The threads that something put into these targets may come to."""
    places: Set[Target] = {place for target in targets for place in target.places()}
    found: Set[Any] = set()
    while True:
        new = {one for one in threads if one not in found and any(each.channel in places for each in one.receivers)}
        if not new:
            return found
        found |= new
        places.update(place for one in new for sender in one.outlets for place in sender.target.places())
