"""Calls that wait in a worker for a place, as the requests of a sequence do until another sequence ends.

If models have made these calls, and the requests that would end the other sequences go through the same models, they
may all wait for each other. Then the newest of these calls is refused, so that the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from panglot.engine import made_calls_progress
from panglot.engine.call import RUNNING, Call
from panglot.engine.made_calls import MadeCall

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.workers.worker import Worker


class Places:
    """Who calls an engine whose workers have places, and so who may have these places."""

    def __init__(self) -> None:
        self._last_of_clients = 0
        """The id of the last call that no model of this front has made."""
        self._last: WeakKeyDictionary[LocalEngine, int] = WeakKeyDictionary()
        """The id of the last call, by the engine whose worker has made it."""
        self._holders: WeakKeyDictionary[Worker, set[LocalEngine | None]] = WeakKeyDictionary()
        """Who may have the places of a worker. The calls that wait there refer to this set."""

    def called(self, call: Call) -> None:
        """Note who has made a call that was just submitted."""
        if isinstance(call, MadeCall):
            self._last[_caller(call)] = call.id
        else:
            self._last_of_clients = call.id

    def on_event(self, worker: Worker, event: dict[str, Any]) -> None:
        """Note which calls wait for a place, and refuse those that would wait for ever."""
        held, since = set(event["items"]), event["since"]
        holders = self._holders.setdefault(worker, set())
        holders.clear()
        # Ids grow: whoever has a place has called since then.
        holders.update(engine for engine, last in self._last.items() if last >= since)
        if self._last_of_clients >= since or not holders:
            holders.add(None)
        calls = [call for call in worker.in_flight.values() if isinstance(call, MadeCall)]
        for call in calls:
            if call.id not in held:
                call.held_by = None
                call.owner.held.pop(call, None)
        new = [call for call in calls if call.id in held and call.held_by is None and call.state == RUNNING]
        for call in new:
            call.held_by = holders
            call.owner.held[call] = None
        for call in new:
            _refuse_if_hopeless(call)


def look_again(engine: LocalEngine) -> None:
    """Refuse the newest call of an engine that waits for a place, if a further request to this engine cannot run."""
    newest = next(reversed(engine.made_calls.held), None)
    if newest is not None:
        _refuse_if_hopeless(newest)


def _caller(call: MadeCall) -> LocalEngine:
    return call.worker_calling.pool.engine


def _refuse_if_hopeless(call: MadeCall) -> None:
    """Refuse a call where requests wait for good because of it: the requests that could end a sequence among them."""
    if call.state == RUNNING and any(map(_is_hopeless, _callers(call))):
        call.owner.refuse_place(call)


def _callers(call: MadeCall) -> Iterator[LocalEngine]:
    """The engine that has made a call, and the engines of the calls that this one was made for."""
    yield _caller(call)
    for item in call.parents:
        parent = call.worker_calling.in_flight.get(item)
        if isinstance(parent, MadeCall):
            yield from _callers(parent)


def _is_hopeless(engine: LocalEngine) -> bool:
    """Whether calls wait in an engine, and it begins no further call. While none waits, the places may be idle ones."""
    waits = engine.main.dispatcher.queue.length or any(worker.waiting_behind for worker in engine.main.workers)
    return bool(waits) and not made_calls_progress.can_run(engine)
