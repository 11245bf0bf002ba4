"""Who may send requests: tokens, host names, and the rule that nothing is open to other machines by accident."""

from __future__ import annotations

import functools
import hmac
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.jobs.webhooks import secrets_of
from panglot.settings import Settings
from panglot.settings.loopback import is_loopback as is_loopback
from panglot.web.access.hidden_headers import Credentials, password
from panglot.web.contract import ADMIN, CONTROL, METRICS, PUBLIC, RequestLine, TokenForm

PORT = re.compile(rb":[0-9]{1,5}$")
FOR_BROWSERS = (ADMIN, METRICS)
Headers = Sequence[tuple[bytes, bytes]]
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")


@dataclass(frozen=True)
class Access:
    """Decides whether a request is allowed. `token` is empty while none is required."""

    token: bytes
    hosts: frozenset[bytes]
    """Host names accepted; empty: any."""
    metrics_token: bytes = b""
    """Opens /metrics and nothing else; empty while there is none."""
    control_token: bytes = b""
    """Loads and unloads models, and nothing else; empty: no client may."""

    webhook_keys: tuple[bytes, ...] = ()
    """What the server signs its webhooks with, the newest key first."""

    @functools.cached_property
    def credentials(self) -> Credentials:
        """The parts of a request's headers that no script gets."""
        return Credentials(self.token, self.metrics_token, self.control_token)

    def needs_token(self, access: str) -> bool:
        """Whether a route of this access asks for a token."""
        if access == CONTROL:
            return True
        return access != PUBLIC and bool(self.token or (access == METRICS and self.metrics_token))

    def refuses(self, access: str, authorization: bytes) -> bool:
        """Whether a request to a route of this access lacks its token.

        Pages for whoever runs the server also take it as the password of HTTP Basic, though nobody is asked for that:
        browsers would put a window of their own before our pages.
        """
        if (not self.token and access not in (METRICS, CONTROL)) or access == PUBLIC:
            return False
        scheme, _, given = authorization.partition(b" ")
        kind, given = scheme.lower(), given.strip()
        if kind == b"basic" and access in FOR_BROWSERS:
            given = password(given)
        elif kind != b"bearer":
            given = b""
        return not self._opens(access, given)

    def refuses_all(
        self, access: str, authorization: bytes, forms: Iterable[TokenForm], line: RequestLine, headers: Headers
    ) -> bool:
        """Whether a request lacks the token of its route, where its platform's clients carry it in further forms."""
        if not self.refuses(access, authorization):
            return False
        return not any(self._opens(access, form.shown(self.token, line, headers)) for form in forms)

    def _opens(self, access: str, given: bytes) -> bool:
        """Whether a token opens a route of this access, which asks for one."""
        # All comparisons take constant time: how long a refusal takes tells nothing about the token.
        if access == CONTROL:
            return bool(self.control_token) and hmac.compare_digest(given, self.control_token)
        if access == METRICS and self.metrics_token and hmac.compare_digest(given, self.metrics_token):
            return True
        if not self.token:
            # Only /metrics comes here: it is open, unless it has a token of its own.
            return not self.metrics_token
        return hmac.compare_digest(given, self.token)

    def owner(self, headers: Headers) -> str:
        """The name of whoever sends a request that is allowed; empty: all who have the token are the same."""
        return ""

    def knows(self, host: bytes) -> bool:
        return not self.hosts or host in self.hosts or _name(host) in self.hosts


def _name(host: bytes) -> bytes:
    """The host without its port, in lower case."""
    return PORT.sub(b"", host.strip().lower())


def establish(settings: Settings, environ: Mapping[str, str] = os.environ, *, administrable: bool = False) -> Access:
    """The access rules for these settings. Raises StartError for an address that would be open to anyone.

    `administrable`: whether a package has routes that administer it, without a folder of models.
    """
    token = b"" if settings.no_auth else _token(settings.token_file, environ.get("PANGLOT_TOKEN", ""))
    metrics_token = _token(settings.metrics_token_file, environ.get("PANGLOT_METRICS_TOKEN", ""))
    loopback = is_loopback(settings.host)
    if not loopback and not token and not settings.no_auth:
        raise StartError(
            f"{settings.host} can be reached from other machines, and no token is set",
            fix="set PANGLOT_TOKEN or --token-file, or say --no-auth",
        )
    hosts: frozenset[bytes] = frozenset()
    # Without a token only the Host header tells a local program from a page whose name leads here (DNS rebinding).
    if loopback and not token:
        names = (*LOCAL_NAMES, settings.host, *settings.allow_host)
        hosts = frozenset(f"{name.lower()}{port}".encode() for name in names for port in ("", f":{settings.port}"))
    keys = secrets_of(settings.webhook_secret_file, environ.get("PANGLOT_WEBHOOK_SECRET", ""))
    return Access(token, hosts, metrics_token, _control_token(settings, environ, token, administrable), tuple(keys))


def _control_token(settings: Settings, environ: Mapping[str, str], token: bytes, administrable: bool) -> bytes:
    """The token that loads and unloads models, where that is allowed. Raises StartError when there is none."""
    if not settings.admin:
        return b""
    if not settings.models and not administrable:
        raise StartError("--admin is for a folder of models", fix="--models DIR, or leave it out")
    control = _token(settings.admin_token_file, environ.get("PANGLOT_ADMIN_TOKEN", ""))
    fix = "set PANGLOT_ADMIN_TOKEN or --admin-token-file"
    if not control:
        raise StartError("--admin needs a token of its own", fix=fix)
    if control == token:
        raise StartError("the token of --admin must differ from the one that clients have", fix=fix)
    return control


def _token(file: str, given: str) -> bytes:
    """The token in a file, or else the one given. Raises StartError for a file without one."""
    if not file:
        return os.fsencode(given.strip())
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"the token cannot be read: {error}", file=file) from None
    if not token:
        raise StartError("the token file is empty", file=file)
    return token.encode()
