"""A pool with calls that may run in other fronts of the server too. A server with one front does not use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from panglot.engine.call import Call
from panglot.engine.context import EngineContext
from panglot.engine.pools import after_death
from panglot.engine.pools.dispatching import Dispatcher
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.pools.pool import Pool
from panglot.engine.pools.queue import MANY, Queue
from panglot.engine.pools.recalling import Recalls
from panglot.engine.workers.lent_results import Lending
from panglot.engine.workers.supervisor import Supervisor
from panglot.engine.workers.worker import Worker
from panglot_worker.line import wire


class Elsewhere(Protocol):
    """Other fronts of the server. A call that one of them runs is RUNNING here, and no worker of this front has it."""

    def pumped(self, now: float) -> None:
        """Note that the workers of this front have got all the calls that they can take."""

    def idle(self, now: float) -> None:
        """Note that a worker has nothing to do, and that nothing waits."""

    def admits(self, call: Call) -> bool:
        """Whether a call may wait here although this front's share of the queue is full: other shares have space."""

    def are_free(self) -> bool:
        """Whether another front has a free worker, to which waiting calls can be lent."""

    def cancel(self, call: Call) -> bool:
        """Cancel a call that runs in another front; False when it does not. Its state must be DONE already."""

    def pause_stream(self, call: Call, paused: bool) -> bool:
        """Pause or resume the stream of a call that runs in another front; False when it does not."""


class RecallsAmongFronts(Recalls):
    """Takes calls back for the workers of other fronts too."""

    def __init__(
        self,
        workers: Sequence[Worker],
        clock: Callable[[], float],
        take_back: Callable[[Worker, int], None],
        others_are_free: Callable[[], bool],
    ) -> None:
        super().__init__(workers, clock, take_back)
        self._others_are_free = others_are_free

    def _another_may(self, worker: Worker, now: float) -> bool:
        return self._others_are_free() or super()._another_may(worker, now)


class DispatcherAmongFronts(Dispatcher):
    """Gives waiting calls to its own workers first. The rest may go to other fronts."""

    def __init__(
        self,
        context: EngineContext,
        plan: PoolPlan,
        lending: Lending,
        supervisor: Supervisor,
        new_id: Callable[[], int],
    ) -> None:
        super().__init__(context, plan, lending, supervisor, new_id)
        self._share = share = context.share
        settings = context.settings
        self.queue = Queue(share.part(settings.queue), share.part(settings.queue_bytes))
        self.elsewhere: Elsewhere | None = None
        """The other fronts; None before the model is loaded, and in every pool of a pipeline but the first."""
        self.recalls = RecallsAmongFronts(self.workers, self.clock, self.take_back, self._others_are_free)

    def accept(self, call: Call) -> bool:
        """Queue a call; False when the queue of the whole server is full."""
        if super().accept(call):
            return True
        # This front's share is full, but the limits are those of the whole server.
        if self.elsewhere is None or not self.elsewhere.admits(call):
            return False
        self.queue.append(call)
        self.schedule_pump()
        return True

    def _pump(self) -> None:
        super()._pump()
        if self.elsewhere is not None:
            self.elsewhere.pumped(self.clock())

    def free_for_jobs(self) -> int:
        """How many jobs of another front could begin here, or wait here for credit."""
        background = self.background or self._new_background()
        background.look(self.workers, now := self.clock())
        idle = sum(worker.free_slots(now) > 0 and not worker.in_flight for worker in self.workers)
        return background.free(idle, self.load.need(background.capacity), bool(self.queue.length))

    def _most_jobs(self) -> int:
        most = self.settings.jobs_workers
        return self._share.exactly(most) if most else MANY

    def _is_alone(self) -> bool:
        # Where other fronts have workers, one of these may run the calls that a worker here was sent.
        return self._share.at_home and super()._is_alone()

    def _others_are_free(self) -> bool:
        return self.elsewhere is not None and self.elsewhere.are_free()


class PoolAmongFronts(Pool):
    """Finds the calls that it cancels or pauses also in other fronts, and offers its idle workers to them."""

    dispatchers = DispatcherAmongFronts
    dispatcher: DispatcherAmongFronts

    def on_replies(self, worker: Worker, replies: list[wire.Reply]) -> None:
        """Take a worker's replies. If no call waits here now, the worker may take one of another front."""
        super().on_replies(worker, replies)
        if worker.in_flight:
            return
        dispatcher = self.dispatcher
        waits = dispatcher.queue.length or dispatcher.retries.waiting or dispatcher.ahead or dispatcher.background
        if dispatcher.elsewhere is not None and not waits:
            dispatcher.elsewhere.idle(self.clock())

    def cancel(self, call: Call) -> None:
        super().cancel(call)
        elsewhere = self.dispatcher.elsewhere
        if elsewhere is not None and self._worker_of(call) is None:
            elsewhere.cancel(call)

    def pause_stream(self, call: Call, paused: bool) -> None:
        super().pause_stream(call, paused)
        elsewhere = self.dispatcher.elsewhere
        if elsewhere is not None and self._worker_of(call) is None:
            elsewhere.pause_stream(call, paused)

    def come_back(self, calls: list[Call]) -> None:
        """Decide about calls that were lost with another front, which may have begun them."""
        self._move(after_death.come_home(calls, self.settings.rerun), after_death.LOST_FRONT)

    def _run_again(self, calls: list[Call]) -> None:
        # First: if this front dies too, the front that lent the call must not run it a third time.
        for call in calls:
            if call.lent and call.killers:
                call.tell_death()
        super()._run_again(calls)
