"""The hosts of addresses: how they are spelt, and which of them `url_allow` lists."""

from __future__ import annotations

import re
from typing import Iterable, Tuple

from panglot_worker.net import addresses

LABEL = re.compile(r"(?!-)[0-9a-z_-]{1,63}(?<!-)")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
ENTRY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
LONGEST = 253
ANY_PORT = 0


class AddressRefused(Exception):
    """The rules forbid to connect to an address, or to open a file, that a stranger named; the message says why."""


def spelt(text: str) -> str:
    """The one spelling of a host: a name in lower case, or an address without brackets. Raises AddressRefused."""
    host = text.lower()
    if host.startswith("["):
        return _address(host[1:-1] if ":" in host and host.endswith("]") else "")
    labels = host.split(".")
    if len(host) > LONGEST or not all(LABEL.fullmatch(label) for label in labels):
        raise AddressRefused("this is no host name")
    # The C library takes 127.1, 0x7f000001 and the like for addresses; only the one spelling is accepted here.
    return _address(host) if NUMBER.fullmatch(labels[-1]) else host


def _address(text: str) -> str:
    address = addresses.read(text)
    if address is None:
        raise AddressRefused("there is no such address")
    return addresses.spelt(address)


def is_foreign(host: str) -> bool:
    """Whether a name is spelt in another script, in which it may look like a name it is not."""
    return any(label.startswith("xn--") for label in host.split("."))


def entry(text: str) -> Tuple[str, int]:
    """Host and port of an entry of `url_allow`. Raises AddressRefused for an entry that no address can match."""
    if addresses.read(text) is not None:
        return _address(text), ANY_PORT
    match = ENTRY.fullmatch(text)
    if match is None or (match["port"] is not None and not is_port(int(match["port"]))):
        raise AddressRefused("this is no host")
    return spelt(match["host"]), int(match["port"] or ANY_PORT)


def is_port(number: int) -> bool:
    return 0 < number < 65536


class Allowed:
    """The hosts that `url_allow` lists: each with all its addresses, and with any port unless one is named."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self.entries = tuple(entry(text) for text in entries)

    def names(self, host: str) -> bool:
        return any(name == host for name, _ in self.entries)

    def allows(self, host: str, port: int) -> bool:
        return any(name == host and only in (ANY_PORT, port) for name, only in self.entries)
