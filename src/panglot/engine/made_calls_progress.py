"""Whether an engine can take a further call, or waits for ever: models that call each other may all wait."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from panglot.engine.call import QUEUED

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.made_calls import CallForOthers
    from panglot.engine.workers.worker import Worker


def can_run(engine: LocalEngine, seen: frozenset[LocalEngine] = frozenset()) -> bool:
    """Whether a call that waits in an engine will be run, by what is known now.

    It will never run when every worker runs a call that waits for a further call, and this further call waits in an
    engine with the same problem. `seen` are the engines that this search has visited. It is also taken to run where
    nothing is known of some workers that may run it: its deadline ends it if they wait too.
    """
    if engine in seen:
        # The calls wait in a circle.
        return False
    # A call that waits for the next pool of a pipeline has no worker: who waits for whom is not known by the workers.
    if len(engine.pools) > 1 or not _has_all_workers(engine):
        return True
    # Workers that have called no model wait for none. A worker that starts, or may be added, is free soon.
    if not engine.made_calls.by_parent:
        return True
    supervisor, workers = engine.main.supervisor, engine.main.workers
    if supervisor.count.most > len(workers):
        return True
    return any(_comes_free(worker, engine, seen | {engine}) for worker in workers)


def _has_all_workers(engine: LocalEngine) -> bool:
    """Whether all workers of a model belong to this front. Others may be lent the calls that wait here."""
    share = engine.context.share
    return share.fronts == 1 or (share.at_home and share.has_workers)


def _comes_free(worker: Worker, engine: LocalEngine, seen: frozenset[LocalEngine]) -> bool:
    if not worker.takes_calls or len(worker.in_flight) < (worker.open_slots if worker.slots > 1 else 1):
        return True
    # The calls behind these have not begun: they cannot have made calls.
    begun = itertools.islice(worker.in_flight.values(), worker.begun)
    return any(_goes_on(engine.made_calls.by_parent.get(call.id), seen) for call in begun)


def _goes_on(made: set[CallForOthers] | None, seen: frozenset[LocalEngine]) -> bool:
    """Whether a call that has made others goes on: it waits for none, or for one that goes on.

    A call that waits for a place goes on once somebody who has a place calls again. A call that another front runs is
    taken to go on.
    """
    if not made:
        return True
    for call in made:
        engine = call.callee.engine
        if call.state == QUEUED:
            if can_run(engine, seen):
                return True
        elif call.held_by is not None:
            if any(holder is None or can_run(holder, seen) for holder in call.held_by):
                return True
        elif _goes_on(engine.made_calls.by_parent.get(call.id), seen):
            return True
    return False
