"""Durations counted in buckets that are at most 0.8 % wide, however long they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

FINE = 7
"""Leading bits of a value that count: buckets double in width every 2**FINE of them."""


class FineHistogram:
    """Counts of values, which are whole microseconds. Percentiles are exact to the width of a bucket."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: dict[int, int] = dict(counts or {})

    def add(self, values: Iterable[float]) -> FineHistogram:
        counts = self.counts
        for value in values:
            index = bucket(int(value))
            counts[index] = counts.get(index, 0) + 1
        return self

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def percentile(self, share: float) -> float:
        """The percentile: `share` per cent of all values are at most this large; 0 without values."""
        # Rounded up, without `math.ceil`.
        wanted = max(1, -(-self.total * share // 100))
        seen = 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= wanted:
                return middle(index)
        return 0.0

    def merge(self, other: FineHistogram) -> FineHistogram:
        for index, count in other.counts.items():
            self.counts[index] = self.counts.get(index, 0) + count
        return self

    def curve(self, shares: Iterable[float]) -> list[tuple[float, float]]:
        return [(share, self.percentile(share)) for share in shares]

    def as_dict(self) -> dict[str, int]:
        return {str(index): self.counts[index] for index in sorted(self.counts)}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> FineHistogram:
        return cls({int(index): int(count) for index, count in saved.items()})


def bucket(value: int) -> int:
    """The bucket of a value: the value itself while it is small, else its leading bits and their position."""
    shift = max(0, value.bit_length() - FINE - 1)
    return (shift << FINE) + (value >> shift)


def middle(index: int) -> float:
    """A value in the middle of a bucket."""
    shift = max(0, (index >> FINE) - 1)
    lowest = (index - (shift << FINE)) << shift
    return lowest + ((1 << shift) - 1) / 2
