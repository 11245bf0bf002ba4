"""Which models the server serves now: what all fronts agree on, and what a front that is forked begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Served = tuple[str, str]
"""The name and the version of a model."""
MOST_VERSIONS = 16
"""Versions of a model that can be loaded together while the server serves."""


class Catalog:
    """Owned by the parent. A front has the copy of the moment in which it was forked, and reads it to begin.

    A slot is the number of a model on the board and between fronts. It is used again only when no front has anything
    of its former model any more, and as late as possible.
    """

    def __init__(self, models: Sequence[Served], slots: int, fixed: Iterable[str] = ()) -> None:
        self.served: dict[Served, int] = {model: slot for slot, model in enumerate(models)}
        self.slots = slots
        """How many there are."""
        self.failed: dict[str, str] = {}
        """Models that are not served because they could not be loaded, and why."""
        self.fixed = frozenset(fixed)
        """Models that were named on the command line; they stay."""
        self.is_loaded = False
        """Whether a front has loaded all models once: from then on all fronts serve the same, or do not start."""
        self.scaled: dict[Served, tuple[int, int]] = {}
        """How many workers clients have asked for, at least and at most."""
        self.preferred: dict[Served, None] = {}
        """The versions that answer where a request names none, as clients have said, the latest last."""
        self.planned = dict(self.served)
        """The slots of the models in the plan that the server was started with."""
        self._free = list(range(len(self.served), slots))
        self._going: dict[int, set[int]] = {}
        """The fronts that still have the model of a slot, which is no longer served."""

    def reserve(self) -> list[int]:
        """Slots for the versions of a model that is being loaded, whose number nobody knows yet."""
        slots, self._free = self._free[:MOST_VERSIONS], self._free[MOST_VERSIONS:]
        return slots

    def give_back(self, slots: Iterable[int], fronts: Iterable[int]) -> None:
        """Have slots be free that were reserved in vain, once these fronts have nothing of them any more."""
        having = set(fronts)
        for slot in slots:
            self._going[slot] = set(having)
            if not having:
                self.gone(slot, -1)

    def commit(
        self, name: str, versions: Sequence[str], fronts: Iterable[int], reserved: Sequence[int] = ()
    ) -> dict[str, int]:
        """Have these versions of a name be served, and no others; their slots, which are the first of `reserved`.

        `fronts` are those that may have the versions that were served until now. Raises LookupError where too few slots
        were reserved.
        """
        if len(reserved) < len(versions):
            raise LookupError
        for served in [served for served in self.served if served[0] == name]:
            self.give_back([self.served.pop(served)], fronts)
            self.planned.pop(served, None)
            self.scaled.pop(served, None)
        gone = [served for served in self.preferred if served[0] == name and served[1] not in versions]
        for served in gone:
            del self.preferred[served]
        slots = dict(zip(versions, reserved, strict=False))
        self._free += reserved[len(versions) :]
        self.served |= {(name, version): slot for version, slot in slots.items()}
        self.failed.pop(name, None)
        return slots

    def dropped(self, model: Served, why: str) -> None:
        """Note that a model could not be loaded at the start."""
        slot = self.served.pop(model, None)
        if slot is not None:
            self._free.append(slot)
        self.failed[model[0]] = why

    def gone(self, slot: int, front: int) -> None:
        """Note that a front has nothing of a slot any more."""
        having = self._going.get(slot)
        if having is not None:
            having.discard(front)
            if not having:
                del self._going[slot]
                self._free.append(slot)

    def front_ended(self, front: int) -> None:
        for slot in list(self._going):
            self.gone(slot, front)
