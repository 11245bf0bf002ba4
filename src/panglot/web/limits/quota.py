"""How much memory and how many connections the requests of a server may use: one quota for all its listeners."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from panglot.settings import Settings

HEADS = 16384
"""Bytes that are read at once while a head is expected. What comes behind the head of a large body is copied."""
PIECES = 262144
"""Bytes that are read at once of a body that does not land in shared memory."""
RESERVED = 16
"""Connections beyond the limit that still get an answer from the public routes: health checks go on under a flood."""


class CountedConnection(Protocol):
    """A connection, as the quota counts it."""

    @property
    def idle_since(self) -> float:
        """Since when the connection has been idle; 0 while it is not."""

    def turn_away(self) -> None:
        """Answer that there are too many connections, and close, unless a request is being answered."""

    def evict(self) -> None:
        """Close the connection, which is idle."""


class ByteQuota(Protocol):
    """The memory that the requests of a model may use: all of the quota, or a share of it."""

    used: int
    largest_body: int
    most_for_large: int

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when it is too large, or space is short."""

    def fits(self, size: int) -> bool:
        """Whether the quota has space for a body of this size now."""


class Quota:
    """The memory and connections of a server. Bytes are counted when they have arrived, connections when they are made.

    A share of the bytes is reserved for small bodies: however many large ones come, a small request is served.
    """

    def __init__(self, settings: Settings) -> None:
        self.used = 0
        """Bytes of request bodies in memory, and of answers that clients are slow to read."""
        self.spooled = 0
        """Bytes of request bodies on disk."""
        self.fronts = 1
        """The fronts that share these limits."""
        self.small = min(settings.small_body, settings.max_body)
        self.most = settings.request_memory
        self.most_for_large = int(settings.request_memory * (1 - settings.small_share))
        self.largest_body = min(settings.max_body, max(self.small, self.most_for_large))
        self.heads = bytearray(HEADS)
        self.for_heads = memoryview(self.heads)
        self.for_pieces = memoryview(bytearray(PIECES))
        """Where all connections read to: a loop reads, and hands on what was read, for one of them at a time."""
        self.connections: set[CountedConnection] = set()
        """Connections within the limit."""
        self.most_connections = settings.max_connections
        self.reserved: deque[CountedConnection] = deque()
        """Connections beyond the limit that have sent no request yet, oldest first."""
        self._idle: list[tuple[float, CountedConnection]] = []
        """Connections that were idle when we last looked, the longest idle last."""

    # Bytes

    def used_by_all(self) -> int:
        """The bytes that are used, by all fronts of the server."""
        return self.used

    def spooled_by_all(self) -> int:
        """The bytes on disk, of all fronts of the server."""
        return self.spooled

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when it is too large, or space is short."""
        used = self.used + size
        if used > self.most:
            return False
        if total > self.small and (used > self.most_for_large or total > self.largest_body):
            return False
        self.used = used
        return True

    def fits(self, size: int) -> bool:
        """Whether the quota has space for a body of this size now."""
        return self.used + size <= (self.most if size <= self.small else self.most_for_large)

    # Connections

    def admit(self, connection: CountedConnection) -> bool:
        """Count a connection; False when it is one too many. The one that has been idle longest is closed for it.

        A connection too many may still request public routes, until more such connections come.
        """
        idle = self._longest_idle() if len(self.connections) >= self.most_connections else None
        if idle is not None:
            # At once: its `connection_lost`, which calls `remove`, comes in a later turn of the loop.
            self.connections.discard(idle)
            idle.evict()
        if len(self.connections) < self.most_connections:
            self.connections.add(connection)
            return True
        self.reserved.append(connection)
        if len(self.reserved) > RESERVED:
            # The oldest has had its chance to send a request.
            self.reserved.popleft().turn_away()
        return False

    def remove(self, connection: CountedConnection) -> None:
        self.connections.discard(connection)
        if self.reserved and connection in self.reserved:
            self.reserved.remove(connection)

    def _longest_idle(self) -> CountedConnection | None:
        longest = self._next_idle()
        # Looking at every connection is slow, so a flood of newcomers uses up one list before the next is made.
        if longest is None:
            idle = [(connection.idle_since, connection) for connection in self.connections]
            self._idle = sorted((entry for entry in idle if entry[0]), key=lambda entry: entry[0], reverse=True)
            longest = self._next_idle()
        return longest

    def _next_idle(self) -> CountedConnection | None:
        while self._idle:
            since, connection = self._idle.pop()
            # The list is old: the connection may be gone, or may have worked and become idle again.
            if connection in self.connections and connection.idle_since == since:
                return connection
        return None
