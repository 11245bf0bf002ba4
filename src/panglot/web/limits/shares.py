"""How several models share the bytes that a server may hold: a flood of requests to one leaves room for the others."""

from __future__ import annotations

from panglot.settings import Settings
from panglot.web.limits.quota import Quota

COMMON = 0.5
"""The part of the quota that belongs to nobody; the rest is divided evenly."""


class Shares:
    """The shares of all models. Each has some bytes of its own, and takes what it needs beyond them from the rest."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.used = 0
        """Bytes that shares hold beyond their own."""
        self.most_used = int(quota.most_held * COMMON)
        self.members: list[Share] = []

    def new(self, settings: Settings) -> Share:
        """A share for a model with these settings."""
        share = Share(self, settings)
        self.members.append(share)
        self._divide()
        return share

    def give_back(self, share: Share) -> None:
        """Divide what a model that has gone had."""
        if share in self.members:
            self.members.remove(share)
            self._divide()

    def _divide(self) -> None:
        own = (self.quota.most_held - self.most_used) // max(1, len(self.members))
        for share in self.members:
            share.resize(own)
        self.used = sum(share.beyond for share in self.members)


class Share:
    """What one model may hold."""

    def __init__(self, shares: Shares, settings: Settings) -> None:
        self._shares = shares
        self._max_body = settings.max_body
        self._large = 1 - settings.small_share
        self.small = min(settings.small_body, settings.max_body)
        self.own = 0
        self._held = 0
        self.largest_body = self.most_for_large = 0

    def resize(self, own: int) -> None:
        """Have so many bytes that no other model can take."""
        self.own = own
        self.most_for_large = int((own + self._shares.most_used) * self._large)
        self.largest_body = min(self._max_body, max(self.small, self.most_for_large))

    @property
    def beyond(self) -> int:
        """Bytes held beyond its own."""
        return max(0, self._held - self.own)

    @property
    def held(self) -> int:
        return self._held

    @held.setter
    def held(self, held: int) -> None:
        before = self.beyond
        self._shares.quota.held += held - self._held
        self._held = held
        self._shares.used += self.beyond - before

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when it is too large, or there is no room."""
        if total > self.small and total > self.largest_body:
            return False
        if not self._fits(size, total):
            return False
        self.held = self._held + size
        return True

    def fits(self, size: int) -> bool:
        """Whether a body of this size would find room now."""
        return self._fits(size, size)

    def _fits(self, size: int, total: int) -> bool:
        held = self._held + size
        if self._shares.quota.held + size > self._shares.quota.most_held:
            return False
        if total > self.small and held > self.most_for_large:
            return False
        more = max(0, held - self.own) - self.beyond
        most = self._shares.most_used if total <= self.small else int(self._shares.most_used * self._large)
        return not more or self._shares.used + more <= most
