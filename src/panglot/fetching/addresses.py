"""Which addresses belong to the public internet. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

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


def is_public(address: str) -> bool:
    """Whether a numeric address is one of the public internet. IPv4 inside IPv6 counts as what it stands for."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            return False
        if found in NAT64:
            found = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        elif found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        else:
            return found in GLOBAL_V6 and not any(found in network for network in FORBIDDEN_V6)
    return not any(found in network for network in FORBIDDEN_V4)


def all_public(addresses: Iterable[str]) -> bool:
    """One that is not spoils all: a name that leads to several must lead outside with each."""
    return all(is_public(address) for address in addresses)


def same(first: str, second: str) -> bool:
    """Whether two spellings are one address."""
    try:
        return ipaddress.ip_address(first) == ipaddress.ip_address(second)
    except ValueError:
        return False
