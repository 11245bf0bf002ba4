"""Which numeric addresses belong to the public internet."""

from __future__ import annotations

import ipaddress
import socket
from typing import Iterable, Optional, Union

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

FORBIDDEN_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/3",
    )
)  # fmt: skip
GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
FORBIDDEN_V6 = tuple(
    ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
"""The first holds Teredo, the third 6to4: both carry IPv4 addresses that the sender chooses."""
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
LOOPBACK_V4 = ipaddress.IPv4Network("127.0.0.0/8")
LOOPBACK_V6 = ipaddress.IPv6Address("::1")


def read(text: str) -> Optional[Address]:
    """The address a text spells plainly; None for short forms, leading zeros, zones, and what is no address.

    The C library reads it: it is stricter than the oldest CPythons, and has no zones, which newer CPythons have.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return ipaddress.ip_address(socket.inet_pton(family, text))
        except (OSError, ValueError):
            continue
    return None


def spelt(address: Address) -> str:
    """An address as the C library writes it: what CPython itself writes differs between versions."""
    return socket.inet_ntop(socket.AF_INET if address.version == 4 else socket.AF_INET6, address.packed)


def is_public(text: str) -> bool:
    """Whether a numeric address is in the public internet. IPv4 inside of IPv6 is judged as IPv4."""
    address = read(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address not in NAT64 and address not in MAPPED:
            return address in GLOBAL_V6 and not any(address in network for network in FORBIDDEN_V6)
        address = _inner(address)
    return address is not None and not any(address in network for network in FORBIDDEN_V4)


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def all_public(addresses: Iterable[str]) -> bool:
    """Whether all addresses of a name are public. One that is not makes the name forbidden."""
    return all(is_public(address) for address in addresses)


def is_loopback(text: str) -> bool:
    """Whether only this machine can reach a numeric address."""
    address = read(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address not in MAPPED:
            return address == LOOPBACK_V6
        address = _inner(address)
    return address is not None and address in LOOPBACK_V4


def same(first: str, second: str) -> bool:
    """Whether two texts spell the same address."""
    address = read(first)
    return address is not None and address == read(second)
