"""How many bytes and connections a server holds at once: one budget for all its listeners."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from panglot.settings import Settings

RESERVED = 16
"""Connections beyond the limit that still get an answer from the public routes: health checks go on under a flood."""


class Guest(Protocol):
    """A connection, as far as it takes up room."""

    @property
    def idle_since(self) -> float:
        """Since when nothing has been asked on a connection that had its answers; 0 while it is not idle."""

    def turn_away(self) -> None:
        """Answer that there are too many, unless a request is being answered."""

    def evict(self) -> None:
        """Close a connection that is idle."""


class Room:
    """Bytes are counted when they have arrived, connections when they are made.

    A share of the bytes is kept for small bodies: however many large ones come, a small request is served.
    """

    def __init__(self, settings: Settings) -> None:
        self.held = 0
        """Bytes of request bodies in memory, and of answers that clients are slow to read."""
        self.small = min(settings.small_body, settings.max_body)
        self.most_held = settings.max_held
        self.most_for_large = int(settings.max_held * (1 - settings.small_share))
        self.largest_body = min(settings.max_body, max(self.small, self.most_for_large))
        self.guests: set[Guest] = set()
        self.most_guests = settings.max_connections
        self.reserved: deque[Guest] = deque()
        """Connections beyond the limit that have not asked anything yet, oldest first."""
        self._idle: list[tuple[float, Guest]] = []
        """Those that were idle when last looked at, the longest idle last."""

    # Bytes

    def take(self, size: int, whole: int) -> bool:
        """Hold so many bytes more of a body that comes to `whole` with them; False: too large, or no room for it."""
        held = self.held + size
        if held > self.most_held:
            return False
        if whole > self.small and (held > self.most_for_large or whole > self.largest_body):
            return False
        self.held = held
        return True

    def fits(self, size: int) -> bool:
        """Whether a body of this size would find room now."""
        return self.held + size <= (self.most_held if size <= self.small else self.most_for_large)

    # Connections

    def enter(self, guest: Guest) -> bool:
        """Whether there is room for one more, if need be that of whoever has been idle longest.

        Who finds none may still ask for what is public, until others come that find none either.
        """
        self.guests.add(guest)
        if len(self.guests) <= self.most_guests:
            return True
        idle = self._longest_idle()
        if idle is not None:
            self.guests.discard(idle)
            idle.evict()
            return True
        self.reserved.append(guest)
        if len(self.reserved) > RESERVED:
            # Those that came first have had their chance to ask.
            self.reserved.popleft().turn_away()
        return False

    def leave(self, guest: Guest) -> None:
        self.guests.discard(guest)
        if self.reserved and guest in self.reserved:
            self.reserved.remove(guest)

    def _longest_idle(self) -> Guest | None:
        found = self._next_idle()
        if found is None:
            idle = [(guest.idle_since, guest) for guest in self.guests]
            self._idle = sorted((entry for entry in idle if entry[0]), key=lambda entry: entry[0], reverse=True)
            found = self._next_idle()
        return found

    def _next_idle(self) -> Guest | None:
        while self._idle:
            since, guest = self._idle.pop()
            if guest in self.guests and guest.idle_since == since:
                return guest
        return None
