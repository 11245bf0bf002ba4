"""Reading addresses that strangers wrote, by one parser: all other code uses its result, and never the text."""

from __future__ import annotations

import re
from typing import NamedTuple, Sequence, Tuple

from panglot_worker.net.addresses import all_public
from panglot_worker.net.hosts import AddressRefused, Allowed, is_foreign, is_port, spelt

LONGEST = 2048
HTTP = ("http", "https")
RTSP = ("rtsp", "rtsps")
PORTS = {"http": (80, 443), "https": (443, 80), "rtsp": (554,), "rtsps": (322,)}
"""The ports of each scheme that need no permission, its own first."""
URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^@/?#\[\]]+)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<target>[/?].*)?",
    re.DOTALL,
)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
REDIRECTS = (301, 302, 303, 307, 308)


class Url(NamedTuple):
    """An address taken apart. `host` is in its one spelling; `free`: `url_allow` lists it, and it may lead anywhere."""

    scheme: str
    host: str
    port: int
    target: str
    free: bool = False
    user: str = ""

    @property
    def authority(self) -> str:
        host = "[%s]" % self.host if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme][0] else "%s:%d" % (host, self.port)

    @property
    def url(self) -> str:
        return "%s://%s%s" % (self.scheme, self.authority, self.target)


def parse(text: str, allowed: Allowed, schemes: Tuple[str, ...] = HTTP) -> Url:
    """Take apart an address that a stranger wrote.

    Raises AddressRefused unless it is plainly an address of one of these schemes, with an allowed host and port.
    """
    if len(text) > LONGEST:
        raise AddressRefused("the address is too long")
    if not all("!" <= character <= "~" for character in text) or "\\" in text or "#" in text:
        raise AddressRefused("the address holds a character it must not")
    match = URL.fullmatch(text)
    if match is None or match["scheme"] not in schemes:
        raise AddressRefused("this is no plain address of %s" % " or ".join(schemes))
    scheme, host, user = match["scheme"], spelt(match["host"]), match["user"] or ""
    if user and scheme not in RTSP:
        raise AddressRefused("the address holds a user's name")
    port = PORTS[scheme][0] if match["port"] is None else int(match["port"])
    target = match["target"] or "/"
    free = _check(scheme, host, port, allowed)
    return Url(scheme, host, port, target if target.startswith("/") else "/" + target, free, user)


def _check(scheme: str, host: str, port: int, allowed: Allowed) -> bool:
    """Whether `url_allow` lists this host and port. Raises AddressRefused where it would have to."""
    if not is_port(port):
        raise AddressRefused("there is no such port")
    if is_foreign(host) and not allowed.names(host):
        raise AddressRefused("names in other scripts must be listed in url_allow")
    free = allowed.allows(host, port)
    if not free and port not in PORTS[scheme]:
        where = "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)
        raise AddressRefused("port %d is not usual for %s; --url-allow %s would let it" % (port, scheme, where))
    return free


def redirected(url: Url, location: str, allowed: Allowed) -> Url:
    """The destination of a redirect, checked like any address of http or https. Raises AddressRefused."""
    if not location or len(location) > LONGEST:
        raise AddressRefused("the redirect says no usable address")
    here = "%s://%s" % (url.scheme, url.authority)
    if location.startswith("//"):
        text = "%s:%s" % (url.scheme, location)
    elif location.startswith("/"):
        text = here + location
    elif SCHEME.match(location):
        text = location
    else:
        text = "%s%s/%s" % (here, url.target.partition("?")[0].rpartition("/")[0], location)
    destination = parse(text.partition("#")[0], allowed)
    if url.scheme == "https" and destination.scheme == "http":
        raise AddressRefused("the redirect leaves https")
    return destination


def check_addresses(url: Url, addresses: Sequence[str]) -> None:
    """Check the addresses that a URL's host has now.

    Raises AddressRefused unless all of them are public, or `url_allow` lists the host.
    """
    if not addresses:
        raise AddressRefused("the name leads nowhere")
    if not url.free and not all_public(addresses):
        raise AddressRefused("%s is not, or not only, in the public internet" % url.host)
