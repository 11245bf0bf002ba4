"""Browsers that have logged in: a cookie that is worth the token or a key, for pages of this server alone."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable
from dataclasses import dataclass

from panglot.web.access.keys import KeyHolder, Keys

LIFE = 12 * 3600
"""Seconds until a browser has to log in again."""
READING = ("GET", "HEAD")


@dataclass(frozen=True)
class Session:
    """What a cookie is worth: a key, or without one the token."""

    holder: KeyHolder | None


@dataclass(frozen=True)
class Sessions:
    """Makes and checks cookies. They are signed with the token: a new token ends all of them, and nothing is stored.

    A cookie of a key names it, and ends with it: the digest of the key is signed too.
    """

    token: bytes
    keys: Keys | None = None
    secret: bytes = b""
    """Signs the cookies where there is no token, only keys."""

    @property
    def name(self) -> str:
        """The cookie's name. Cookies ignore ports, so servers on one host must not share one."""
        return "panglot_" + hmac.new(self._signing, b"name", hashlib.sha256).hexdigest()[:8]

    @property
    def _signing(self) -> bytes:
        return self.token or self.secret

    def begin(self, secure: bool, holder: KeyHolder | None = None) -> str:
        """The value of Set-Cookie that gives a browser the cookie."""
        until = b"%d" % (time.time() + LIFE)
        value = f"{until.decode()}.{self._sign(until, holder)}"
        return self._cookie(value if holder is None else f"{value}.{holder.name}", LIFE, secure)

    def end(self, secure: bool) -> str:
        """The value of Set-Cookie that takes it away."""
        return self._cookie("", 0, secure)

    def _cookie(self, value: str, life: int, secure: bool) -> str:
        safe = "; Secure" if secure else ""
        return f"{self.name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{safe}"

    def find(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Session | None:
        """The session of a request that comes from a page of this server in a browser that has logged in."""
        if not self.token and self.keys is None:
            return None
        given = dict(headers)
        return self._valid(given.get(b"cookie", b"")) if self._is_own(method, given) else None

    @staticmethod
    def _is_own(method: str, headers: dict[bytes, bytes]) -> bool:
        """Whether the page that sends this is of this very origin: another port of the host is the same site too."""
        # Old browsers do not send Sec-Fetch-Site. For them the origin and SameSite=Strict decide.
        origin, site = headers.get(b"origin", b""), headers.get(b"sec-fetch-site", b"same-origin")
        if site not in (b"same-origin", b"none"):
            return False
        if not origin:
            # Browsers may leave the origin out when they read, never when they change something.
            return method in READING
        return origin.partition(b"://")[2] == headers.get(b"host")

    def _valid(self, cookies: bytes) -> Session | None:
        start = self.name.encode() + b"="
        for cookie in cookies.split(b";"):
            if cookie.strip().startswith(start):
                until, _, rest = cookie.strip()[len(start) :].partition(b".")
                signature, _, name = rest.partition(b".")
                holder = self.keys.named(name.decode("latin-1")) if self.keys is not None and name else None
                if (name and holder is None) or (not name and not self.token):
                    return None
                # In constant time. And before `int`: only a value that this server signed gets that far.
                fits = hmac.compare_digest(signature, self._sign(until, holder).encode())
                return Session(holder) if fits and until.isdigit() and int(until) > time.time() else None
        return None

    def _sign(self, until: bytes, holder: KeyHolder | None) -> str:
        of_key = b" " + holder.key.digest if holder is not None and holder.key is not None else b""
        return hmac.new(self._signing, b"session " + until + of_key, hashlib.sha256).hexdigest()
