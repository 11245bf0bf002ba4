"""Requests that other models answer one after the other: the front calls them, and passes on what it never reads.

A request that comes to an engine with a chain waits in no queue of that engine. For each step it becomes a call of
another model, which waits in that model's queue and shares batches with other calls. The result of a step lies in
memory that the workers of all models map. It is the body of the next step's call. The last step gives the client's
answer. The head of each call tells its worker what to do with the tensors (`panglot_worker.tensors.handing`).

Some requests are not for the chain, for example those without an input. The worker of the first step refuses them, and
they go to the engine's own worker, which knows every case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from panglot.engine.call import DONE, RUNNING, Call, Fault, SharedBuffer, Uncounted
from panglot.engine.made_calls import Callee, CallForOthers
from panglot.engine.memory import buffers
from panglot.engine.memory.buffers import Arena
from panglot.packages.package import ChainStep
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine

FORMS = (b"rest", b"grpc")
"""The forms of requests that are answered as a whole, in the client's own way."""
HANDED = b"handed"
UNFIT, NO_OUTPUT = "unfit", "no_output"
"""Codes of refusals that workers of a chain give: see `panglot_worker.tensors.handing`."""
STREAMED = Fault(500, "script_error", "it answers in parts, which no other model can take")
ROUTE, PATH, CLIENT, HEADERS, FORM = map(wire.Head._fields.index, ("route", "path", "client", "headers", "form"))


class StepCall(CallForOthers):
    """The call of one step, made for one request."""

    __slots__ = ("at", "chain", "hands_on", "parent", "times", "waited")

    def __init__(self, chain: Chain, parent: Call, at: int, callee: Callee, now: float) -> None:
        super().__init__(callee, [parent.id], parent.answers_in if at == chain.last else chain.engine.bodies)
        self.hands_on = at < chain.last and chain.hands_on(at, callee)
        # What the request holds is counted by its own quota, as long as it is open, for all of its steps.
        self.quota = chain.uncounted
        self.chain = chain
        self.parent = parent
        self.at = at
        self.request_id = parent.request_id
        self.arrived, self.deadline = now, parent.deadline
        self.times, self.waited = wire.NO_TIMES, 0
        """Microseconds of this step and of the steps before: in each stage, and in queues."""

    def answered_in(self, buffer: SharedBuffer, size: int) -> wire.Buffer:
        if self.at == self.chain.last:
            return self.parent.answered_in(buffer, size)
        self.answer_buffer = buffer
        return wire.placed(size)

    def note(self, times: wire.Times) -> None:
        """Add the time that it took."""
        a, b, c, d, e = self.times
        f, g, h, i, j = times
        self.times = (a + f, b + g, c + h, d + i, e + j)
        self.waited += self.queued_us

    def reply(self, reply: wire.Reply) -> None:
        self.chain.replied(self, reply)

    def fail(self, fault: Fault) -> None:
        self.chain.failed(self, fault)


class Chain:
    """The steps of one engine's requests. Its engine has the requests among its calls until they are answered."""

    def __init__(self, engine: LocalEngine, steps: Sequence[ChainStep]) -> None:
        self.engine = engine
        self.steps = steps
        self.last = len(steps) - 1
        self.uncounted = Uncounted()
        self._hops = [step.hop.encode() for step in steps]
        self._heads: list[tuple[Callee | None, bytes]] = [(None, b"") for _ in steps]
        """By step: its model, and what the worker of that model gets behind the request's id."""

    def connect(self, new_mark: Callable[[], int]) -> None:
        """Give each model but the last a file for its results. The workers of the next model map the file.

        Workers that run already do not map it: results from them, or for them, lie in the memory for bodies.
        """
        engines = [callee.engine for callee in map(self._callee, range(len(self.steps))) if callee is not None]
        if len(engines) < len(self.steps):
            return
        for giving, taking in pairwise(engines):
            # A model may be a step of several chains: one file serves all of them.
            gives = giving.main.memory.gives = giving.main.memory.gives or _file(giving, new_mark)
            if gives is not None and gives not in taking.main.memory.takes:
                taking.main.memory.takes.append(gives)

    def hands_on(self, at: int, callee: Callee) -> bool:
        """Whether a result can lie in the file of its model: all workers of the next step can read it there."""
        gives, following = callee.engine.main.memory.gives, self._callee(at + 1)
        # All of them: any worker may get the next call, and one that is older than the file has not mapped it.
        return following is not None and all(gives in worker.takes for worker in following.engine.main.workers)

    def begin(self, call: Call) -> bool:
        """Take a request that was submitted; False where it must go to the engine's own worker."""
        fields = call.head.split(b"\0")
        # A head with more fields belongs to a step of another chain.
        if len(fields) != wire.HOP or fields[FORM] not in FORMS:
            return False
        callees = [self._callee(at) for at in range(len(self.steps))]
        callee = callees[0]
        if None in callees or callee is None or call.size > callee.max_body or call.background or call.lent:
            return False
        engine = self.engine
        now = engine.clock()
        # RUNNING, although no worker has it: `cancel` would take a QUEUED call out of a queue that it was never in.
        call.id, call.state, call.dispatched = engine.new_id(), RUNNING, now
        engine.live.add(call)
        engine.watch(call)
        step = StepCall(self, call, 0, callee, now)
        fields[ROUTE], fields[PATH] = callee.native.route, callee.native.path
        # The headers are for scripts of this package, which the step's is not.
        fields[CLIENT] = fields[HEADERS] = b""
        step.head = b"\0".join((*fields, self._hops[0]))
        self._lend_body(call, step)
        self._submit(step)
        return True

    def _callee(self, at: int) -> Callee | None:
        """The model of a step; None where it cannot be one of a chain now."""
        callee = self.engine.made_calls.find(self.steps[at].model, self.steps[at].version)
        return callee if callee is not None and callee.engine.takes_handed and len(callee.engine.pools) == 1 else None

    def _lend_body(self, call: Call, step: StepCall) -> None:
        """Let the first step read the body of the request. The request goes on to own it."""
        step.pieces, step.size = call.pieces, call.size
        bodies = step.callee.engine.bodies
        if call.buffer is not None:
            if bodies is not None and call.buffer.is_in(bodies):
                step.buffer = call.buffer.share()
            else:
                # A copy: the workers of the other model have not mapped the memory that this body lies in.
                step.pieces = (b"".join(call.body()),)
                step.size = len(step.pieces[0])

    def _submit(self, step: StepCall) -> None:
        fault = step.callee.engine.submit(step)
        if fault is not None:
            self.failed(step, fault)
        else:
            self.engine.made_calls.by_parent[step.parent.id] = {step}

    # What becomes of steps

    def replied(self, step: StepCall, reply: wire.Reply) -> None:
        """Go on with what a step gave: to the next, to the client, or nowhere."""
        if reply.flags & wire.ERROR:
            problem = json.loads(bytes(reply.body))
            if problem["code"] == UNFIT:
                self._take_out(step)
                return
            if problem["traceback"]:
                request_id = step.request_id.decode("latin-1")
                step.callee.engine.trouble(request_id, problem["message"], problem["traceback"], step.worker)
            self.failed(step, Fault(reply.status, problem["code"], problem["message"]))
        elif reply.flags & wire.MORE:
            # First: after the answer below, no further part of the stream may come.
            step.callee.engine.cancel(step)
            self.failed(step, STREAMED)
        elif reply.status != 200:
            self.failed(step, Fault(reply.status, "", str(reply.body, "utf-8", "replace")))
        else:
            now = self._forget(step, 200)
            step.note(reply.times)
            if step.at < self.last:
                self._go_on(step, reply, now)
            elif step.parent.state == RUNNING:
                self._answer(step, reply, now)

    def failed(self, step: StepCall, fault: Fault) -> None:
        """Answer a request of which a step has failed."""
        self._forget(step, fault.status)
        parent = step.parent
        if parent.state != RUNNING:
            return
        between = " " if fault.code == NO_OUTPUT else ": "
        code = "script_error" if fault.code in ("", NO_OUTPUT) else fault.code
        message = f"{self.steps[step.at].title}{between}{fault.message}"
        parent.state, parent.worker = DONE, step.worker
        self.engine.finished(parent)
        parent.fail(Fault(fault.status, code, message, fault.retry_after))

    def _forget(self, step: StepCall, status: int) -> float:
        """Count the answer of a step; the present."""
        now = self.engine.clock()
        self.engine.made_calls.by_parent.pop(step.parent.id, None)
        step.callee.on_answer(status, now - step.arrived)
        return now

    def _take_out(self, step: StepCall) -> None:
        """Submit a request that is not for the chain to the engine's own worker."""
        parent, engine = step.parent, self.engine
        # Before `submit_alone`, which gives the request another id: the entry under the old id would stay for ever.
        engine.made_calls.by_parent.pop(parent.id, None)
        if parent.state == RUNNING:
            # The request still has its body: only the first worker finds it unfit, and `_go_on` comes after its answer.
            fault = engine.submit_alone(parent)
            if fault is not None:
                parent.state = DONE
                engine.finished(parent)
                parent.fail(fault)

    def _go_on(self, before: StepCall, reply: wire.Reply, now: float) -> None:
        """Call the next step with the result of the step before."""
        parent, at = before.parent, before.at + 1
        buffer, before.answer_buffer = before.answer_buffer, None
        if parent.state != RUNNING:
            # The buffer goes back by itself: nothing refers to it any more.
            return
        if not before.at:
            # Its bytes stay counted: the results of the steps take up memory instead of them.
            parent.pieces = ()
            parent.release_buffer()
        callee = self._callee(at)
        step = StepCall(self, parent, at, callee or before.callee, now)
        step.times, step.waited = before.times, before.waited
        if callee is None:
            self.failed(step, Fault(503, "no_model", "there is no such model in this server any more"))
            return
        size = len(reply.body)
        if size > callee.max_body:
            problem = f"the request has {size} bytes, and {callee.name} takes {callee.max_body}"
            self.failed(step, Fault(413, "body_too_large", problem))
        else:
            step.take_body(reply.body, buffer, size)
            if buffer is not None and not _can_read(callee, buffer):
                # A worker of the next model was started before this file was made, and cannot read it.
                step.copy_out()
            step.head = parent.request_id + self._head(callee, at)
            self._submit(step)

    def _head(self, callee: Callee, at: int) -> bytes:
        known, head = self._heads[at]
        if known is not callee:
            own = callee.native._replace(form=HANDED, model=callee.name.encode("utf-8", "replace"), hop=self._hops[at])
            head = own.pack()
            self._heads[at] = (callee, head)
        return head

    def _answer(self, step: StepCall, reply: wire.Reply, now: float) -> None:
        parent, pool, stages = step.parent, self.engine.main, self.engine.metrics.stages
        for stage, spent in zip(stages, step.times, strict=True):
            stage.add(spent)
        pool.counted.last_reply = now
        pool.counted.queue_time.add(step.waited)
        parent.queued_us, parent.worker = step.waited, step.worker
        # In this order: `reply` may run code that cancels the request, which must find it DONE.
        parent.state = DONE
        self.engine.finished(parent)
        parent.reply(reply._replace(times=step.times))


def _file(engine: LocalEngine, new_mark: Callable[[], int]) -> Arena | None:
    """A file for the results of a model; None where its bodies lie in no file, or there are too many files."""
    mark = new_mark() << wire.FILE_BITS_FROM
    if engine.bodies is None or not mark <= wire.FILE_BITS:
        return None
    arena = buffers.create(engine.settings.request_memory, engine.settings.max_output)
    if arena is not None:
        arena.mark = mark
    return arena


def _can_read(callee: Callee, buffer: SharedBuffer) -> bool:
    """Whether all workers of a model can read a buffer."""
    bodies, workers = callee.engine.bodies, callee.engine.main.workers
    return (bodies is not None and buffer.is_in(bodies)) or all(
        any(buffer.is_in(arena) for arena in worker.takes) for worker in workers
    )
