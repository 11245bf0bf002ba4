"""An engine for scripts that remember earlier calls: all calls with the same key run in the same worker.

With one worker there is nothing to decide, and no key is read. With several fronts, the first front has all workers. It
reads the keys of the calls that the other fronts pass on.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from panglot.engine.call import Call, Fault
from panglot.engine.engine import LocalEngine
from panglot.engine.places import Places
from panglot.engine.pools.among_fronts import DispatcherAmongFronts, PoolAmongFronts
from panglot.engine.pools.dispatching import Dispatcher
from panglot.engine.pools.pool import Pool
from panglot.engine.pools.queue import Queue
from panglot.engine.workers.worker import Worker
from panglot.errors import StartError
from panglot.settings.counts import WorkerCount

KeyOf = Callable[[Call], str | Fault]
"""The key of a call; a fault where it cannot be read."""


def no_key(call: Call) -> str | Fault:
    """The key of every call, until `key_of` is set."""
    return ""


class DispatcherByKey(Dispatcher):
    """Gives each worker the calls with its own keys. The lane of a call is the index of its worker."""

    def _pump(self) -> None:
        if self.supervisor.count.most == 1:
            super()._pump()
            return
        self._pump_scheduled = False
        now = self.clock()
        self._send(self.queue.waiting(), self.queue, now)
        background = self.background
        if background is None:
            return
        background.look(self.workers, now)
        if background.queue.length:
            # Jobs have keys too: they get what requests leave free in their own workers.
            self._send(background.queue.waiting(), background.queue, now, background.more())
            self._pump_at(now + background.PAUSE, now)
        elif not background.running:
            self.background = None

    def _send(self, calls: list[Call], queue: Queue, now: float, most: int | None = None) -> None:
        """Send calls that wait in a queue, `most` of them, to the workers with their keys that have free slots."""
        waiting: dict[str, list[Call]] = {}
        for call in calls:
            waiting.setdefault(call.lane, []).append(call)
        lend = self.lending.lend if self.lending.size else None
        for worker in self.workers:
            own = waiting.get(str(worker.index), [])[: max(0, worker.free_slots(now))][:most]
            if own:
                most = None if most is None else most - len(own)
                del waiting[str(worker.index)]
                worker.run(own, now, not worker.batched, lend)
                for call in own:
                    # After `run`, which changes their state: the queue tells by it which calls still wait.
                    queue.remove(call)
                    self.counted.queue_time.add(call.queued_us)


class PoolByKey(Pool):
    """A pool in which every worker has its own keys."""

    dispatchers = DispatcherByKey
    engine: KeyedEngine

    def on_event(self, worker: Worker, event: dict[str, Any]) -> None:
        if event.get("type") == "held":
            self.engine.places.on_event(worker, event)
        else:
            super().on_event(worker, event)

    def on_death(self, worker: Worker) -> None:
        # First: a call that runs again elsewhere waits for no place any more.
        self.engine.places.on_event(worker, {"items": [], "since": 0})
        super().on_death(worker)


class DispatcherByKeyAmongFronts(DispatcherAmongFronts, DispatcherByKey):
    """Gives its own workers their calls by key. A front without workers passes on what waits."""


class PoolByKeyAmongFronts(PoolAmongFronts, PoolByKey):
    """A pool in which every worker has its own keys, for calls that come from several fronts."""

    dispatchers = DispatcherByKeyAmongFronts
    dispatcher: DispatcherByKeyAmongFronts


class KeyedEngine(LocalEngine):
    """Sends all calls with one key to one worker. A successor of this worker has its keys, but remembers nothing."""

    pool_kind = PoolByKey
    pool_kind_among_fronts = PoolByKeyAmongFronts
    takes_handed = False
    key_of: KeyOf = staticmethod(no_key)
    """Set by code that knows how requests of the package are written."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.places = Places()

    def submit(self, call: Call) -> Fault | None:
        """Submit a call to the worker that has its key; the fault, where the call is refused."""
        workers = self.main.supervisor.count.most
        if workers > 1 and self.context.share.has_workers:
            key = self.key_of(call)
            if isinstance(key, Fault):
                call.release()
                return key
            # Not `hash`, which differs from process to process: the same key must lead to the same worker after a
            # restart.
            call.lane = str(zlib.crc32(key.encode("utf-8", "replace")) % workers)
        fault = super().submit(call)
        if fault is None:
            self.places.called(call)
        return fault

    def scale(self, count: WorkerCount) -> None:
        """Raise StartError: with another number of workers, keys would lead to other workers."""
        raise StartError("the number of workers is fixed: each has requests of its own, which it remembers")
