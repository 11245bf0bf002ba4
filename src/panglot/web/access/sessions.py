"""Browsers that have logged in: a cookie that is worth the token, for pages of this server alone."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable
from dataclasses import dataclass

LIFE = 12 * 3600
"""Seconds until a browser has to log in again."""
READING = ("GET", "HEAD")


@dataclass(frozen=True)
class Sessions:
    """Makes and checks cookies. They are signed with the token: a new token ends all of them, and nothing is stored."""

    token: bytes

    @property
    def name(self) -> str:
        """The cookie's name. Cookies ignore ports, so servers on one host must not share one."""
        return "panglot_" + hmac.new(self.token, b"name", hashlib.sha256).hexdigest()[:8]

    def begin(self, secure: bool) -> str:
        """What sets the cookie, as the value of Set-Cookie."""
        until = b"%d" % (time.time() + LIFE)
        value = f"{until.decode()}.{self._sign(until)}"
        return self._cookie(value, LIFE, secure)

    def end(self, secure: bool) -> str:
        return self._cookie("", 0, secure)

    def _cookie(self, value: str, life: int, secure: bool) -> str:
        safe = "; Secure" if secure else ""
        return f"{self.name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{safe}"

    def admits(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a request without a token comes from a page of this server in a browser that has logged in."""
        if not self.token:
            return False
        given = dict(headers)
        return self._is_own(method, given) and self._is_valid(given.get(b"cookie", b""))

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

    def _is_valid(self, cookies: bytes) -> bool:
        start = self.name.encode() + b"="
        for cookie in cookies.split(b";"):
            if cookie.strip().startswith(start):
                until, _, signature = cookie.strip()[len(start) :].partition(b".")
                # In constant time. And before `int`: only a value that this server signed gets that far.
                fits = hmac.compare_digest(signature, self._sign(until).encode())
                return fits and until.isdigit() and int(until) > time.time()
        return False

    def _sign(self, until: bytes) -> str:
        return hmac.new(self.token, b"session " + until, hashlib.sha256).hexdigest()
