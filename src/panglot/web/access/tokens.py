"""Who may send requests: tokens, host names, and the rule that nothing is open to other machines by accident."""

from __future__ import annotations

import functools
import hmac
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from panglot.errors import StartError
from panglot.jobs.webhooks.sending import secrets_of
from panglot.settings import Settings
from panglot.settings.loopback import is_loopback as is_loopback
from panglot.web.access import key_file
from panglot.web.access.hidden_headers import Credentials, password
from panglot.web.access.keys import KeyHolder, Keys, Wanted
from panglot.web.contract import ADMIN, CONTROL, METRICS, PUBLIC, RequestLine, TokenForm

PORT = re.compile(rb":[0-9]{1,5}$")
FOR_BROWSERS = (ADMIN, METRICS)
Headers = Sequence[tuple[bytes, bytes]]
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")


@dataclass(frozen=True)
class Access:
    """Decides whether a request is allowed. `token` is empty where there is none; with keys one is required still."""

    token: bytes
    hosts: frozenset[bytes]
    """Host names accepted; empty: any."""
    metrics_token: bytes = b""
    """Opens /metrics and nothing else; empty while there is none."""
    control_token: bytes = b""
    """Loads and unloads models, and nothing else; empty: no client may by a token."""
    keys: Keys | None = None
    """The keys in force, where the server has a file of them."""
    is_controllable: bool = False
    """Whether clients may load and unload models at all."""
    webhook_keys: tuple[bytes, ...] = ()
    """What the server signs its webhooks with, the newest key first."""
    session_secret: bytes = field(default_factory=lambda: os.urandom(32))
    """What cookies of browsers that have logged in are signed with, where there is no token."""

    @property
    def is_closed(self) -> bool:
        """Whether routes that are not public need a token or a key."""
        return bool(self.token) or self.keys is not None

    @functools.cached_property
    def credentials(self) -> Credentials:
        """The parts of a request's headers that no script gets."""
        return Credentials(self.token, self.metrics_token, self.control_token, has_keys=self.keys is not None)

    def needs_token(self, access: str) -> bool:
        """Whether a route of this access asks for a token."""
        if access == CONTROL:
            return True
        return access != PUBLIC and bool(self.is_closed or (access == METRICS and self.metrics_token))

    def refuses(self, access: str, authorization: bytes) -> bool:
        """Whether a request to a route of this access lacks its token; a key is no token.

        Pages for operators also take it as the password of HTTP Basic. No answer asks for that: browsers would show a
        window of their own in front of our pages.
        """
        if (not self.token and self.keys is None and access not in (METRICS, CONTROL)) or access == PUBLIC:
            return False
        return not self._opens(access, _given(access, authorization))

    def refuses_all(
        self, access: str, authorization: bytes, forms: Iterable[TokenForm], line: RequestLine, headers: Headers
    ) -> bool:
        """Whether a request lacks the token of its route, also in the further forms of its platform's clients."""
        if not self.refuses(access, authorization):
            return False
        return not any(self._opens(access, form.shown(self.token, line, headers)) for form in forms)

    def holder(
        self, access: str, authorization: bytes, forms: Iterable[TokenForm] = (), headers: Headers = ()
    ) -> KeyHolder | None:
        """The client that has the key which a request shows, whatever the key opens; None without one."""
        if self.keys is None:
            return None
        for secret in self._secrets(access, authorization, forms, headers):
            holder = self.keys.find(secret)
            if holder is not None:
                return holder
        return None

    @staticmethod
    def _secrets(access: str, authorization: bytes, forms: Iterable[TokenForm], headers: Headers) -> Iterator[bytes]:
        yield _given(access, authorization)
        for form in forms:
            # A client that signs its request sends no secret, and of keys only the digest is known.
            yield form.token(headers)

    def opens(self, access: str, path: str, authorization: bytes) -> bool:
        """Whether the token or the key of a request is good for a route. Nothing is counted."""
        if not self.refuses(access, authorization):
            return True
        holder = self.holder(access, authorization)
        return holder is not None and holder.refusal(Wanted(access, path)) is None

    def _opens(self, access: str, given: bytes) -> bool:
        """Whether a token opens a route of this access, which asks for one."""
        # All comparisons take constant time: how long a refusal takes tells nothing about the token.
        if access == CONTROL:
            return bool(self.control_token) and hmac.compare_digest(given, self.control_token)
        if access == METRICS and self.metrics_token and hmac.compare_digest(given, self.metrics_token):
            return True
        if not self.token:
            # Without keys only /metrics comes here: it is open, unless it has a token of its own.
            return self.keys is None and not self.metrics_token
        return hmac.compare_digest(given, self.token)

    def knows(self, host: bytes) -> bool:
        """Whether the server answers to this Host header."""
        return not self.hosts or host in self.hosts or _name(host) in self.hosts


def _given(access: str, authorization: bytes) -> bytes:
    """The token, or the secret of a key, that a header holds; empty where it has none that a route takes."""
    scheme, _, given = authorization.partition(b" ")
    kind, given = scheme.lower(), given.strip()
    if kind == b"basic" and access in FOR_BROWSERS:
        return password(given)
    return given if kind == b"bearer" else b""


def _name(host: bytes) -> bytes:
    """The host without its port, in lower case."""
    return PORT.sub(b"", host.strip().lower())


def establish(settings: Settings, environ: Mapping[str, str] = os.environ, *, administrable: bool = False) -> Access:
    """The access rules for these settings. Raises StartError for an address that would be open to anyone.

    `administrable`: whether a package has routes that administer it, without a folder of models.
    """
    token = b"" if settings.no_auth else _token(settings.token_file, environ.get("PANGLOT_TOKEN", ""))
    if settings.keys and settings.no_auth:
        raise StartError("--keys says who may use the server, --no-auth that anyone may", fix="leave one of them out")
    keys = Keys(key_file.read(settings.keys)) if settings.keys else None
    metrics_token = _token(settings.metrics_token_file, environ.get("PANGLOT_METRICS_TOKEN", ""))
    loopback = is_loopback(settings.host)
    if not loopback and not token and keys is None and not settings.no_auth:
        raise StartError(
            f"{settings.host} can be reached from other machines, and no token is set",
            fix="set PANGLOT_TOKEN or --token-file, give a file of --keys, or say --no-auth",
        )
    hosts: frozenset[bytes] = frozenset()
    # Without a token only the Host header tells a local program from a page whose name leads here (DNS rebinding).
    if loopback and not token and keys is None:
        names = (*LOCAL_NAMES, settings.host, *settings.allow_host)
        hosts = frozenset(f"{name.lower()}{port}".encode() for name in names for port in ("", f":{settings.port}"))
    control_token = _control_token(settings, environ, token, administrable)
    webhook_keys = secrets_of(settings.webhook_secret_file, environ.get("PANGLOT_WEBHOOK_SECRET", ""))
    return Access(token, hosts, metrics_token, control_token, keys, settings.admin, webhook_keys=tuple(webhook_keys))


def _control_token(settings: Settings, environ: Mapping[str, str], token: bytes, administrable: bool) -> bytes:
    """The token that loads and unloads models, where that is allowed. Raises StartError when there is none."""
    if not settings.admin:
        return b""
    if not settings.models and not administrable:
        raise StartError("--admin is for a folder of models", fix="--models DIR, or leave it out")
    control = _token(settings.admin_token_file, environ.get("PANGLOT_ADMIN_TOKEN", ""))
    fix = "set PANGLOT_ADMIN_TOKEN or --admin-token-file"
    if not control and not settings.keys:
        raise StartError("--admin needs a token of its own", fix=fix + ", or a file of --keys")
    if control and control == token:
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
