"""One pool: it takes the answers of its workers, and decides about the calls of a dead worker."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from panglot.engine.call import DONE, QUEUED, RUNNING, Call, CallProgress, Fault, Step
from panglot.engine.context import EngineContext
from panglot.engine.memory.buffers import SharedBuffer
from panglot.engine.memory.pool_memory import PoolMemory
from panglot.engine.pools import after_death, pipeline
from panglot.engine.pools.abandoned import FINISH, AbandonedRuns
from panglot.engine.pools.dispatching import Dispatcher
from panglot.engine.pools.fetches import Fetches
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.pools.slow_readers import SlowReaders
from panglot.engine.workers.events import note
from panglot.engine.workers.lent_results import Lending
from panglot.engine.workers.supervisor import Supervisor
from panglot.engine.workers.worker import HUNG, LOST, RETIRED, SICK, Worker
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine

log = logging.getLogger("panglot.engine")
OF_CALLS = ("progress", "printed")
"""Types of events that concern one call."""


class Pool:
    """One pool: its `supervisor` has the workers, its `dispatcher` queues and sends, and the pool takes the answers."""

    dispatchers: type[Dispatcher] = Dispatcher

    def __init__(self, engine: LocalEngine, context: EngineContext, plan: PoolPlan, memory: PoolMemory) -> None:
        settings = context.settings
        self.engine = engine
        self.settings = settings
        self.metrics = context.metrics
        self.clock = context.clock
        self.plan = plan
        self.memory = memory
        self.counted = context.metrics.pools[plan.name]
        self.in_pipeline = not (plan.first and plan.last)
        self.lending = Lending(settings.handoff_slot if memory.writes is not None else 0, settings.share_from)
        self.large = settings.share_from if self.lending.learns else wire.MAX_FRAME
        self.title = f"{plan.name} worker" if plan.name else "worker"
        self.max_reply = (settings.max_output if plan.last else settings.request_memory) + wire.MAX_HEAD
        self.event_log = context.event_log
        self.fetches = Fetches(settings, context.metrics)
        self.slow_readers = SlowReaders(settings.slow_reader)
        self.abandoned = AbandonedRuns(settings, context.metrics, context.clock)
        self.supervisor = Supervisor(self, engine, context, memory)
        self.workers = self.supervisor.workers
        self.dispatcher = self.dispatchers(context, plan, self.lending, self.supervisor, engine.new_id)

    async def stop(self, seconds: float) -> None:
        """End all workers; those that do not end in time are killed."""
        self.fetches.close()
        await self.supervisor.stop(seconds)

    # The lives of workers

    def on_ready(self, worker: Worker, ready: dict[str, Any]) -> None:
        self.supervisor.on_ready(worker, ready)
        self.engine.pool_ready(self, ready)
        self.dispatcher.schedule_pump()

    def on_writable(self) -> None:
        """Note that a worker reads again."""
        self.dispatcher.schedule_pump()

    def on_death(self, worker: Worker) -> None:
        # First: the calls that it ran may run again, and then call other models anew.
        self.engine.made_calls.worker_ended(worker)
        self.supervisor.on_death(worker)
        # Last: the sleep of the model looks at the workers that are left.
        self.engine.worker_ended(self)

    # Answers

    def on_replies(self, worker: Worker, replies: list[wire.Reply]) -> None:
        """Give each reply to its call: an answer, a chunk of one, a result for the next pool, or addresses to fetch.

        Raises WireError for a reply that breaks the protocol; its call has been answered by then.
        """
        now, before = self.clock(), len(worker.in_flight)
        # `run_timeout` counts anew from here, unless the worker runs several calls at once: see `time_limits`.
        worker.busy_since = self.counted.last_reply = now
        if replies and (replies[0].rows > 1 or (worker.batched and len(replies) > 1)):
            self.counted.runs.add(replies, worker.max_batch if worker.batched else replies[0].rows)
        self._hear(worker, replies, now)
        if worker.stream_pause.call is not None:
            # The paused stream may have ended in these replies: then its client would never resume the worker.
            worker.stream_pause.check()
        if self.abandoned.runs:
            self.abandoned.replied(worker, replies)
        self.supervisor.restarts.fruitless = 0
        # Only a final reply takes its call out of `in_flight`: a part of a stream does not bring the next batch nearer.
        left = len(worker.in_flight)
        if left and self.abandoned.on_leave != FINISH:
            # The worker has begun its next calls. They may have been cancelled too late for it to skip them.
            self.abandoned.look(worker)
        if not worker.batched:
            worker.pace.settle()
        elif worker.batches.answered(before - left, left, now):
            self._begin(worker, now)
        dispatcher = self.dispatcher
        if dispatcher.queue.length or dispatcher.retries.waiting or dispatcher.ahead or dispatcher.background:
            dispatcher.schedule_pump()

    def _hear(self, worker: Worker, replies: list[wire.Reply], now: float) -> None:
        in_flight, finished, lengths = worker.in_flight, self.engine.finished, self.engine.poison.lengths
        call: Call | None = None
        try:
            for reply in replies:
                if reply.flags & wire.MORE:
                    # The stream stays in `in_flight`: if it is broken, the worker's death answers it.
                    call = None
                    self._pass_chunk(worker, reply, now)
                    continue
                # Out of the worker's calls first: whatever fails below, `_broken` answers this call, and the death of
                # the worker does not answer it a second time.
                call = in_flight.pop(reply.id, None)
                # Before the state is looked at: a lent buffer comes back with an unwanted answer too.
                shared = worker.leases.lent or reply.flags & wire.SHARED
                buffer = self.lending.replied(worker, reply) if shared else None
                # None: the item was recalled, or never sent. Not RUNNING: it was cancelled, or is overdue.
                if call is None or call.state != RUNNING:
                    self._unwanted(worker, reply, buffer, call)
                    continue
                if reply.flags & wire.FETCH:
                    self._fetch(call, reply, buffer)
                    continue
                self._count(worker, reply)
                if reply.flags & wire.RETRY and self._retried(call, worker, buffer):
                    continue
                if self.in_pipeline or reply.flags & wire.PASS:
                    reply = self._leave(call, reply, buffer, now)
                if not reply.flags & wire.PASS:
                    if buffer is not None:
                        reply = reply._replace(body=call.answered_in(buffer, len(reply.body)))
                    if lengths:
                        self.engine.poison.survived(call)
                    # In this order: `reply` may run code that cancels the call, which must find it DONE; and its body
                    # is released before the answer is written, so that the two do not count together.
                    call.state = DONE
                    finished(call)
                    call.reply(reply)
        except wire.WireError as error:
            raise self._broken(worker, call, reply, error) from None
        except Exception as error:
            self._broken(worker, call, reply, error)
            raise

    def _broken(self, worker: Worker, call: Call | None, reply: wire.Reply, error: Exception) -> wire.WireError:
        """Answer a call whose reply is unusable, and return the error with the name of the call.

        The call has left `in_flight`, so the death of the worker, which follows, does not answer it.
        """
        if call is None:
            return wire.WireError(f"{error} (in a reply to item {reply.id})")
        worker.accused = True
        if call.state == RUNNING:
            self._conclude(call, after_death.BROKEN)
        return wire.WireError(f"{error} (in its reply to item {reply.id}, request {call.request_id.decode('latin-1')})")

    def _begin(self, worker: Worker, now: float) -> None:
        """Note that a worker has begun with the batch it was sent ahead."""
        self.dispatcher.count_ahead()
        for call in worker.in_flight.values():
            call.ahead, call.dispatched = False, now
            call.queued_us = int((now - call.arrived) * 1e6)
            self.counted.queue_time.add(call.queued_us)

    def _retried(self, call: Call, worker: Worker, buffer: SharedBuffer | None) -> bool:
        """Whether the call is given to another worker instead of being answered."""
        if not self.dispatcher.retries.take(call, worker, self.workers):
            return False
        if buffer is not None:
            buffer.release()
        # A new id, for the same reason as in `_fetch`.
        call.id = self.engine.new_id()
        self.metrics.reruns["retried"] += 1
        return True

    def _unwanted(self, worker: Worker, reply: wire.Reply, buffer: SharedBuffer | None, call: Call | None) -> None:
        """Drop an answer nobody waits for: its client has gone, or the item was recalled and runs elsewhere."""
        if buffer is not None:
            buffer.release()
        if call is not None:
            # A call that was not run, or not to its end, says nothing about the pace of the worker.
            if not reply.flags & wire.UNRUN:
                self._count(worker, reply)
        elif reply.id in worker.recalled:
            # A recall and a reply can cross: the worker has skipped the item, or had answered it before.
            worker.recalled.remove(reply.id)
        else:
            raise wire.WireError("a reply to an item that was never sent, or is answered already")

    def _leave(self, call: Call, reply: wire.Reply, buffer: SharedBuffer | None, now: float) -> wire.Reply:
        """Note the times of a call that is done in this pool of a pipeline. With PASS, queue it in the next pool.

        Returns the reply; the last pool's has the times of the whole pipeline.
        """
        if reply.flags & wire.PASS and self.dispatcher.next is None:
            if buffer is not None:
                buffer.release()
            raise wire.WireError("a result is handed on, and there is no next pool")
        run_us = int((now - call.dispatched) * 1e6)
        self.counted.run_time.add(run_us)
        call.trail.append(Step(self.plan.name, call.queued_us, run_us, reply.times))
        if not reply.flags & wire.PASS:
            call.queued_us = sum(step.queued_us for step in call.trail)
            decode, preprocess, inference, postprocess, encode = zip(*(step.times for step in call.trail), strict=True)
            times = (sum(decode), sum(preprocess), sum(inference), sum(postprocess), sum(encode))
            return reply._replace(times=times)
        # Before `become`: the digest is that of the body which the client sent.
        self.engine.poison.hand_on(call)
        # A suspicion in this pool says nothing about the next pool, which runs other code.
        call.alone, call.killers = False, 0
        # Before `hand_over`: the queue counts the new size, and a cancellation looks in the next pool.
        call.become(reply.body, buffer)
        call.arrived, call.state = now, QUEUED
        call.pool_index += 1
        self.dispatcher.hand_over(call)
        return reply

    def _pass_chunk(self, worker: Worker, reply: wire.Reply, now: float) -> None:
        call = worker.in_flight.get(reply.id)
        # The worker may have begun a stream before it read that the item is recalled.
        if reply.flags != wire.MORE or (call is None and reply.id not in worker.recalled):
            raise wire.WireError("a part of an answer that nobody can wait for")
        if call is not None and call.state == RUNNING:
            # A stream has no deadline once it has begun: `run_timeout` counts anew from each part.
            call.chunks += 1
            call.dispatched = now
            call.deadline = math.inf
            call.reply(reply)

    def _count(self, worker: Worker, reply: wire.Reply) -> None:
        """Add the stage times of a reply to the metrics, and to the pace of the worker."""
        decode, preprocess, inference, postprocess, encode = reply.times
        stages = self.metrics.stages
        stages[0].add(decode)
        stages[4].add(encode)
        if inference or not self.in_pipeline:
            stages[2].add(inference)
        if preprocess:
            stages[1].add(preprocess)
        if postprocess:
            stages[3].add(postprocess)
        if not worker.batched:
            worker.pace.learn(decode + preprocess + inference + postprocess + encode)
        worker.served += 1

    def on_event(self, worker: Worker, event: dict[str, Any]) -> None:
        """Act on an event: a failure, a wish for a pipeline, a sick device; `events.note` does the rest."""
        kind = event.get("type")
        if kind in OF_CALLS:
            self._tell_call(worker.in_flight.get(event["item"]), event)
        elif kind == "slots":
            worker.change_slots(event["slots"])
            self.dispatcher.schedule_pump()
        elif kind in ("cancel_call", "took"):
            self.engine.made_calls.on_event(worker, event)
        elif kind == "replace":
            # The worker reads on until STOP, and answers all calls that it was sent before.
            worker.retire(event["reason"])
        elif kind == "failure":
            call = worker.in_flight.get(int(event.get("item", 0)))
            request_id = call.request_id.decode("latin-1") if call else ""
            message, traceback = str(event.get("message", "")), str(event.get("traceback", ""))
            self.engine.trouble(request_id, message, traceback, worker.index)
        elif kind == "sick" and not event["certain"]:
            # The worker serves until its successor is ready. A worker that is certain gets no more calls: see `note`.
            self.supervisor.replace_sick(worker, str(event["message"]))
        elif kind == "release":
            self.supervisor.release_retained(worker)
        elif kind == "pipeline":
            if not self.engine.divide(event["pools"]):
                worker.failure = {"problem": pipeline.too_late(event["pools"]), "fix": "restart the server"}
        else:
            note(worker, event, self.metrics, self.supervisor.worker_log_fields(worker), self.event_log)
            if kind == "retire" and worker.slots == 1 and worker.in_flight:
                # It has answered all calls that it ran, and begins none of these.
                self.dispatcher.take_back(worker, begun=0)

    def _tell_call(self, call: Call | None, event: dict[str, Any]) -> None:
        """Pass on progress or printed text of a call; its client may have gone, or have the answer."""
        if call is None or call.state != RUNNING:
            return
        if event["type"] == "progress":
            call.report(CallProgress(event["fraction"], event.get("text", "")))
        else:
            call.printed(event["source"], event["text"])

    def on_call(self, worker: Worker, payload: memoryview) -> None:
        """Make the call of another model that a worker wants."""
        self.engine.made_calls.begin(worker, payload)

    def on_free(self, worker: Worker, payload: memoryview) -> None:
        for item_id in wire.item_ids(payload):
            worker.leases.release(item_id)

    def on_large(self, replies: list[wire.Reply]) -> None:
        self.lending.learn(replies)

    def on_metrics(self, deltas: dict[str, float]) -> None:
        for name, delta in deltas.items():
            self.metrics.script[name] += delta

    def _fetch(self, call: Call, reply: wire.Reply, buffer: SharedBuffer | None) -> None:
        """Fetch the addresses that a worker asks for. Then the call runs again, with the fetched bytes."""
        if buffer is not None:
            buffer.release()
            raise wire.WireError("addresses to fetch in shared memory")
        uris = wire.uris(reply.body)
        # A new id: the worker owns the body under the old one until it says FREE, and may be sent this call again.
        call.id = self.engine.new_id()
        self.fetches.begin(call, uris, self._again)

    def _again(self, call: Call) -> None:
        """Put a call at the head of the queue once its addresses have been fetched."""
        # For `Dispatcher.backlog`: the time of the fetches is no wait for a worker.
        call.dispatched = self.clock()
        self._run_again([call])

    # Cancelling

    def cancel(self, call: Call) -> None:
        """Cancel a running call: it has its answer, or nobody waits for one. Its state must be DONE already."""
        self.fetches.cancel(call)
        worker = self._worker_of(call)
        # No worker has it: its fetches have ended just now, or it waits in `retries`, which drops it by its state.
        if worker is None:
            return
        if call.ahead:
            self.dispatcher.count_ahead()
        # A running batch goes on for its other calls, and a script may ask which of its calls are cancelled.
        # The call stays in `in_flight`: the worker is free only once it has replied, and `_unwanted` drops this reply.
        worker.cancel(call)
        worker.stream_pause.check()
        # After the cancellation was sent: until the worker has read it, it ignores the interrupt.
        self.abandoned.look(worker)

    def give_up(self, call: Call, fault: Fault) -> None:
        """Cancel a running call whose client waits, and give it a fault."""
        call.state = DONE
        self.cancel(call)
        self._conclude(call, fault)

    def _worker_of(self, call: Call) -> Worker | None:
        return next((worker for worker in self.workers if call.id in worker.in_flight), None)

    def pause_stream(self, call: Call, paused: bool) -> None:
        """Pause the worker of a stream while its client reads slowly, or resume it.

        A worker that runs several calls is not paused: it learns which of the clients reads slowly.
        """
        worker = self._worker_of(call)
        if worker is None:
            return
        if worker.runs_several:
            worker.stream_pause.tell(call, paused)
        elif paused:
            worker.stream_pause.begin(call)
        else:
            worker.stream_pause.end(call)

    def cancel_slow_streams(self, now: float) -> None:
        """Cancel the streams of clients that read too slowly while other requests wait."""
        waiting, seconds = self.dispatcher.backlog(now)
        # With 0 seconds the calls wait for company to make a batch: no slow client holds them up.
        for call in self.slow_readers.due(self.workers, waiting if seconds > 0 else 0, now):
            log.warning(
                "request %s: its stream is broken off: its client reads too slowly, and held worker %d for %g s while "
                "others waited (--slow-reader)",
                call.request_id.decode("latin-1"), call.worker, self.slow_readers.longest,
                extra=self.supervisor.log_fields() | {"worker": call.worker},
            )  # fmt: skip
            self.metrics.refused["slow_reader"] += 1
            self.give_up(call, after_death.READ_SLOWLY)

    def sort_out(self, worker: Worker, lost: list[Call]) -> None:
        """Decide about each call of a dead worker: it runs again, or is answered now."""
        running = len(lost) if worker.slots > 1 else worker.batches.begun if worker.batched else 1
        self.abandoned.died(worker)
        # The worker has left `workers`: the calls that it was sent ahead no longer count.
        self.dispatcher.count_ahead()
        if worker.reason == LOST:
            self._move(after_death.move(lost, running, self.settings.rerun))
            return
        # A retiring worker that runs several calls at once ends because of a call that has its answer.
        spared = worker.reason == RETIRED and self.settings.rerun
        spared = spared or (worker.reason == SICK and not worker.batched and worker.slots == 1)
        verdict = after_death.judge(lost, 0 if spared else running, self.settings.rerun)
        # Before `_run_again`, which refuses the call if its kind counts as poison by now.
        alone = lost[0] if running == 1 and lost and lost[0].state == RUNNING else None
        if alone is not None and worker.ended_itself and self.engine.poison.killed(alone):
            self.engine.found_poison(alone)
        self.metrics.reruns["worker_died"] += verdict.suspected
        for call in verdict.guilty:
            self._conclude(call, after_death.OVERRAN if worker.reason == HUNG else after_death.CRASHED)
        self._run_again(verdict.again)

    def _move(self, verdict: after_death.Fates, fault: Fault = after_death.LOST_PLACEMENT) -> None:
        """Run the calls of a lost machine elsewhere, where they can."""
        self.metrics.reruns["place_lost"] += len(verdict.again)
        for call in verdict.guilty:
            self._conclude(call, fault)
        self._run_again(verdict.again)

    def refuse_poison(self) -> None:
        """Answer the waiting requests that must not run any more."""
        for call in self.dispatcher.waiting_calls():
            fault = self.engine.poison.refusal(call)
            if fault is not None:
                self.refuse([call], fault)

    def refuse(self, calls: Iterable[Call], fault: Fault) -> None:
        """Answer calls that wait in the queue with a fault."""
        for call in calls:
            # Before `remove`: the queue tells by the state which calls still wait.
            call.state = DONE
            self.dispatcher.remove(call)
            self._refuse(call, fault)

    def _run_again(self, calls: list[Call]) -> None:
        """Put calls back at the head of the queue, except for calls that are known by now to kill workers."""
        faults = {call: self.engine.poison.refusal(call) for call in calls} if self.engine.poison.lengths else {}
        self.dispatcher.put_back([call for call in calls if faults.get(call) is None])
        for call, fault in faults.items():
            if fault is not None:
                self._refuse(call, fault)

    def _refuse(self, call: Call, fault: Fault) -> None:
        self.metrics.dropped[fault.code] += 1
        self._conclude(call, fault)

    def _conclude(self, call: Call, fault: Fault) -> None:
        call.state = DONE
        self.engine.finished(call)
        call.fail(fault)
