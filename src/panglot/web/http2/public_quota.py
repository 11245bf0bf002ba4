"""The memory for calls that need no token, all of them together: they take none from calls with a token."""

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
GAVE_WAY = Refusal(
    RESOURCE_EXHAUSTED, "calls that need no token use too much memory, and the oldest of them was ended; make it again"
)


class PublicQuota:
    """Counts the open public calls. Where there are too many, the one that began first gives way."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        # Divided: each front looks at its own calls alone.
        self._most = min(MOST, quota.most // PART) // quota.fronts
        self._used = 0
        self._calls: OrderedDict[PublicCall, None] = OrderedDict()

    def admit(self, stream: CallStream) -> PublicCall:
        """Count a call until it is removed."""
        call = PublicCall(self, stream)
        # Listed before it is counted: where there is too little memory, the oldest gives way, not this one.
        self._calls[call] = None
        call.used = OPEN
        return call

    def remove(self, call: PublicCall) -> None:
        """Stop counting a call, after its messages are released."""
        self._calls.pop(call, None)
        call.used = 0

    def add(self, size: int) -> None:
        """Count bytes, and let calls give way where they are too many."""
        self._used += size
        self._quota.used += size
        # The newest call stays in any case: one message alone is small.
        while self._used > self._most and len(self._calls) > 1:
            # Off the list first: ending the call frees its bytes, which calls this method again.
            oldest, _ = self._calls.popitem(last=False)
            oldest.give_way()


class PublicCall:
    """The memory of one public call: the quota that counts its messages. See `quota.ByteQuota`."""

    __slots__ = ("_quota", "_stream", "_used", "largest_body", "most_for_large")

    def __init__(self, quota: PublicQuota, stream: CallStream) -> None:
        self._quota = quota
        self._stream = stream
        self._used = 0
        self.largest_body = self.most_for_large = MOST

    @property
    def used(self) -> int:
        return self._used

    @used.setter
    def used(self, used: int) -> None:
        more, self._used = used - self._used, used
        self._quota.add(more)

    def take(self, size: int, total: int) -> bool:
        """Count bytes of its message. They are never refused: where memory is short, older calls give way."""
        self.used += size
        return True

    def fits(self, size: int) -> bool:
        return True

    def give_way(self) -> None:
        """End the call, because others need its quota; the end releases its memory."""
        stream = self._stream
        stream.calls.refuse(stream, GAVE_WAY.code, GAVE_WAY.message)
