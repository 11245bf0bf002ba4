"""How many bytes and connections a server holds at once: one budget for all its listeners."""

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
    """How many bytes the requests of a model may hold: all of the quota, or a share of it."""

    held: int
    largest_body: int
    most_for_large: int

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when it is too large, or there is no room."""

    def fits(self, size: int) -> bool:
        """Whether a body of this size would find room now."""


class Quota:
    """What a server may hold. Bytes are counted when they have arrived, connections when they are made.

    A share of the bytes is kept for small bodies: however many large ones come, a small request is served.
    """

    def __init__(self, settings: Settings) -> None:
        self.held = 0
        """Bytes of request bodies in memory, and of answers that clients are slow to read."""
        self.small = min(settings.small_body, settings.max_body)
        self.most_held = settings.request_memory
        self.most_for_large = int(settings.request_memory * (1 - settings.small_share))
        self.largest_body = min(settings.max_body, max(self.small, self.most_for_large))
        self.heads = bytearray(HEADS)
        self.for_heads = memoryview(self.heads)
        self.for_pieces = memoryview(bytearray(PIECES))
        """Where all connections read to: a loop reads, and hands on what was read, for one of them at a time."""
        self.connections: set[CountedConnection] = set()
        """Connections within the limit."""
        self.most_guests = settings.max_connections
        self.reserved: deque[CountedConnection] = deque()
        """Connections beyond the limit that have not asked anything yet, oldest first."""
        self._idle: list[tuple[float, CountedConnection]] = []
        """Connections that were idle when we last looked, the longest idle last."""

    # Bytes

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when it is too large, or there is no room."""
        held = self.held + size
        if held > self.most_held:
            return False
        if total > self.small and (held > self.most_for_large or total > self.largest_body):
            return False
        self.held = held
        return True

    def fits(self, size: int) -> bool:
        """Whether a body of this size would find room now."""
        return self.held + size <= (self.most_held if size <= self.small else self.most_for_large)

    # Connections

    def enter(self, connection: CountedConnection) -> bool:
        """Count a connection; False when it is one too many. The one that has been idle longest makes room if it can.

        One too many may still ask for public routes, until more such connections come.
        """
        idle = self._longest_idle() if len(self.connections) >= self.most_guests else None
        if idle is not None:
            self.connections.discard(idle)
            idle.evict()
        if len(self.connections) < self.most_guests:
            self.connections.add(connection)
            return True
        self.reserved.append(connection)
        if len(self.reserved) > RESERVED:
            # Those that came first have had their chance to ask.
            self.reserved.popleft().turn_away()
        return False

    def leave(self, connection: CountedConnection) -> None:
        self.connections.discard(connection)
        if self.reserved and connection in self.reserved:
            self.reserved.remove(connection)

    def _longest_idle(self) -> CountedConnection | None:
        longest = self._next_idle()
        if longest is None:
            idle = [(connection.idle_since, connection) for connection in self.connections]
            self._idle = sorted((entry for entry in idle if entry[0]), key=lambda entry: entry[0], reverse=True)
            longest = self._next_idle()
        return longest

    def _next_idle(self) -> CountedConnection | None:
        while self._idle:
            since, connection = self._idle.pop()
            if connection in self.connections and connection.idle_since == since:
                return connection
        return None
