"""Reading what a client names as a video: a file, a camera, or an address of http, https or rtsp. Pure."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple, Optional, Sequence, Tuple

LONGEST = 2048
PORTS = {"http": 80, "https": 443, "rtsp": 554}
URL = re.compile(
    r"(?P<scheme>https?|rtsp)://(?:(?P<user>[^@/?#\[\]]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<target>[/?].*)?",
    re.DOTALL,
)
LABEL = re.compile(r"(?!-)[0-9a-z_-]{1,63}(?<!-)")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*[:,]")
CAMERA = re.compile(r"/dev/video[0-9]+")


class Refused(Exception):
    """Not opened, by a rule."""


class Address(NamedTuple):
    """An address taken apart. `host`: in lower case, no brackets; `free`: the rule on addresses does not apply."""

    scheme: str
    host: str
    port: int
    target: str
    user: str = ""
    free: bool = False

    @property
    def authority(self) -> str:
        host = "[%s]" % self.host if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else "%s:%d" % (host, self.port)


def is_address(text: str) -> bool:
    """Whether a text is meant as an address, and not as a path: `concat:a` is, and so is `subfile,,`."""
    return SCHEME.match(text) is not None


def parse(text: str, url_allow: Sequence[str]) -> Address:
    """Raises Refused for everything that is not plainly an address that may be asked."""
    if len(text) > LONGEST or not all("!" <= character <= "~" for character in text) or "\\" in text or "#" in text:
        raise Refused("the address is too long, or holds a character it must not")
    match = URL.fullmatch(text)
    if match is None:
        raise Refused("videos come from files and from addresses of http, https and rtsp")
    scheme, host, user = match["scheme"], match["host"].lower().strip("[]"), match["user"] or ""
    if user and scheme != "rtsp":
        raise Refused("the address holds a user's name")
    port = PORTS[scheme] if match["port"] is None else int(match["port"])
    if not 0 < port < 65536 or (match["host"].startswith("[") and ":" not in host):
        raise Refused("there is no such address")
    _check_host(host, url_allow)
    free = _allowed(host, port, url_allow)
    if port not in PORTS.values() and not free:
        raise Refused("port %d is not allowed; --url-allow %s:%d would let it" % (port, host, port))
    target = match["target"] or "/"
    return Address(scheme, host, port, target if target.startswith("/") else "/" + target, user, free)


def redirected(address: Address, location: str, url_allow: Sequence[str]) -> Address:
    """Where a redirect leads; it is checked as any address is. Raises Refused."""
    if location.startswith("//"):
        location = "%s:%s" % (address.scheme, location)
    elif location.startswith("/"):
        location = "%s://%s%s" % (address.scheme, address.authority, location)
    elif not is_address(location):
        folder = address.target.partition("?")[0].rpartition("/")[0]
        location = "%s://%s%s/%s" % (address.scheme, address.authority, folder, location)
    found = parse(location.partition("#")[0], url_allow)
    if found.scheme == "rtsp" or (address.scheme == "https" and found.scheme == "http"):
        raise Refused("the redirect leads to another protocol")
    return found


def shown(text: str) -> str:
    """An address without its password."""
    return re.sub(r"(://[^@/:]*):[^@/]*@", r"\1:***@", text)


def _check_host(host: str, url_allow: Sequence[str]) -> None:
    labels = host.split(".")
    if ":" in host or NUMBER.fullmatch(labels[-1]):
        # The C library takes 127.1 and 0x7f000001 for addresses too; only the one spelling is accepted here.
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise Refused("there is no such address") from None
        return
    if len(host) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise Refused("this is no host name")
    if any(label.startswith("xn--") for label in labels) and not any(_split(one)[0] == host for one in url_allow):
        raise Refused("names in other scripts must be listed in url_allow")


def _allowed(host: str, port: int, url_allow: Sequence[str]) -> bool:
    return any(name == host and only in (None, port) for name, only in map(_split, url_allow))


def _split(entry: str) -> Tuple[str, Optional[int]]:
    host, colon, port = entry.lower().rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.startswith("[")):
        return entry.lower().strip("[]"), None
    return host.strip("[]"), int(port)
