"""Whether a host name or address means this machine."""

from __future__ import annotations

from panglot_worker.net import addresses

UNIX = "unix:"
"""What begins a host that is the path of a Unix socket."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that host."""
    return host == "localhost" or host.startswith(UNIX) or addresses.is_loopback(host.strip("[]"))
