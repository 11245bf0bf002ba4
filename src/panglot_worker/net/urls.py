"""Reading addresses that strangers wrote: one parser, and everything afterwards uses what it made of them."""

from __future__ import annotations

import re
from typing import NamedTuple, Sequence, Tuple

from panglot_worker.net.addresses import all_public
from panglot_worker.net.hosts import Allowed, Refused, is_foreign, is_port, spelt

LONGEST = 2048
HTTP = ("http", "https")
PORTS = {"http": (80, 443), "https": (443, 80), "rtsp": (554,)}
"""The ports of each scheme that need no leave, its own first."""
URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^@/?#\[\]]+)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<target>[/?].*)?",
    re.DOTALL,
)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
REDIRECTS = (301, 302, 303, 307, 308)


class Target(NamedTuple):
    """An address taken apart. `host` is in its one spelling; `free`: it may lead anywhere, for `url_allow` lists it."""

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


def parse(text: str, allowed: Allowed, schemes: Tuple[str, ...] = HTTP) -> Target:
    """Raises Refused for everything that is not plainly an address of these schemes that may be asked."""
    if len(text) > LONGEST:
        raise Refused("the address is too long")
    if not all("!" <= character <= "~" for character in text) or "\\" in text or "#" in text:
        raise Refused("the address holds a character it must not")
    match = URL.fullmatch(text)
    if match is None or match["scheme"] not in schemes:
        raise Refused("this is no plain address of %s" % " or ".join(schemes))
    scheme, host, user = match["scheme"], spelt(match["host"]), match["user"] or ""
    if user and scheme != "rtsp":
        raise Refused("the address holds a user's name")
    port = PORTS[scheme][0] if match["port"] is None else int(match["port"])
    target = match["target"] or "/"
    free = _check(scheme, host, port, allowed)
    return Target(scheme, host, port, target if target.startswith("/") else "/" + target, free, user)


def _check(scheme: str, host: str, port: int, allowed: Allowed) -> bool:
    """Whether `url_allow` lists this host and port. Raises Refused where it would have to."""
    if not is_port(port):
        raise Refused("there is no such port")
    if is_foreign(host) and not allowed.names(host):
        raise Refused("names in other scripts must be listed in url_allow")
    free = allowed.allows(host, port)
    if not free and port not in PORTS[scheme]:
        where = "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)
        raise Refused("port %d is not usual for %s; --url-allow %s would let it" % (port, scheme, where))
    return free


def redirected(target: Target, location: str, allowed: Allowed) -> Target:
    """Where a redirect leads; it is checked as any address of http or https is. Raises Refused."""
    if not location or len(location) > LONGEST:
        raise Refused("the redirect says no usable address")
    here = "%s://%s" % (target.scheme, target.authority)
    if location.startswith("//"):
        url = "%s:%s" % (target.scheme, location)
    elif location.startswith("/"):
        url = here + location
    elif SCHEME.match(location):
        url = location
    else:
        url = "%s%s/%s" % (here, target.target.partition("?")[0].rpartition("/")[0], location)
    found = parse(url.partition("#")[0], allowed)
    if target.scheme == "https" and found.scheme == "http":
        raise Refused("the redirect leaves https")
    return found


def check_addresses(target: Target, found: Sequence[str]) -> None:
    """What the name stands for now. Raises Refused unless all of it is outside, or it may lead anywhere."""
    if not found:
        raise Refused("the name leads nowhere")
    if not target.free and not all_public(found):
        raise Refused("%s is not, or not only, in the public internet" % target.host)
