"""Clients that receive nothing of what was sent to them."""

from __future__ import annotations

from typing import Any, Protocol

from panglot.settings import Settings
from panglot.web.front import Front
from panglot.web.limits import peer


class Delivering(Protocol):
    """A connection, with how much of its answers had arrived when that last changed."""

    front: Front
    transport: Any
    delivered: int
    delivered_at: float

    @property
    def limits(self) -> Settings: ...


def drop_if_stalled(connection: Delivering, now: float) -> None:
    """Drop a client that has received nothing of its answers for too long.

    Our own buffer tells little: the kernel takes megabytes in one go, and a slow reader needs minutes for them.
    """
    transport = connection.transport
    sock = transport.get_extra_info("socket")
    if not transport.get_write_buffer_size() and not peer.unacknowledged(sock):
        connection.delivered_at = now
    # Not `>`: on a Unix socket this number may fall too.
    elif (delivered := peer.acknowledged(sock)) != connection.delivered:
        connection.delivered, connection.delivered_at = delivered, now
    elif now - connection.delivered_at > connection.limits.write_stall:
        connection.front.metrics.refused["write_stall"] += 1
        transport.abort()
