"""Reading addresses that strangers wrote: one parser, and everything afterwards uses what it made of them. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

LONGEST = 2048
PORTS = {"http": 80, "https": 443}
URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::(?P<port>[0-9]{1,5}))?(?P<target>[/?].*)?",
    re.DOTALL,
)
LABEL = re.compile(r"(?!-)[0-9a-z_-]{1,63}(?<!-)")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
REDIRECTS = (301, 302, 303, 307, 308)


class Refused(Exception):
    """Not fetched, by a rule. The text is for the log; clients are not told."""


class Allowed:
    """The hosts of `url_allow`: any port, and any address they stand for, unless a port was named."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries = frozenset(_split(entry) for entry in entries)

    def names(self, host: str) -> bool:
        return any(name == host for name, _ in self._entries)

    def allows(self, host: str, port: int) -> bool:
        return (host, 0) in self._entries or (host, port) in self._entries


def _split(entry: str) -> tuple[str, int]:
    """Host and port of an entry, port 0 for none."""
    host, colon, port = entry.lower().rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.startswith("[")):
        return entry.lower().strip("[]"), 0
    return host.strip("[]"), int(port)


class Target(NamedTuple):
    """An address taken apart. `host` is in lower case and without brackets; `free`: the address rule does not apply."""

    scheme: str
    host: str
    port: int
    target: str
    free: bool = False

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(text: str, allowed: Allowed) -> Target:
    """Raises Refused for everything that is not plainly an address of http or https that may be asked."""
    if len(text) > LONGEST:
        raise Refused("it is too long")
    if not all("!" <= character <= "~" for character in text) or "\\" in text or "#" in text:
        raise Refused("it holds a character it must not")
    match = URL.fullmatch(text)
    if match is None:
        raise Refused("it is no plain address of http or https")
    scheme, host = match["scheme"], match["host"].lower().strip("[]")
    port = PORTS[scheme] if match["port"] is None else int(match["port"])
    if not 0 < port < 65536:
        raise Refused("there is no such port")
    if match["host"].startswith("[") and ":" not in host:
        raise Refused("this is no address")
    _check_host(host, allowed)
    free = allowed.allows(host, port)
    if port not in PORTS.values() and not free:
        raise Refused(f"port {port} is not allowed")
    target = match["target"] or "/"
    return Target(scheme, host, port, target if target.startswith("/") else "/" + target, free)


def _check_host(host: str, allowed: Allowed) -> None:
    if ":" in host:
        _numeric(host)
        return
    labels = host.split(".")
    if len(host) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise Refused("this is no host name")
    if NUMBER.fullmatch(labels[-1]):
        # The C library takes 127.1, 0x7f000001 and the like for addresses; only the one spelling is accepted here.
        _numeric(host)
    if any(label.startswith("xn--") for label in labels) and not allowed.names(host):
        raise Refused("names in other scripts must be listed in url_allow")


def _numeric(host: str) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise Refused("this is no address") from None


def redirected(target: Target, location: str, allowed: Allowed) -> Target:
    """Where a redirect leads; it is checked as any address is. Raises Refused."""
    if not location or len(location) > LONGEST:
        raise Refused("the redirect says no usable address")
    if location.startswith("//"):
        url = f"{target.scheme}:{location}"
    elif location.startswith("/"):
        url = f"{target.scheme}://{target.authority}{location}"
    elif re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", location):
        url = location
    else:
        folder = target.target.partition("?")[0].rpartition("/")[0]
        url = f"{target.scheme}://{target.authority}{folder}/{location}"
    found = parse(url.partition("#")[0], allowed)
    if target.scheme == "https" and found.scheme == "http":
        raise Refused("the redirect leaves https")
    return found
