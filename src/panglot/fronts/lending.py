"""When calls are lent to another front, for one model: no worker idles anywhere while a call waits.

Who has free workers and who has waiting calls is read off the board. It may be a moment old: a call that is lent on a
wrong hint waits in another queue than it would have, and no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from panglot.engine.call import QUEUED as WAITS
from panglot.engine.call import Call
from panglot.engine.engine import LocalEngine
from panglot.engine.pools.among_fronts import DispatcherAmongFronts, PoolAmongFronts
from panglot.engine.pools.queue import Policy
from panglot.engine.workers.worker import READY, Worker
from panglot.fronts.board import BORROWED, FREE, LENT, LOAD, QUEUED, QUEUED_BYTES, WAITING, Board, BoardRow
from panglot.fronts.lent_call import LentCall

LEAST_US = 150.0
"""Microseconds of a script call below which it is not worth the way to another front."""
LONG = 0.002
"""Seconds after which a call that runs is taken for a long one."""
BUSY = 700
"""Thousandths of its time that a front may be at work and still be lent calls."""

MOST_BYTES = 32 << 20
"""Bytes of the bodies that are copied to a link at a time: the rest waits for the next worker that is free."""


class Lendable(Protocol):
    """Another front, as far as lending needs it."""

    index: int
    paused: bool

    def lend(self, slot: int, calls: list[Call], now: float) -> None:
        """Send calls, which the other front runs."""

    def offer(self, slot: int, free: int) -> None:
        """Say that so many calls of a model could begin here."""

    def tell_poison(self, slot: int, kind: bytes, length: int, died: bool) -> None:
        """Tell of a kind of calls that has killed a worker, or was answered."""

    def cancel(self, call: Call) -> bool:
        """Cancel a call that it was lent; False when it has no such call."""

    def hold(self, call: Call, paused: bool) -> bool:
        """Pause or resume the stream of a call that it was lent; False when it has no such call."""


class CallLending:
    """Lends the waiting calls of one model, and offers its idle workers. An `Elsewhere`."""

    def __init__(
        self, slot: int, front: int, board: Board, engine: LocalEngine, siblings: Callable[[], Mapping[int, Lendable]]
    ) -> None:
        """`slot` is the position of the model in the plan, which is the same in all fronts."""
        self.slot = slot
        self.engine = engine
        self._board = board
        self._own = board.model_row(front, slot)
        self._front = board.row(front)
        self._siblings = siblings
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Lend and borrow from now on. Not before the model is loaded: its script may ask for other pools."""
        self._dispatcher.elsewhere = self
        self.engine.poison.tell = self._tell_poison
        self.idle(self.engine.clock())

    @property
    def _dispatcher(self) -> DispatcherAmongFronts:
        return self._pool.dispatcher

    @property
    def _pool(self) -> PoolAmongFronts:
        """The first pool: calls are lent from its queue alone."""
        pool = self.engine.pools[0]
        assert isinstance(pool, PoolAmongFronts)
        return pool

    # As Elsewhere

    def pumped(self, now: float) -> None:
        """Tell the others what waits, and lend it where a worker is free; with nothing waiting, as `idle`."""
        own, waiting = self._own, self._dispatcher.queue.length
        self._publish()
        if not waiting:
            self.idle(now)
            return
        own[FREE] = 0
        own[WAITING] = waiting if self._is_worth_it(now) else 0
        if own[WAITING]:
            self._push(now)
        elif self._timer is None:
            # What runs now may take longer than those before, and nothing else would come by to notice.
            self._timer = asyncio.get_running_loop().call_later(LONG, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        if self._dispatcher.queue.length:
            self._dispatcher.schedule_pump()

    def idle(self, now: float) -> None:
        """Tell the others what is free; if calls wait anywhere, offer it to the front with the most."""
        own = self._own
        self._publish()
        free = sum(worker.at_once for worker in self.engine.pools[0].workers if _is_idle(worker))
        own[FREE], own[WAITING] = free, 0
        if not free or self._front[LOAD] >= BUSY or self.engine.draining:
            return
        waiting = {sibling: self._row(sibling)[WAITING] for sibling in self._siblings().values()}
        neediest = max(waiting, key=lambda sibling: waiting[sibling], default=None)
        if neediest is not None and waiting[neediest] > 0 and not neediest.paused:
            # Either free for all or offered to one front, never both: the same worker would be promised twice.
            own[FREE] = 0
            neediest.offer(self.slot, free)

    def are_free(self) -> bool:
        return any(self._row(sibling)[FREE] > 0 for sibling in self._siblings().values())

    def cancel(self, call: Call) -> bool:
        return any(sibling.cancel(call) for sibling in self._siblings().values())

    def pause_stream(self, call: Call, paused: bool) -> bool:
        return any(sibling.hold(call, paused) for sibling in self._siblings().values())

    def admits(self, call: Call) -> bool:
        """Whether all fronts together have space for a call to wait: the limits of the queue are the server's."""
        rows = [self._board.model_row(front, self.slot) for front in range(self._board.fronts)]
        settings, queue = self.engine.settings, self._dispatcher.queue
        # What the board says of this front is that of the last pump.
        self._publish()
        length, size = sum(row[QUEUED] for row in rows), sum(row[QUEUED_BYTES] for row in rows)
        return length < settings.queue and (not queue.length or size + call.size <= settings.queue_bytes)

    def _publish(self) -> None:
        self._own[QUEUED], self._own[QUEUED_BYTES] = self._dispatcher.waiting, self._dispatcher.queue.bytes

    # Poison

    def _tell_poison(self, kind: bytes, length: int, died: bool) -> None:
        for sibling in self._siblings().values():
            sibling.tell_poison(self.slot, kind, length, died)

    def heard_poison(self, kind: bytes, length: int, died: bool) -> None:
        """Count a death, or an answer, of another front as if it had been ours."""
        if not died:
            self.engine.poison.clear(kind)
        elif self.engine.poison.suspect(kind, length):
            # The front of the last death says so in the log.
            for pool in self.engine.pools:
                pool.refuse_poison()

    # CallLending

    def count_borrowed(self) -> None:
        """Count a call of another front that this one runs."""
        self._front[BORROWED] += 1

    def offered(self, sibling: Lendable, free: int, now: float) -> None:
        """Use what another front offers. What is not used is free for all."""
        self._row(sibling)[FREE] = free - self._lend(sibling, free, now)

    def come_back(self, calls: list[Call]) -> None:
        """Have calls run here that another front did not begin: it could not take them."""
        waiting = [call for call in calls if call.state != WAITS]
        for call in waiting:
            call.id = self.engine.new_id()
        self._dispatcher.put_back(waiting)

    def lost(self, calls: list[Call]) -> None:
        """Decide what becomes of calls whose front has died: it may have begun them."""
        for call in calls:
            call.id = self.engine.new_id()
        self._pool.come_back(calls)

    def _push(self, now: float) -> None:
        for sibling in self._siblings().values():
            row = self._row(sibling)
            free = row[FREE]
            if free > 0 and self._board.row(sibling.index)[LOAD] < BUSY and not sibling.paused:
                row[FREE] = free - self._lend(sibling, free, now)
                if not self._dispatcher.queue.length:
                    return

    def _lend(self, sibling: Lendable, free: int, now: float) -> int:
        """Lend as many calls as another front can begin; returns how many these were."""
        queue, calls, size = self._dispatcher.queue, list[Call](), 0
        first = queue.oldest()
        # Never: a call that is lent already, and one that must run alone because it may kill a worker.
        while first is not None and len(calls) < free and not first.alone and not isinstance(first, LentCall):
            size += first.size
            if calls and size > MOST_BYTES:
                break
            batch, _, _ = queue.take(Policy(1), now)
            calls += batch
            first = queue.oldest()
        if calls:
            self._front[LENT] += len(calls)
            sibling.lend(self.slot, calls, now)
        self._own[WAITING] = queue.length
        return len(calls)

    def _is_worth_it(self, now: float) -> bool:
        """Whether calls take long enough here for the way to another front to pay."""
        if self.engine.closed:
            return False
        ready = [worker for worker in self.engine.pools[0].workers if worker.state == READY]
        if not ready or all(now - worker.busy_since > LONG for worker in ready):
            # Nobody here takes calls now, or each is busy with a call that takes long, whatever those before took.
            return True
        took = ready[0].batches.seconds * 1e6 if ready[0].batched else ready[0].pace.service_us
        return took >= LEAST_US

    def _row(self, sibling: Lendable) -> BoardRow:
        return self._board.model_row(sibling.index, self.slot)


def _is_idle(worker: Worker) -> bool:
    return not worker.in_flight and worker.takes_calls
