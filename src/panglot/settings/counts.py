"""How many workers there are: a fixed number, or a range within which the server chooses by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

MOST = 1024
COUNT = re.compile(r"\s*([0-9]{1,9})\s*(?::\s*([0-9]{1,9})\s*)?")
NEGATIVE = re.compile(r"\s*-[0-9]+\s*")
EXPECTED = "expected a whole number such as 4, or MIN:MAX such as 1:8"


@dataclass(frozen=True)
class WorkerCount:
    """The fewest and the most workers; both 0 where that is left to the script. With 0 as the fewest a model sleeps."""

    least: int = 0
    most: int = 0

    def __bool__(self) -> bool:
        return self.most > 0

    def __str__(self) -> str:
        return f"{self.least}:{self.most}" if self.elastic else str(self.least)

    @property
    def elastic(self) -> bool:
        """Whether there are sometimes more, sometimes fewer."""
        return self.most > self.least

    @property
    def awake(self) -> int:
        """The fewest workers while the model does not sleep; 0 where that is left to the script."""
        return max(self.least, 1) if self else 0

    @property
    def sleeps(self) -> bool:
        """Whether there may be no worker at all."""
        return self.elastic and self.least == 0

    @property
    def for_fronts(self) -> int:
        """How many fronts can have a worker each. The least of a model that sleeps counts as one for each front."""
        return self.most if self.sleeps else self.least

    @property
    def plain(self) -> int | str:
        """As JSON and TOML have it."""
        return str(self) if self.elastic else self.least


def exactly(count: int) -> WorkerCount:
    return WorkerCount(count, count)


ANY = exactly(0)
SINGLE = exactly(1)


def parse(text: str) -> WorkerCount:
    """The count that a text such as `4` or `1:8` means. Raises ValueError."""
    match = COUNT.fullmatch(text)
    if match is None:
        raise ValueError("must be at least 0" if NEGATIVE.fullmatch(text) else EXPECTED)
    least = int(match[1])
    most = int(match[2] or least)
    if most > MOST or least > MOST:
        raise ValueError(f"must be at most {MOST}")
    if match[2] and most < 1:
        raise ValueError("the most is at least 1; write 0:1")
    if most < least:
        raise ValueError(f"the least comes first; write {max(most, 1)}:{least}")
    return WorkerCount(least, most)


def read(value: Any) -> WorkerCount:
    """The count that a value of a TOML file means: a number, or a text as `parse` takes it. Raises ValueError."""
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(EXPECTED)
    return parse(str(value))
