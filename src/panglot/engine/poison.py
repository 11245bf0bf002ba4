"""Requests that kill. Pure: the pools tell what happened and ask, the clock is the caller's.

A call that ran alone while its worker ended itself is suspect. Calls are of one kind when route, path, query, content
type and body are the same. A kind that has killed `deaths` times, with none of it answered between, is refused for
`seconds`. What it costs others: bodies of the very lengths under suspicion are digested, all others cost one look.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from panglot.engine.call import Call, Fault
from panglot_worker import wire

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
    """What has killed, of all pools of one package."""

    def __init__(self, deaths: int, seconds: float, clock: Callable[[], float]) -> None:
        self.deaths = deaths
        self.seconds = seconds
        self.clock = clock
        self.lengths: dict[int, float] = {}
        """Lengths of bodies under suspicion, and until when."""
        self._suspects: dict[bytes, Suspect] = {}

    def killed(self, call: Call) -> bool:
        """The call ran alone, and its worker ended itself. True when its kind is refused from now on."""
        if not self.deaths:
            return False
        until = self.clock() + self.seconds
        _note(self.lengths, call.length if call.place else call.size, until)
        kind = self._kind(call)
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
        """The call was answered by the script: its kind does not always kill."""
        if self._is_watched(call):
            self._suspects.pop(self._kind(call), None)

    def hand_on(self, call: Call) -> None:
        """The call leaves the first pool of a row, and its body with it: note what may be asked later."""
        if not call.place:
            call.length = call.size
            call.kind = digest(call) if call.size in self.lengths else b""

    def refusal(self, call: Call) -> Fault | None:
        """The answer to a call that must not run."""
        if not self._is_watched(call):
            return None
        suspect = self._suspects.get(self._kind(call))
        if suspect is None or not suspect.refused or suspect.until <= self.clock():
            return None
        times = f"ended the script's process {suspect.deaths} times"
        until = f"refused for {self.seconds:g} s, or until the script is loaded anew"
        return Fault(422, "poisonous", f"requests like this one have {times}; they are {until}")

    def about(self, call: Call) -> str:
        """The call's kind, for the log."""
        path = wire.Head.unpack(call.head).path.decode("latin-1")
        what = f"{path}, {call.length if call.place else call.size} bytes"
        return f"requests like {call.request_id.decode('latin-1')} ({what}) have ended {self.deaths} workers and"

    def expire(self) -> None:
        """Forget what is over."""
        now = self.clock()
        for length in [length for length, until in self.lengths.items() if until <= now]:
            del self.lengths[length]
        for kind in [kind for kind, suspect in self._suspects.items() if suspect.until <= now]:
            del self._suspects[kind]

    def forget(self) -> None:
        """The script is another one now."""
        self.lengths.clear()
        self._suspects.clear()

    def _is_watched(self, call: Call) -> bool:
        return bool(call.kind) if call.place else call.size in self.lengths

    def _kind(self, call: Call) -> bytes:
        """What a call is; nothing when its body was left in the first pool before anybody asked."""
        return call.kind if call.place else digest(call)


def digest(call: Call) -> bytes:
    head = wire.Head.unpack(call.head)
    found = hashlib.blake2b(digest_size=16)
    found.update(b"\0".join((head.route, head.path, head.query, head.content_type, b"")))
    for piece in call.pieces:
        found.update(piece)
    return found.digest()


def _note(known: dict[Key, Value], key: Key, value: Value) -> None:
    """Put an entry last; the first goes when there are too many."""
    known.pop(key, None)
    known[key] = value
    if len(known) > MOST:
        del known[next(iter(known))]
