"""The parts of a request's headers that are for this server alone: no script gets them, whatever the protocol."""

from __future__ import annotations

import base64
import re
from collections.abc import Container, Iterable

from panglot.web.access.key_file import SECRET

SESSION = re.compile(rb"panglot_[0-9a-f]{8}")
"""Names of cookies of a login. Browsers send that of another server on this host along: cookies know no ports."""
BASIC = re.compile(rb"basic[ \t]+", re.IGNORECASE)


class Credentials:
    """The tokens of a server, and headers without them.

    Where clients need a token, every Authorization is for the server. Where they need none it is the script's own,
    unless it carries a token for something else.
    """

    def __init__(self, token: bytes, *others: bytes, has_keys: bool = False) -> None:
        self._demanded = bool(token) or has_keys
        known = [re.escape(secret) for secret in (token, *others) if secret]
        # Of keys only digests are known: whatever looks like a secret is taken for one.
        known += [SECRET.pattern] if has_keys else []
        words = b"|".join(known)
        # Bounded on both sides: a short token must not remove every header that has its letters somewhere.
        self._own = re.compile(rb"(?<![^\s,;:=\"'])(?:" + words + rb")(?![^\s,;\"'])") if known else None

    def without(
        self, headers: Iterable[tuple[bytes, bytes]], carriers: Container[bytes] = ()
    ) -> list[tuple[bytes, bytes]]:
        """The headers that a script may see. `carriers` are those that carry the token besides Authorization."""
        kept = []
        for name, value in headers:
            if name == b"cookie":
                value = _without_session(value)
                if not value:
                    continue
            elif self._demanded and (name == b"authorization" or name in carriers):
                # Dropped whole, also where the token in it is wrong: it was meant for this server.
                continue
            if self._own is None or not self._carries(self._own, value):
                kept.append((name, value))
        return kept

    @staticmethod
    def _carries(own: re.Pattern[bytes], value: bytes) -> bool:
        if own.search(value):
            return True
        # The password is in base64, where the search above cannot find it.
        basic = BASIC.match(value)
        return basic is not None and own.search(password(value[basic.end() :])) is not None


def password(credentials: bytes) -> bytes:
    """The password of HTTP Basic; empty when there is none. The user's name does not matter."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def _without_session(cookies: bytes) -> bytes:
    """The cookies of a request without those of a login; unchanged where there are none."""
    if SESSION.search(cookies) is None:
        return cookies
    pairs = (pair.strip() for pair in cookies.split(b";"))
    return b"; ".join(pair for pair in pairs if pair and not SESSION.fullmatch(pair.partition(b"=")[0].strip()))
