"""Loading and unloading models in all fronts: a model is served by every front, or by none.

A change has two phases. First every front loads the model, and does not serve it yet. One front loads it alone before
the others, so that a script that cannot load fails once, and downloads once. When all fronts have loaded the model, all
are told to serve it; if one could not, all forget it. A front that dies meanwhile is left out. Its successor starts
when the change is over, with the models of that moment. So no change begins while a front starts. If the first front
dies, the change begins again with its successor: the first front may have all workers of the model.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from panglot.errors import StartError
from panglot.fronts import messages
from panglot.fronts.front_process import FrontProcess
from panglot.fronts.messages import Changed, ChangeWanted, Message, Staged
from panglot.fronts.models.catalog import Catalog

Tell = Callable[[FrontProcess, Message], None]
HOME = 0
"""The front that has all workers of some models. Without it they cannot be loaded."""
STOPPING = Staged(0, [], "the server is stopping")


@dataclass(eq=False)
class ModelChange:
    """A model that is being loaded or unloaded."""

    id: int
    name: str
    load: bool
    asker: FrontProcess
    asker_pid: int
    number: int
    """The number of the change in the front that asks."""
    slots: list[int] = field(default_factory=list)
    """Reserved for its versions."""
    versions: list[str] | None = None
    """The versions that the first front found in the folder; None: it has not told them yet."""
    staging: set[int] = field(default_factory=set)
    """The fronts that load."""
    switching: set[int] = field(default_factory=set)
    """The fronts that were told to serve the loaded model, and have not confirmed it."""
    is_committed: bool = False


class Changes:
    """Owns the changes that are under way and those that wait, in the parent."""

    def __init__(self, fronts: Sequence[FrontProcess], catalog: Catalog, tell: Tell) -> None:
        self.catalog = catalog
        self._fronts = fronts
        self._tell = tell
        self._ids = itertools.count(1)
        self._waiting: deque[ModelChange] = deque()
        self._running: dict[int, ModelChange] = {}
        self._forks: list[Callable[[], None]] = []
        """Fronts that are to start when no change is under way."""
        self._is_stopping = False

    # Fronts that start and die

    def fork_when_still(self, fork: Callable[[], None]) -> None:
        """Start a front now, or once no change is under way: it begins with the models of that moment."""
        if self._running:
            self._forks.append(fork)
        else:
            fork()

    def front_loaded(self) -> None:
        self._begin()

    def front_ended(self, index: int) -> None:
        """Go on without a front that has died."""
        self.catalog.front_ended(index)
        # First, with a new id for each: late answers of other fronts to the old id then count no more.
        for change in list(self._running.values()) if index == HOME else ():
            if change.load and not change.is_committed:
                self._begin_again(change)
        for change in list(self._running.values()):
            if index in change.staging:
                change.staging.discard(index)
                self._go_on(change)
            if index in change.switching:
                change.switching.discard(index)
                self._end_if_switched(change)
        self._begin()

    def stop(self) -> None:
        """Give up changes that are not committed: the server stops."""
        self._is_stopping = True
        self._forks.clear()
        waiting = [*self._waiting, *(change for change in self._running.values() if not change.is_committed)]
        self._waiting.clear()
        for change in waiting:
            self._fail(change, STOPPING)

    # What fronts say

    def heard(self, front: FrontProcess, message: Message) -> None:
        """Take a message of a front about models that come, go or are scaled."""
        match message:
            case messages.Dropped(name, version, why):
                self.catalog.dropped((name, version), why)
            case messages.ChangeWanted():
                self._wanted(front, message)
            case messages.ScaleWanted():
                self._scale(message)
            case messages.PreferWanted(name, version):
                self._prefer(name, version)
            case messages.Staged():
                self._staged(front, message)
            case messages.Switched(change):
                self._switched(front, change)
            case messages.Gone(slot):
                self.catalog.gone(slot, front.index)

    def _wanted(self, front: FrontProcess, wish: ChangeWanted) -> None:
        change = ModelChange(next(self._ids), wish.name, wish.load, front, front.pid, wish.number)
        if self._is_stopping:
            self._fail(change, STOPPING)
            return
        self._waiting.append(change)
        self._begin()

    def _staged(self, front: FrontProcess, staged: Staged) -> None:
        """Note that a front has loaded a model, or could not."""
        change = self._running.get(staged.change)
        if change is None or front.index not in change.staging:
            # The change was given up while this front loaded.
            return
        change.staging.discard(front.index)
        if staged.problem:
            self._fail(change, staged)
        elif change.versions not in (None, staged.versions):
            problem = f"the versions of '{change.name}' in the folder changed while they were loaded"
            self._fail(change, Staged(change.id, [], problem, fix="load it again"))
        else:
            if change.versions is None:
                change.versions = staged.versions
                change.staging = {index for index in self._loaded() if index != front.index}
                self._tell_all(messages.StageModel(change.id, change.name, change.slots), change.staging)
            self._go_on(change)

    def _switched(self, front: FrontProcess, number: int) -> None:
        change = self._running.get(number)
        if change is not None:
            change.switching.discard(front.index)
            self._end_if_switched(change)

    def _scale(self, wish: messages.ScaleWanted) -> None:
        """Set the number of workers in all fronts together. All fronts get all such messages in the same order."""
        served = wish.name, wish.version
        if served in self.catalog.served:
            self.catalog.scaled[served] = wish.least, wish.most
            self._tell_all(messages.Scale(wish.name, wish.version, wish.least, wish.most))

    def _prefer(self, name: str, version: str) -> None:
        if (name, version) in self.catalog.served:
            # Removed first, so that it becomes the last entry.
            self.catalog.preferred.pop((name, version), None)
            self.catalog.preferred[name, version] = None
            self._tell_all(messages.Prefer(name, version))

    # Deciding

    def _begin(self) -> None:
        """Begin the changes that wait, one of each model; none while a front starts."""
        for change in list(self._waiting):
            is_starting = self._forks or any(front.pid and not front.loaded for front in self._fronts)
            if is_starting or HOME not in self._loaded():
                return
            # A change that ends at once in `_go_on` calls this method again by `_end`: then others wait no longer.
            if change in self._waiting and change.name not in {other.name for other in self._running.values()}:
                self._waiting.remove(change)
                self._running[change.id] = change
                change.slots = self.catalog.reserve() if change.load else []
                self._go_on(change)
                self._tell_loading()

    def _go_on(self, change: ModelChange) -> None:
        """Take the next step of a change, unless the answer of a front is missing."""
        if change.staging or change.is_committed:
            return
        if change.load and change.versions is None:
            change.staging = set(self._loaded()[:1])
            if change.staging:
                self._tell_all(messages.StageModel(change.id, change.name, change.slots), change.staging)
            else:
                self._fail(change, Staged(change.id, [], "no front is left to load it", fix="try again later"))
            return
        self._commit(change)

    def _begin_again(self, change: ModelChange) -> None:
        """Load a model again from the beginning: the front that has all workers of some models has died."""
        self._drop(change, "")
        del self._running[change.id]
        self._waiting.appendleft(
            ModelChange(next(self._ids), change.name, True, change.asker, change.asker_pid, change.number)
        )
        self._start_fronts()

    def _drop(self, change: ModelChange, why: str) -> None:
        self.catalog.give_back(change.slots, (front.index for front in self._fronts if front.pid))
        self._tell_all(messages.Drop(change.id, change.name, change.slots, why))

    def _commit(self, change: ModelChange) -> None:
        """Put a change into force. A front that is forked from now on begins with it."""
        there = set(self._loaded())
        try:
            slots = self.catalog.commit(change.name, change.versions or [], there, change.slots)
        except LookupError:
            problem = "this server has as many models, or versions of one, as several fronts can have"
            self._fail(change, Staged(change.id, [], problem, fix="unload one, or serve with --fronts 1"))
            return
        change.is_committed, change.switching = True, there
        news = messages.Switch(change.id, slots) if change.load else messages.Unload(change.id, change.name)
        self._tell_all(news, there)
        self._end_if_switched(change)

    def _end_if_switched(self, change: ModelChange) -> None:
        if change.is_committed and not change.switching:
            self._end(change, Changed(change.number))

    def _fail(self, change: ModelChange, failed: Staged) -> None:
        """Have all fronts forget the model of a change, and tell the reason to the front that asked."""
        is_new = all(name != change.name for name, _ in self.catalog.served)
        why = StartError(failed.problem, file=failed.file, line=failed.line, fix=failed.fix).sentence()
        if change.id in self._running:
            if is_new and change.load:
                self.catalog.failed[change.name] = why
            self._drop(change, why)
        self._end(change, Changed(change.number, failed.problem, failed.file, failed.line, failed.fix))

    def _end(self, change: ModelChange, answer: Changed) -> None:
        # Another process has this index if the front that asked has died: it knows nothing of the number.
        if change.asker.pid == change.asker_pid:
            self._tell(change.asker, answer)
        if self._running.pop(change.id, None) is None:
            return
        self._tell_loading()
        self._start_fronts()
        self._begin()

    def _start_fronts(self) -> None:
        """Start the fronts that wait for it, unless a change is under way."""
        if not self._running:
            forks, self._forks = self._forks, []
            for fork in forks:
                fork()

    def _tell_loading(self) -> None:
        names = sorted({change.name for change in self._running.values() if change.load})
        self._tell_all(messages.Loading(names))

    def _tell_all(self, message: Message, indexes: set[int] | None = None) -> None:
        for front in self._fronts:
            if front.pid and (indexes is None or front.index in indexes):
                self._tell(front, message)

    def _loaded(self) -> list[int]:
        """The fronts that serve."""
        return [front.index for front in self._fronts if front.pid and front.loaded]
