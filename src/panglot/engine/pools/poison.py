"""Requests that kill workers. Does no I/O: the pools report what happened and ask what to do.

A call that ran alone while its worker ended itself is suspect. Calls are of one kind when route, path, query, content
type and body are the same. A kind that has killed `deaths` times, with none of it answered between, is refused for
`seconds`. Other calls pay little: a body with exactly a suspected length is digested, for any other it is one lookup.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from panglot.engine.call import Call, Fault
from panglot_worker.line import wire

Key = TypeVar("Key")
Value = TypeVar("Value")

MOST = 256
"""Kinds remembered at once; the oldest is forgotten first."""


class Suspect:
    """One kind of call."""

    __slots__ = ("deaths", "refused", "until")

    def __init__(self) -> None:
        self.deaths = 0
        self.refused = False
        self.until = 0.0


class Poison:
    """The kinds of calls that have killed workers, in all pools of one package."""

    def __init__(self, deaths: int, seconds: float, clock: Callable[[], float]) -> None:
        self.deaths = deaths
        self.seconds = seconds
        self.clock = clock
        self.lengths: dict[int, float] = {}
        """Lengths of bodies under suspicion, each with the time at which the suspicion ends."""
        self.tell: Callable[[bytes, int, bool], None] | None = None
        """Tells other fronts of a kind, the length of its bodies, and whether it killed a worker or was answered."""
        self._suspects: dict[bytes, Suspect] = {}

    def killed(self, call: Call) -> bool:
        """Note that a worker ended itself while it ran this call alone. True when its kind is refused from now on."""
        if not self.deaths:
            return False
        length, kind = call.length if call.pool_index else call.size, self._kind(call)
        if self.tell is not None:
            # Each death, not only the last: every front counts by itself.
            self.tell(kind, length, True)
        return self.suspect(kind, length)

    def suspect(self, kind: bytes, length: int) -> bool:
        """Note that a kind has killed a worker, here or in another front. True when it is refused from now on."""
        until = self.clock() + self.seconds
        # Also for a call without a kind: from now on `hand_on` digests the bodies of this length.
        _note(self.lengths, length, until)
        if not kind:
            return False
        suspect = self._suspects.get(kind) or Suspect()
        suspect.deaths += 1
        suspect.until = until
        _note(self._suspects, kind, suspect)
        newly = suspect.deaths >= self.deaths and not suspect.refused
        suspect.refused = suspect.refused or newly
        return newly

    def survived(self, call: Call) -> None:
        """Clear the kind of a call that the script has answered."""
        if self._is_watched(call):
            kind = self._kind(call)
            if self.clear(kind) and self.tell is not None:
                self.tell(kind, call.size, False)

    def clear(self, kind: bytes) -> bool:
        """Suspect a kind no longer; False when nobody did."""
        return self._suspects.pop(kind, None) is not None

    def hand_on(self, call: Call) -> None:
        """Store length and digest of a call before the next pool of a pipeline: its body is replaced now."""
        if not call.pool_index:
            call.length = call.size
            call.kind = digest(call) if call.size in self.lengths else b""

    def refusal(self, call: Call) -> Fault | None:
        """The answer to a call that must not run; None for one that may."""
        if not self._is_watched(call):
            return None
        suspect = self._suspects.get(self._kind(call))
        # The time is compared here too: `expire` runs only now and then.
        if suspect is None or not suspect.refused or suspect.until <= self.clock():
            return None
        times = f"ended the script's process {suspect.deaths} times"
        until = f"refused for {self.seconds:g} s, or until the script is loaded again"
        return Fault(422, "poisonous", f"requests like this one have {times}; they are {until}")

    def about(self, call: Call) -> str:
        """The call's kind in words, for the log."""
        path = wire.Head.unpack(call.head).path.decode("latin-1")
        shape = f"{path}, {call.length if call.pool_index else call.size} bytes"
        return f"requests like {call.request_id.decode('latin-1')} ({shape}) have ended {self.deaths} workers and"

    def expire(self) -> None:
        """Forget suspicions whose time has passed."""
        now = self.clock()
        for length in [length for length, until in self.lengths.items() if until <= now]:
            del self.lengths[length]
        for kind in [kind for kind, suspect in self._suspects.items() if suspect.until <= now]:
            del self._suspects[kind]

    def forget(self) -> None:
        """Forget everything: the script has been loaded anew."""
        self.lengths.clear()
        self._suspects.clear()

    def _is_watched(self, call: Call) -> bool:
        return bool(call.kind) if call.pool_index else call.size in self.lengths

    def _kind(self, call: Call) -> bytes:
        """The digest of a call; empty when its body was replaced before it was under suspicion."""
        return call.kind if call.pool_index else digest(call)


def digest(call: Call) -> bytes:
    """The digest of route, path, query, content type and body, which is the same for all calls of one kind."""
    head = wire.Head.unpack(call.head)
    hasher = hashlib.blake2b(digest_size=16)
    hasher.update(b"\0".join((head.route, head.path, head.query, head.content_type, b"")))
    for piece in call.body():
        hasher.update(piece)
    return hasher.digest()


def _note(known: dict[Key, Value], key: Key, value: Value) -> None:
    """Put an entry last, and drop the first when there are too many."""
    known.pop(key, None)
    known[key] = value
    if len(known) > MOST:
        del known[next(iter(known))]
