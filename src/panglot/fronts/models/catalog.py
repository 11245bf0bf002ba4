"""Which models the server serves now: all fronts agree on it, and a front that is forked begins with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Served = tuple[str, str]
"""The name and the version of a model."""
MOST_VERSIONS = 16
"""Versions of a model that can be loaded together while the server serves."""


class Catalog:
    """Owned by the parent. A front reads the copy of the moment in which it was forked.

    A slot is the number of a model on the board and between fronts. It is used again only when its former model has
    ended in all fronts, and as late as possible.
    """

    def __init__(self, models: Sequence[Served], slots: int, fixed: Iterable[str] = ()) -> None:
        self.served: dict[Served, int] = {model: slot for slot, model in enumerate(models)}
        self.slots = slots
        """How many there are."""
        self.failed: dict[str, str] = {}
        """Models that are not served because they could not be loaded, and why."""
        self.fixed = frozenset(fixed)
        """Models that were named on the command line. They are never unloaded."""
        self.is_loaded = False
        """Whether a front has loaded all models once. From then on a front serves the same models or does not start."""
        self.scaled: dict[Served, tuple[int, int]] = {}
        """The numbers of workers that clients have asked for, at least and at most."""
        self.preferred: dict[Served, None] = {}
        """The versions that clients have preferred for requests without a version, the latest last."""
        self.planned = dict(self.served)
        """The slots of the models in the plan that the server was started with."""
        self._free = list(range(len(self.served), slots))
        self._going: dict[int, set[int]] = {}
        """By slot of a model that is served no longer: the fronts that still have the model."""

    def reserve(self) -> list[int]:
        """Slots for the versions of a model that is being loaded. Their number is not known before."""
        slots, self._free = self._free[:MOST_VERSIONS], self._free[MOST_VERSIONS:]
        return slots

    def give_back(self, slots: Iterable[int], fronts: Iterable[int]) -> None:
        """Free slots once none of these fronts has a model in them any more."""
        having = set(fronts)
        for slot in slots:
            self._going[slot] = set(having)
            if not having:
                self.gone(slot, -1)

    def commit(
        self, name: str, versions: Sequence[str], fronts: Iterable[int], reserved: Sequence[int] = ()
    ) -> dict[str, int]:
        """Serve these versions of a name, and no others. Returns their slots, which are the first of `reserved`.

        `fronts` may have the versions that were served until now. Raises LookupError if too few slots were reserved.
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
        """Note that the model of a slot has ended in a front."""
        having = self._going.get(slot)
        if having is not None:
            having.discard(front)
            if not having:
                del self._going[slot]
                # To the end: late messages about the former model then meet no new one.
                self._free.append(slot)

    def front_ended(self, front: int) -> None:
        for slot in list(self._going):
            self.gone(slot, front)
