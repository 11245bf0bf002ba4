"""Which worker gets which calls, and when: at once if it is free, early if all are busy and enough calls wait."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from panglot.engine.call import RUNNING, Call
from panglot.engine.context import EngineContext
from panglot.engine.pools import ahead
from panglot.engine.pools.background import NO_JOB, ON_CREDIT, BackgroundQueue, InteractiveLoad
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.pools.queue import MANY, Policy, Queue
from panglot.engine.pools.recalling import Recalls
from panglot.engine.pools.retries import Retries
from panglot.engine.workers.lent_results import Lending
from panglot.engine.workers.supervisor import Supervisor
from panglot.engine.workers.worker import Worker

LEAST_WAITING = 8
"""Calls that may wait in a later pool of a pipeline before the previous pool pauses."""


class Dispatcher:
    """The queue of one pool, and the sending of its calls. The pool that owns it hears the answers."""

    def __init__(
        self,
        context: EngineContext,
        plan: PoolPlan,
        lending: Lending,
        supervisor: Supervisor,
        new_id: Callable[[], int],
    ) -> None:
        """Send to the workers of `supervisor`; `new_id` names a call anew, `lending` lends buffers for results."""
        settings = context.settings
        self.settings = settings
        self.metrics = context.metrics
        self.clock = context.clock
        self.lending = lending
        self.supervisor = supervisor
        self.workers = supervisor.workers
        self.new_id = new_id
        self.next: Dispatcher | None = None
        self.previous: Dispatcher | None = None
        self.counted = context.metrics.pools[plan.name]
        self.queue = Queue(settings.queue, settings.queue_bytes)
        self.retries = Retries(context.package.tries_elsewhere)
        self.sends_ahead = settings.ahead and plan.last
        self.ahead = 0
        """Calls that workers were sent ahead and have not begun."""
        self.load = InteractiveLoad()
        """How many requests there are at a time, jobs not counted."""
        self.background: BackgroundQueue | None = None
        """The jobs that wait or run here; None while there are none."""
        self.recalls = Recalls(self.workers, self.clock, self.take_back)
        self._pump_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def accept(self, call: Call) -> bool:
        """Queue a call; False when the queue is full. Calls that were sent ahead count as waiting."""
        if call.background:
            self._take_job(call)
            return True
        if self.ahead and self.waiting >= self.queue.max_items:
            return False
        if not self.queue.offer(call):
            return False
        self.schedule_pump()
        return True

    def schedule_pump(self) -> None:
        """Send at the end of this turn of the loop, so that all requests of the turn may share a batch."""
        if not self._pump_scheduled:
            self._pump_scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump_at(self, moment: float, now: float) -> None:
        """Send once the oldest call has waited long enough for company. One timer serves all workers."""
        if self._timer is not None:
            if self._timer_at <= moment:
                return
            self._timer.cancel()
        self._timer_at = moment
        self._timer = asyncio.get_running_loop().call_later(moment - now, self._pump_now)

    def _pump_now(self) -> None:
        # Timers may come a moment early: the pump must be free to set the next one.
        self._timer = None
        self.schedule_pump()

    def _pump(self) -> None:
        """Give each worker with free slots its share of the calls that wait."""
        # First: if anything below raises, the next `schedule_pump` must still schedule.
        self._pump_scheduled = False
        now = self.clock()
        if self.retries.waiting:
            self._retry(now)
        if self.background is not None:
            self._pump_beside_jobs(self.background, now)
            return
        if not self.queue.length and not self._call_back(now):
            return
        workers = self.workers
        many_wait = self.queue.length >= len(workers) and self._sends_next()
        takers = [(worker, slots) for worker in workers if (slots := worker.free_slots(now, many_wait)) > 0]
        if not takers and self.sends_ahead:
            self._send_ahead(now)
        if len(takers) > 1:
            # The least busy first: when few calls wait, the last workers get none.
            takers.sort(key=lambda taker: len(taker[0].in_flight))
        for position, (worker, slots) in enumerate(takers):
            # Computed anew for each worker: the calls that the worker before has got are in flight now.
            wanted = self._wanted()
            if wanted <= 0:
                break
            share = math.ceil(wanted / (len(takers) - position))
            self._feed(worker, slots, share, now)
        # The previous pool may have paused because this queue was long.
        if self.previous is not None and self.previous.queue.length:
            self.previous.schedule_pump()

    def _wanted(self) -> int:
        """How many waiting calls may start now: no more than the next pool of the pipeline wants."""
        wanted = self.queue.length
        return wanted if self.next is None else min(wanted, self.next.demand(self._in_flight()))

    # Jobs

    def _take_job(self, call: Call) -> None:
        self.background = self.background or self._new_background()
        self.background.queue.append(call)
        self.schedule_pump()

    def _new_background(self) -> BackgroundQueue:
        return BackgroundQueue(self.settings.jobs_share, self._most_jobs(), self.clock())

    def _most_jobs(self) -> int:
        """How many workers jobs may use at a time."""
        return self.settings.jobs_workers or MANY

    def _pump_beside_jobs(self, background: BackgroundQueue, now: float) -> None:
        """Give each worker with free slots requests or a job, by the rule of `BackgroundQueue`."""
        background.look(self.workers, now)
        if not background.queue.length and not background.running:
            # The last job has ended: from here on requests pay nothing for jobs.
            self.background = None
            self.schedule_pump()
            return
        if not self.queue.length:
            self._call_back(now)
        takers = [worker for worker in self.workers if worker.free_slots(now) > 0 and not background.occupies(worker)]
        takers.sort(key=lambda worker: len(worker.in_flight))
        need = self.load.need(background.capacity)
        for position, worker in enumerate(takers):
            idle = worker.slots > 1 or not worker.in_flight
            job = background.next(need, bool(self.queue.length)) if idle else NO_JOB
            if job != NO_JOB:
                most = 1 if worker.slots > 1 else worker.free_slots(now)
                # Without batches one job at a time: after each, requests may need the worker.
                self._feed(worker, most, 1 if not worker.batched else MANY, now, background.queue)
                background.started(worker, job == ON_CREDIT, now)
            elif (wanted := self._wanted()) > 0:
                share = math.ceil(wanted / (len(takers) - position))
                self._feed(worker, worker.free_slots(now), share, now)
        if background.queue.length or background.running:
            self._pump_at(now + background.PAUSE, now)
        if self.previous is not None and self.previous.queue.length:
            self.previous.schedule_pump()

    def _sends_next(self) -> bool:
        """Whether a worker may be sent a short call before it has answered the last."""
        # A call that is called back may have begun, and then runs twice. One that is not called back may wait for long.
        return self.settings.ahead and (self.settings.rerun or self._is_alone())

    def _is_alone(self) -> bool:
        """Whether there is only one worker, so that no other could run its calls."""
        return len(self.workers) == 1

    def _send_ahead(self, now: float) -> None:
        """All workers are busy: send a full batch to each that has no next one, if there are enough for all of them."""
        if not self._is_alone() and not self.settings.rerun:
            # A batch that is called back may have begun, and then runs twice. With one worker nothing is called back.
            return
        short_of_work = ahead.short_of_work(self.workers)
        while short_of_work:
            worker = self.workers[short_of_work[0]]
            if not ahead.is_enough(self.queue, worker, self.settings.max_batch_bytes, len(short_of_work)):
                return
            self._feed(worker, worker.max_batch, MANY, now)
            short_of_work.pop(0)
            self.count_ahead()

    def _call_back(self, now: float) -> bool:
        """When nothing waits, take back a batch that was sent ahead, for a free worker. True if there was one."""
        if not self.ahead or not any(worker.free_slots(now) > 0 for worker in self.workers):
            return False
        return self.call_back(now)

    def call_back(self, now: float) -> bool:
        """Take back a batch that was sent ahead, unless it begins soon. True if there was one."""
        if not self.settings.rerun:
            return False
        latest = ahead.to_call_back(self.workers, now)
        if latest < 0:
            return False
        self.take_back(self.workers[latest], self.workers[latest].batches.begun)
        return True

    def count_ahead(self) -> None:
        """Count anew what workers were sent ahead and have not begun."""
        # Not counted up and down: such a call may begin, be cancelled, be recalled, or be lost with its worker.
        calls = (call for worker in self.workers if worker.sent_ahead for call in worker.in_flight.values())
        self.ahead = sum(call.ahead and call.state == RUNNING for call in calls)

    @property
    def waiting(self) -> int:
        """Calls that nobody works on: in the queue, and sent ahead."""
        return self.queue.length + self.ahead

    def backlog(self, now: float) -> tuple[int, float]:
        """How many calls wait for a worker of this pool, and for how many seconds the oldest has.

        No call counts while the next pool of the pipeline has enough work. The time that a batch may wait for company
        does not count either.
        """
        oldest = self.queue.oldest()
        if oldest is None or (self.next is not None and self.next.demand(self._in_flight()) <= 0):
            return 0, 0.0
        since = max(oldest.arrived, oldest.dispatched) + self.settings.max_wait_ms / 1000
        return self.waiting, max(0.0, now - since)

    def waiting_calls(self) -> list[Call]:
        """The requests that wait, and then the jobs."""
        return self.queue.waiting() + (self.background.queue.waiting() if self.background is not None else [])

    def _in_flight(self) -> int:
        return sum(len(worker.in_flight) for worker in self.workers)

    def demand(self, coming: int) -> int:
        """How many more calls the previous pool may start, so that the workers here stay busy. It runs `coming` now."""
        if self.queue.bytes >= self.queue.max_bytes:
            return 0
        batch = max((worker.max_batch if worker.batched else 2 for worker in self.workers), default=1)
        return max(LEAST_WAITING, 2 * batch * self.supervisor.wanted) - self.queue.length - coming

    def _feed(self, worker: Worker, most: int, share: int, now: float, queue: Queue | None = None) -> None:
        """Send the next batch to a worker that may take `most` calls, unless the batch waits for company."""
        queue = self.queue if queue is None else queue
        wait = self.settings.max_wait_ms / 1000 if worker.batched else 0.0
        first = queue.oldest()
        # This call may be in its last try, which must not be spent on a worker that has just died.
        if first is not None and first.alone and not worker.lives():
            return
        if worker.lanes and worker.batched and first is not None:
            most = min(most, worker.most_of(first.lane))
            wait = wait if most > 1 else 0.0
        policy = Policy(most, self.settings.max_batch_bytes, wait, worker.batched)
        batch, reason, again = queue.take(policy, now, idle=not worker.in_flight, share=share)
        if not batch:
            if again:
                self._pump_at(again, now)
            return
        metrics = self.metrics
        metrics.released[reason] += 1
        counted = self.counted
        counted.batch_size.add(len(batch) if worker.batched else 1)
        worker.run(batch, now, not worker.batched, self.lending.lend if self.lending.size else None)
        # With `rerun` only: a call that is taken back may have begun, and then runs twice.
        if len(worker.in_flight) > 1 and not self.recalls.watching and self.settings.rerun:
            self.recalls.watch()
        # Calls that were sent ahead still wait: `Pool._begin` counts their time.
        if not batch[0].ahead:
            for call in batch:
                counted.queue_time.add(call.queued_us)

    def _retry(self, now: float) -> None:
        """Send the calls that are to be tried again to workers with free slots."""
        self.retries.drop_cancelled()
        lend = self.lending.lend if self.lending.size else None
        for call, worker in self.retries.ready(self.workers, lambda worker: worker.free_slots(now)):
            worker.run([call], now, not worker.batched, lend)

    def take_back(self, worker: Worker, begun: int) -> None:
        """Put the calls that a worker has not begun back at the head of the queue."""
        calls = worker.recall(begun)
        for call in calls:
            # A new id: a late answer under the old one is ignored, also where the same worker gets this call again.
            call.id = self.new_id()
        self.put_back(calls)
        self.count_ahead()

    def hand_over(self, call: Call) -> None:
        """Queue a call in the next pool of the pipeline, where it is never refused."""
        assert self.next is not None
        if call.background:
            self.next._take_job(call)
            return
        self.next.queue.append(call)
        self.next.schedule_pump()

    def put_back(self, calls: list[Call]) -> None:
        """Put calls that run again at the head of the queue."""
        jobs = [call for call in calls if call.background]
        if jobs:
            self.background = self.background or self._new_background()
            self.background.queue.put_back(jobs)
            calls = [call for call in calls if not call.background]
        self.queue.put_back(calls)
        self.schedule_pump()

    def remove(self, call: Call) -> None:
        """Take a call that was answered or cancelled out of the queue. Its state must be DONE already."""
        if call.background:
            if self.background is not None:
                self.background.queue.remove(call)
            return
        self.queue.remove(call)
        if self.previous is not None and self.previous.queue.length:
            self.previous.schedule_pump()
