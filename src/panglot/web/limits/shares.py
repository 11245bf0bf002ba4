"""How several models share the memory for requests: a flood of requests to one leaves memory for the others."""

from __future__ import annotations

from typing import Protocol

from panglot.settings import Settings
from panglot.web.limits.quota import Quota

COMMON = 0.5
"""The part of the quota that all models share; the rest is divided evenly among them."""


class FrontsBytes(Protocol):
    """The bytes that the requests of a model use in the fronts of a server that has several."""

    def tell(self, used: int) -> None:
        """Tell the other fronts how many bytes this front uses."""

    def elsewhere(self) -> int:
        """Bytes that the other fronts use."""


class Shares:
    """The shares of all models. Each has some bytes of its own, and takes what it needs beyond them from the rest."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.common_used = 0
        """Bytes of the common part that models use."""
        self.most_common = int(quota.most * COMMON)
        self.members: list[Share] = []

    def new(self, settings: Settings) -> Share:
        """A share for a model with these settings."""
        share = Share(self, settings)
        self.members.append(share)
        self._divide()
        return share

    def release(self, share: Share) -> None:
        """Divide the share of a model that was unloaded among the others."""
        if share in self.members:
            self.members.remove(share)
            share.count_alone()
            # Requests that outlived their model may still use memory: none of it counts as common from now on.
            share.resize(self.quota.most)
            self._divide()

    def common_used_by_all(self) -> int:
        """Bytes of the common part that models use, in all fronts."""
        if self.quota.fronts == 1:
            return self.common_used
        return sum(max(0, share.used_by_all() - share.own) for share in self.members)

    def _divide(self) -> None:
        own = (self.quota.most - self.most_common) // max(1, len(self.members))
        for share in self.members:
            share.resize(own)
        # Counted anew: with another share, other bytes lie beyond it. Those of a model that has gone are left out.
        self.common_used = sum(share.beyond_own for share in self.members)


class Share:
    """The memory that the requests of one model may use."""

    def __init__(self, shares: Shares, settings: Settings) -> None:
        self._shares = shares
        self._max_body = settings.max_body
        self._large = 1 - settings.small_share
        self.small = min(settings.small_body, settings.max_body)
        self.own = 0
        self._used = 0
        self.largest_body = self.most_for_large = 0
        self._fronts: FrontsBytes | None = None

    def resize(self, own: int) -> None:
        """Have so many bytes that no other model can take."""
        self.own = own
        self.most_for_large = int((own + self._shares.most_common) * self._large)
        self.largest_body = min(self._max_body, max(self.small, self.most_for_large))

    def count_with(self, fronts: FrontsBytes) -> None:
        """Count what other fronts use too, from now on."""
        self._fronts = fronts
        fronts.tell(self._used)

    def count_alone(self) -> None:
        """Count for this front alone: another model may soon have the place on the board."""
        if self._fronts is not None:
            self._fronts.tell(0)
            self._fronts = None

    def used_by_all(self) -> int:
        """The bytes that the requests of the model use, in all fronts."""
        return self._used if self._fronts is None else self._used + self._fronts.elsewhere()

    @property
    def beyond_own(self) -> int:
        """Bytes that it uses of the common part, in this front."""
        return max(0, self._used - self.own)

    @property
    def used(self) -> int:
        """The bytes that the requests of the model use, in this front."""
        return self._used

    @used.setter
    def used(self, used: int) -> None:
        """Count other bytes than before, in all counts that they are in."""
        # Both counts move together. Code that adds to `used` need not know which part of the quota the bytes are from.
        before = self.beyond_own
        self._shares.quota.used += used - self._used
        self._used = used
        self._shares.common_used += self.beyond_own - before
        if self._fronts is not None:
            self._fronts.tell(used)

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when it is too large, or space is short."""
        if total > self.small and total > self.largest_body:
            return False
        if not self._fits(size, total):
            return False
        self.used = self._used + size
        return True

    def fits(self, size: int) -> bool:
        """Whether the quota has space for a body of this size now."""
        return self._fits(size, size)

    def _fits(self, size: int, total: int) -> bool:
        before = self.used_by_all()
        used = before + size
        if self._shares.quota.used_by_all() + size > self._shares.quota.most:
            return False
        if total > self.small and used > self.most_for_large:
            return False
        more = max(0, used - self.own) - max(0, before - self.own)
        # Large bodies leave some of the common part free, so that small ones are served under a flood.
        most = self._shares.most_common if total <= self.small else int(self._shares.most_common * self._large)
        return not more or self._shares.common_used_by_all() + more <= most
