"""When calls of a model are lent to another front: no worker idles in any front while a call waits.

The board tells which fronts have free workers, and which have waiting calls. Its figures may be a moment old. A call
that is lent by a wrong figure waits in another queue than it would have; it takes no other harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from panglot.engine.call import DONE, Call, MemoryQuota
from panglot.engine.call import QUEUED as WAITS
from panglot.engine.engine import LocalEngine
from panglot.engine.pools.among_fronts import PoolAmongFronts
from panglot.engine.pools.queue import Policy, Queue
from panglot.engine.workers.worker import READY
from panglot.fronts.board import (
    BORROWED,
    FREE,
    JOBS_CAPACITY,
    JOBS_FREE,
    LENDS,
    LENT,
    LOAD,
    QUEUED,
    QUEUED_BYTES,
    WAITING,
    Board,
    BoardRow,
)
from panglot.fronts.board import READY as FRONT_READY
from panglot.fronts.lending.lent_call import LentCall

LEAST_US = 150.0
"""Microseconds of a script call. For a shorter call the way to another front costs more than it saves."""
HOME = 0
"""The front that has all workers of a model, where the model has fewer workers than there are fronts."""
LOOK_AGAIN = 0.02
"""Seconds after which a front without workers looks again whether the front with the workers takes calls."""
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

    def lend(self, lending: CallLending, calls: list[Call], now: float) -> None:
        """Send calls, which the other front runs."""

    def offer(self, slot: int, free: int) -> None:
        """Tell that so many calls of a model could begin here."""

    def tell_poison(self, slot: int, kind: bytes, length: int, died: bool) -> None:
        """Tell of a kind of calls that has killed a worker, or was answered."""

    def give_back(self, calls: list[LentCall]) -> None:
        """Return calls of the other front that wait here."""

    def cancel(self, call: Call) -> bool:
        """Cancel a call that was lent to this front; False when it has no such call."""

    def hold(self, call: Call, paused: bool) -> bool:
        """Pause or resume the stream of a call that was lent to this front; False when it has no such call."""


class CallLending:
    """Lends the waiting calls of one model, and offers its idle workers. An `Elsewhere`."""

    def __init__(
        self,
        slot: int,
        front: int,
        board: Board,
        engine: LocalEngine,
        siblings: Callable[[], Mapping[int, Lendable]],
        quota: MemoryQuota,
    ) -> None:
        """`slot` is the number of the model, which is the same in all fronts. `quota` counts for its calls."""
        self.slot = slot
        self.engine = engine
        self.quota = quota
        self._board = board
        self._own = board.model_row(front, slot)
        self._front = board.row(front)
        self._siblings = siblings
        self._rows = [board.model_row(other, slot) for other in range(board.fronts)]
        self._cells = board.cells
        self._start = self._own.start
        self._load = self._front.start + LOAD
        self._waiting_elsewhere = [row.start + WAITING for row in self._rows if row.start != self._own.start]
        """Where the cells are that are read and written after every answer: see `idle`."""
        self._pool = _first_pool(engine)
        self._dispatcher = self._pool.dispatcher
        self._has_workers = engine.context.share.has_workers
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Lend and borrow from now on. Only once the model is loaded: its script may ask for other pools."""
        self.engine.home_is_ready = self.home_is_ready
        self._own[LENDS] = 1
        self._dispatcher.elsewhere = self
        self.engine.poison.tell = self._tell_poison
        self.idle(self.engine.clock())

    def end(self) -> None:
        """Lend and borrow no more: the model goes. Calls that other fronts lent before are run, or returned."""
        self._dispatcher.elsewhere = None
        if self._timer is not None:
            self._timer.cancel()
        for cell in (FREE, WAITING, QUEUED, QUEUED_BYTES, JOBS_FREE, JOBS_CAPACITY, LENDS):
            self._own[cell] = 0

    @property
    def is_needed(self) -> bool:
        """Whether another front, which has no workers, may still lend calls of the model to this one."""
        share = self.engine.context.share
        others = (front for front in range(share.fronts) if front != share.front)
        lend = any(self._board.model_row(front, self.slot)[LENDS] for front in others)
        return share.at_home and share.has_workers and lend

    @property
    def may_return(self) -> bool:
        """Whether a call that is not taken here can run where it came from."""
        return not self.engine.context.share.at_home

    # As Elsewhere

    def pumped(self, now: float) -> None:
        """Tell other fronts how much waits, and lend to fronts with free workers. If nothing waits, do as `idle`."""
        dispatcher = self._dispatcher
        waiting = dispatcher.queue.length
        if not self._has_workers:
            self._pass_on(now)
            return
        if dispatcher.background is not None:
            self.publish_jobs()
            self._lend_jobs(dispatcher.background.queue, now)
        if not waiting and dispatcher.ahead and self.are_free() and dispatcher.call_back(now):
            # A batch waits in a busy worker, behind another batch. A free worker of another front begins it at once.
            waiting = dispatcher.queue.length
        if not waiting and dispatcher.ahead:
            self._publish()
            self._own[FREE], self._own[WAITING] = 0, dispatcher.ahead
            return
        if not waiting:
            self.idle(now)
            return
        self._publish()
        cells, start, is_worth_it = self._cells, self._start, self._is_worth_it(now)
        cells[start + FREE], cells[start + WAITING] = 0, waiting if is_worth_it else 0
        if is_worth_it:
            self._push(now)
        elif self._timer is None:
            # The calls that run now may take longer than earlier ones. Without the timer nothing would notice it.
            self._timer = asyncio.get_running_loop().call_later(LONG, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        if self._dispatcher.queue.length:
            self._dispatcher.schedule_pump()

    def idle(self, now: float) -> None:
        """Tell other fronts how many calls could begin here. If calls wait elsewhere, offer to the neediest front."""
        cells, start = self._cells, self._start
        if cells[start + QUEUED] or cells[start + WAITING]:
            self._publish()
            cells[start + WAITING] = 0
        if cells[self._load] >= BUSY or self.engine.closed:
            # Nobody lends to a busy front, so there is nothing to compute or to offer. A front that stops still borrows
            # while its engine takes calls: others have requests to answer before they stop.
            if cells[start + FREE]:
                cells[start + FREE] = 0
            return
        # Only idle workers: a worker with a call may be busy for long, and a lent call would wait behind that.
        free = sum([worker.at_once for worker in self._pool.workers if not worker.in_flight and worker.takes_calls])
        cells[start + FREE] = free
        if free:
            for waiting in self._waiting_elsewhere:
                if cells[waiting]:
                    self._offer(free)
                    break

    def _offer(self, free: int) -> None:
        """Offer free workers to the front with the most calls that wait."""
        waiting = {sibling: self._row(sibling)[WAITING] for sibling in self._siblings().values()}
        neediest = max(waiting, key=lambda sibling: waiting[sibling], default=None)
        if neediest is not None and waiting[neediest] > 0 and not neediest.paused:
            # Either free for all or offered to one front, never both: the same worker would be promised twice.
            self._own[FREE] = 0
            neediest.offer(self.slot, free)

    def _pass_on(self, now: float) -> None:
        """Lend all waiting calls to the front that has the workers. They wait here while that front is not ready."""
        queue, home = self._dispatcher.queue, self._siblings().get(HOME)
        # Before they are sent: otherwise that front would count them as waiting in both fronts.
        self._own[QUEUED] = self._own[QUEUED_BYTES] = 0
        while queue.length and home is not None and not home.paused and self.home_is_ready():
            self._lend_from(queue, home, queue.length, now)
        self._publish()
        if queue.length and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_AGAIN, self._look_again)

    def home_is_ready(self) -> bool:
        """Whether the front that has the workers takes calls."""
        return bool(self._board.row(HOME)[FRONT_READY])

    def are_free(self) -> bool:
        return any(self._row(sibling)[FREE] > 0 for sibling in self._siblings().values())

    def cancel(self, call: Call) -> bool:
        return any(sibling.cancel(call) for sibling in self._siblings().values())

    def pause_stream(self, call: Call, paused: bool) -> bool:
        return any(sibling.hold(call, paused) for sibling in self._siblings().values())

    def admits(self, call: Call) -> bool:
        """Whether all fronts together have space for a call to wait: the limits of the queue are the server's."""
        rows, settings, queue = self._rows, self.engine.settings, self._dispatcher.queue
        # The board has the figures of this front's last pump, and calls have come since.
        self._publish()
        length, size = sum(row[QUEUED] for row in rows), sum(row[QUEUED_BYTES] for row in rows)
        return length < settings.queue and (not queue.length or size + call.size <= settings.queue_bytes)

    def _publish(self) -> None:
        cells, start, queue = self._cells, self._start, self._dispatcher.queue
        cells[start + QUEUED], cells[start + QUEUED_BYTES] = queue.length + self._dispatcher.ahead, queue.bytes

    def look(self) -> None:
        """Publish figures that change without a call. A front that was too busy to borrow may be idle by now."""
        self.publish_jobs()
        dispatcher = self._dispatcher
        if self._has_workers and not (dispatcher.waiting or dispatcher.background):
            self.idle(self.engine.clock())

    # Jobs

    def publish_jobs(self) -> None:
        """Tell other fronts how many jobs this front can have. The number grows by itself as requests become fewer."""
        own = self._own
        own[JOBS_FREE], own[JOBS_CAPACITY] = self._dispatcher.free_for_jobs(), self.engine.job_capacity()

    def jobs_elsewhere(self) -> int:
        """How many jobs of the model other fronts can have at a time."""
        return sum(self._row(sibling)[JOBS_CAPACITY] for sibling in self._siblings().values())

    def job_ended(self) -> None:
        """Note that another front has run a job to its end: it may take the next one."""
        self._dispatcher.schedule_pump()

    def _lend_jobs(self, queue: Queue, now: float) -> None:
        """Lend the jobs that no worker here takes now to fronts whose requests leave workers free for jobs."""
        siblings = [sibling for sibling in self._siblings().values() if not sibling.paused]
        for sibling in sorted(siblings, key=lambda sibling: -self._row(sibling)[JOBS_FREE]):
            row = self._row(sibling)
            row[JOBS_FREE] -= self._lend_from(queue, sibling, row[JOBS_FREE], now)

    # Poison

    def _tell_poison(self, kind: bytes, length: int, died: bool) -> None:
        for sibling in self._siblings().values():
            sibling.tell_poison(self.slot, kind, length, died)

    def heard_poison(self, kind: bytes, length: int, died: bool) -> None:
        """Count a death, or an answer, in another front like one in this front."""
        if not died:
            self.engine.poison.clear(kind)
        elif self.engine.poison.suspect(kind, length):
            # No log line: the front where the worker died writes one.
            for pool in self.engine.pools:
                pool.refuse_poison()

    # CallLending

    def count_borrowed(self) -> None:
        """Count a call of another front that this one runs."""
        self._front[BORROWED] += 1

    def offered(self, sibling: Lendable, free: int, now: float) -> None:
        """Lend by the offer of another front. The rest of the offer is free for all fronts."""
        if not self._dispatcher.queue.length and self._dispatcher.ahead:
            self._dispatcher.call_back(now)
        self._row(sibling)[FREE] = free - self._lend(sibling, free, now)

    def come_back(self, calls: list[Call]) -> None:
        """Have calls run here that another front did not begin: it could not take them."""
        waiting = [call for call in calls if call.state != WAITS]
        for call in waiting:
            call.id = self.engine.new_id()
        self._dispatcher.put_back(waiting)

    def lost(self, calls: list[Call]) -> None:
        """Decide the fate of calls that were lent to a front which has died: it may have begun them."""
        for call in calls:
            call.id = self.engine.new_id()
        self._pool.come_back(calls)

    def _push(self, now: float) -> None:
        for sibling in self._siblings().values():
            row = self._rows[sibling.index]
            free = row[FREE]
            if free > 0 and self._board.row(sibling.index)[LOAD] < BUSY and not sibling.paused:
                row[FREE] = free - self._lend(sibling, free, now)
                if not self._dispatcher.queue.length:
                    return

    def _lend(self, sibling: Lendable, free: int, now: float) -> int:
        """Lend as many requests as another front can begin; returns how many these were."""
        queue = self._dispatcher.queue
        lent = self._lend_from(queue, sibling, free, now)
        self._own[WAITING] = queue.length
        return lent

    def _lend_from(self, queue: Queue, sibling: Lendable, free: int, now: float) -> int:
        """Lend up to so many calls of a queue, and give back calls of the other front. Returns how many these were."""
        calls, returned, size = list[Call](), list[LentCall](), 0
        first = queue.oldest()
        # Never lent: a call of a third front, and a call that must run alone because it may kill a worker.
        while first is not None and len(calls) + len(returned) < free and not first.alone:
            if isinstance(first, LentCall):
                if first.borrower.index != sibling.index:
                    break
                # It was lent by an old figure, and waits here behind a call that takes long.
                returned.append(first)
            else:
                size += first.size
                if calls and size > MOST_BYTES:
                    break
                calls.append(first)
            queue.take(Policy(1), now)
            first = queue.oldest()
        if calls:
            self._front[LENT] += len(calls)
            sibling.lend(self, calls, now)
        for call in returned:
            # DONE in this front alone. The other front has its own call, which goes on to wait there.
            call.state = DONE
            self.engine.finished(call)
        if returned:
            sibling.give_back(returned)
        return len(calls) + len(returned)

    def _is_worth_it(self, now: float) -> bool:
        """Whether calls take long enough here for the way to another front to pay."""
        if self.engine.closed:
            return False
        for worker in self._pool.workers:
            if worker.state == READY and now - worker.busy_since <= LONG:
                took = worker.batches.seconds * 1e6 if worker.batched else worker.pace.service_us
                return took >= LEAST_US
        # No worker here takes calls now, or each is busy with a long call. How long earlier calls took does not matter.
        return True

    def _row(self, sibling: Lendable) -> BoardRow:
        return self._rows[sibling.index]


def _first_pool(engine: LocalEngine) -> PoolAmongFronts:
    """The pool from whose queue alone calls are lent."""
    pool = engine.pools[0]
    assert isinstance(pool, PoolAmongFronts)
    return pool
