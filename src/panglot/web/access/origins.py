"""Which web pages may call the script."""

from __future__ import annotations

from collections.abc import Iterable

ANYONE = b"*"
EXPOSED = b"x-request-id, server-timing, retry-after, ratelimit, ratelimit-policy"


class Origins:
    """The origins whose pages may call the script, by name or `*`. False when there are none."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._named = frozenset(origin.encode() for origin in allowed)
        self.anyone = ANYONE in self._named

    def __bool__(self) -> bool:
        return bool(self._named)

    def allow(self, origin: bytes) -> bool:
        return self.anyone or origin in self._named

    def grant(self, origin: bytes) -> dict[bytes, bytes]:
        """Headers that tell a browser whether a page of this origin may read the answer."""
        if self.anyone:
            return {b"access-control-allow-origin": ANYONE}
        allowed = {b"access-control-allow-origin": origin} if origin in self._named else {}
        # Also for an origin that is refused: a cache must not give this answer to one that is allowed.
        return {**allowed, b"vary": b"origin"}

    def lines(self, origin: bytes) -> bytes:
        """These headers as lines of an answer; none where the page may not read it."""
        if not self.allow(origin):
            return b""
        headers = {**self.grant(origin), b"access-control-expose-headers": EXPOSED}
        return b"".join(b"%b: %b\r\n" % header for header in headers.items())
