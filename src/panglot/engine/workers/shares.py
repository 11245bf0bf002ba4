"""Which workers of a pool belong to this process, where several fronts share them out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from panglot.settings.counts import WorkerCount


@dataclass(frozen=True)
class FrontShare:
    """The share of one front of `fronts`: the workers whose index leaves `front` when divided by `fronts`."""

    front: int = 0
    fronts: int = 1

    def of(self, total: int) -> int:
        """How many of so many workers are this front's: at least one, since it lends no call to another front."""
        return max(1, total // self.fronts + (self.front < total % self.fronts))

    def part(self, limit: int) -> int:
        """This front's part of a limit of the server."""
        return -(-limit // self.fronts)

    def of_range(self, count: WorkerCount) -> WorkerCount:
        """The share of a count, or of a range; a count that the script says stays open."""
        return WorkerCount(self.of(count.least), self.of(count.most)) if count else count

    def indices(self) -> Iterator[int]:
        """The indices of this front's workers, which no other front uses."""
        return itertools.count(self.front, self.fronts)


WHOLE = FrontShare()
"""All workers belong to this process."""
