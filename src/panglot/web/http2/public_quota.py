"""What calls that need no token may hold, all of them together: no stranger's call costs one with a token anything."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from panglot.web.grpc.statuses import RESOURCE_EXHAUSTED, Refusal
from panglot.web.limits.quota import Quota

if TYPE_CHECKING:
    from panglot.web.http2.stream import CallStream

MOST = 4 << 20
"""Bytes for all public calls of a server, the open ones and those that watch included."""
PART = 16
"""The part of `request_memory` that they may have, where that is less."""
OPEN = 1024
"""Bytes that an open call counts for, besides those of its message."""
MOST_OPEN = 32
"""Public calls at once on one connection."""
TOO_MANY_OPEN = Refusal(RESOURCE_EXHAUSTED, f"at most {MOST_OPEN} calls of this kind at once on a connection")
GAVE_WAY = Refusal(RESOURCE_EXHAUSTED, "this call, which needs no token, made room for others; make it again")


class PublicQuota:
    """Counts the open public calls. Where there are too many, the one that began first gives way."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._most = min(MOST, quota.most_held // PART)
        self._held = 0
        self._calls: OrderedDict[PublicCall, None] = OrderedDict()

    def enter(self, stream: CallStream) -> PublicCall:
        """Count a call until it leaves."""
        call = PublicCall(self, stream)
        self._calls[call] = None
        call.held = OPEN
        return call

    def leave(self, call: PublicCall) -> None:
        """Count a call no longer, whose messages have been released."""
        self._calls.pop(call, None)
        call.held = 0

    def add(self, size: int) -> None:
        """Count bytes, and let calls give way where they are too many."""
        self._held += size
        self._quota.held += size
        while self._held > self._most and len(self._calls) > 1:
            oldest, _ = self._calls.popitem(last=False)
            oldest.give_way()


class PublicCall:
    """What one public call holds: the quota that its messages are counted in. See `quota.ByteQuota`."""

    __slots__ = ("_held", "_quota", "_stream", "largest_body", "most_for_large")

    def __init__(self, quota: PublicQuota, stream: CallStream) -> None:
        self._quota = quota
        self._stream = stream
        self._held = 0
        self.largest_body = self.most_for_large = MOST

    @property
    def held(self) -> int:
        return self._held

    @held.setter
    def held(self, held: int) -> None:
        more, self._held = held - self._held, held
        self._quota.add(more)

    def take(self, size: int, total: int) -> bool:
        """Count bytes of its message; what that is too much for is another call's."""
        self.held += size
        return True

    def fits(self, size: int) -> bool:
        return True

    def give_way(self) -> None:
        """End the call, because others need its quota; what it holds is given back by its end."""
        stream = self._stream
        stream.calls.refuse(stream, GAVE_WAY.code, GAVE_WAY.message)
