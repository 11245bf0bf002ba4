"""Which workers of a pool belong to this process, where several fronts share them out."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from panglot.settings.counts import WorkerCount


@dataclass(frozen=True)
class FrontShare:
    """The share of one front of `fronts`: the workers whose index leaves `front` when divided by `fronts`."""

    front: int = 0
    fronts: int = 1
    at_home: bool = False
    """Whether all workers belong to the first front. The other fronts pass every call on to it."""

    def of_model(self, fewest: int, at_home: bool = False) -> FrontShare:
        """The share in the workers of a model whose smallest pool has so many.

        Where a pool has fewer workers than there are fronts, all workers of the model are the first front's.
        """
        return dataclasses.replace(self, at_home=self.fronts > 1 and (at_home or fewest < self.fronts))

    @property
    def has_workers(self) -> bool:
        return not self.at_home or self.front == 0

    def of(self, total: int) -> int:
        """How many of so many workers are this front's."""
        return total if self.at_home else max(1, total // self.fronts + (self.front < total % self.fronts))

    def all_of(self, own: int) -> int:
        """About how many workers all fronts have, where this one has so many."""
        return own if self.at_home else self.fronts * own

    def part(self, limit: int) -> int:
        """This front's part of a limit of the server."""
        return -(-limit // self.fronts)

    def exactly(self, limit: int) -> int:
        """This front's part of a limit that all parts together must not exceed; it may be 0."""
        return limit if self.at_home else limit // self.fronts + (self.front < limit % self.fronts)

    def of_range(self, count: WorkerCount) -> WorkerCount:
        """The share of a count, or of a range; a count that the script says stays open."""
        return WorkerCount(self.of(count.least), self.of(count.most)) if count else count

    def indices(self) -> Iterator[int]:
        """The indices of this front's workers, which no other front uses."""
        return itertools.count() if self.at_home else itertools.count(self.front, self.fronts)


WHOLE = FrontShare()
"""All workers belong to this process."""
