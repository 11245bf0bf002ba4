"""What the name of a host says by itself."""

from __future__ import annotations

from panglot_worker.net import addresses


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host == "localhost" or addresses.is_loopback(host.strip("[]"))
