"""Calls that workers make of other models of the server: ensembles, and scripts that call models themselves.

A worker sends CALL. The front finds the model and submits the call to that model's engine, as it does with a client's
request: it waits in the same queue and shares batches with other calls. The answer goes back as ANSWER. The front never
reads the messages with tensors that both carry.

Large tensors stay where they are. A worker names memory that it was given: pieces of its request's body, or of an
answer to an earlier call. The call then owns further buffers of this memory, and so does the worker that runs it. The
buffer of an answer belongs to its call until ANSWER is sent. Then it belongs to the calling worker, until the worker
says FREE or is dead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from panglot.engine import made_calls_progress
from panglot.engine.call import DONE, Call, Fault, MemoryQuota, SharedBuffer
from panglot.engine.interface import ASLEEP, READY, WAKING
from panglot.engine.memory import pieces
from panglot.engine.memory.buffers import Arena
from panglot_worker.line import calls, wire

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.workers.worker import Worker

AFTER_PARENTS = 1.0
"""Seconds that a call may go on after the deadlines of the requests that it is made for."""
WINDOW = 8 << 20
"""Bytes of a stream that wait in a worker to be taken: beyond them, the model that sends the stream waits."""
MOST_UNTAKEN = 64 << 20
"""Bytes of a stream that wait in a worker at most: a model that also serves others does not wait for ever."""
PARTS_AHEAD = 4
"""Parts that may wait besides, however large: a model sends some before it hears that it has to wait."""
UNTAKEN = Fault(503, "slow_reader", "more of this stream waited to be taken than a worker may keep")
PARENT_ENDED = Fault(499, "cancelled", "the request that this call was made for has ended")
NO_MEMORY = Fault(503, "memory", "there is no memory for more requests; try again later")


NOT_LOADED = Fault(503, "loading", "a model loads or unloads others once it is loaded itself")


async def unchangeable(what: str, model: str) -> Fault | None:
    """Refuse to load or unload models: this server has only one."""
    return Fault(403, "no_admin", f"this server has no folder of models to {what} from (fix: --models DIR --admin)")


class Callee(NamedTuple):
    """A model that can be called, as the owner of the models knows it."""

    name: str
    engine: LocalEngine
    heads: Mapping[bool, wire.Head]
    """The head that its worker gets with a message: one for a whole answer, one for an answer in parts."""
    native: wire.Head
    """The head that its worker gets with a body as clients of its platform send it."""
    lane: str
    quota: MemoryQuota
    timeout: float
    max_body: int
    on_answer: Callable[[int, float], None]
    """Counts an answer: its status, and the seconds it took."""


Find = Callable[[str, str], "Callee | None"]
"""Finds a model by name and version; without a version the newest."""
CHANGES = ("load", "unload")
Change = Callable[[str, str], Awaitable[Fault | None]]
"""Loads or unloads the model of a name; returns the fault, where that fails."""


class CallForOthers(Call):
    """A call of another model, on its way through that model's engine. It ends with the requests it is made for."""

    __slots__ = ("answer_buffer", "answers_in", "callee", "held_by", "parents")

    def __init__(self, callee: Callee, parents: list[int], answers_in: Arena | None) -> None:
        super().__init__(callee.quota)
        self.callee = callee
        self.parents = parents
        self.lane = callee.lane
        self.answers_in = answers_in
        self.answer_buffer: SharedBuffer | None = None
        self.held_by: set[LocalEngine | None] | None = None
        """While it waits for a place in its worker: who may have these places, models or clients (None)."""


class MadeCall(CallForOthers):
    """A call that a worker makes."""

    __slots__ = ("call_number", "is_native", "largest_part", "owner", "streams", "untaken", "worker_calling")

    def __init__(self, owner: MadeCalls, worker: Worker, number: int, callee: Callee, parents: list[Call]) -> None:
        memory = owner.memory if owner.memory is callee.engine.bodies else None
        super().__init__(callee, [parent.id for parent in parents], memory)
        self.owner = owner
        self.worker_calling = worker
        self.call_number = number
        self.is_native = False
        """Whether it is made, and answered, as a client of the callee's platform would."""
        self.streams = False
        """Whether the answer may come in parts; the worker then tells how many bytes of them it has taken."""
        self.largest_part = 0
        self.untaken = 0
        """Bytes of the stream that the worker has not taken yet."""
        self.arrived = owner.clock()

    def answered_in(self, buffer: SharedBuffer, size: int) -> wire.Buffer:
        if self.answers_in is None or not buffer.is_in(self.answers_in):
            return super().answered_in(buffer, size)
        self.answer_buffer = buffer
        return wire.placed(size)

    def reply(self, reply: wire.Reply) -> None:
        """Pass on the answer, a part of it, or the script's failure."""
        if reply.flags & wire.ERROR:
            problem = json.loads(bytes(reply.body))
            if problem["traceback"]:
                request_id = self.request_id.decode("latin-1")
                self.callee.engine.trouble(request_id, problem["message"], problem["traceback"], self.worker)
            self.owner.answer(self, reply.status, message=problem["message"], code=problem["code"])
        elif self.is_native:
            content_type = reply.head.partition(b"\0")[0].decode("latin-1")
            more = bool(reply.flags & wire.MORE)
            self.owner.answer(self, reply.status, reply.body, more=more, content_type=content_type)
        elif reply.status != 200:
            # An error among other parts: its body is the sentence.
            text = str(reply.body, "utf-8", "replace")
            self.owner.answer(self, reply.status, message=text, more=bool(reply.flags & wire.MORE))
        else:
            self.owner.answer(self, 200, reply.body, more=bool(reply.flags & wire.MORE))

    def fail(self, fault: Fault) -> None:
        self.owner.answer(self, fault.status, message=fault.message, code=fault.code)


def native_head(head: wire.Head, wishes: Mapping[str, str]) -> wire.Head:
    """The head for a body of this type. Raises WireError for a type that no header can hold."""
    kind, accept = (str(wishes.get(name, "")).encode("latin-1", "replace") for name in ("content_type", "accept"))
    if any(byte < 32 for byte in kind + accept):
        raise wire.WireError(f"a call with the content type {kind!r:.80}")
    return head._replace(content_type=kind, accept=accept, headers=b"content-type:%b\naccept:%b" % (kind, accept))


class MadeCalls:
    """Owns the open calls that the workers of one engine have made. A call ends by its answer, with the requests that
    it was made for, with its worker, or when the worker cancels it."""

    def __init__(self, name: str, clock: Callable[[], float], new_id: Callable[[], int], memory: Arena | None) -> None:
        """`new_id` numbers the buffers that workers are leased; `memory` holds the bodies of their requests."""
        self.name = name
        self.clock = clock
        self.new_id = new_id
        self.memory = memory
        self.find: Find = lambda name, version: None
        self.change: Change = unchangeable
        """Both are set by the owner of the models."""
        self._changing: set[asyncio.Task[None]] = set()
        self.open: dict[tuple[Worker, int], MadeCall] = {}
        self.by_parent: dict[int, set[CallForOthers]] = {}
        """The open calls by the items they were made for."""
        self.held: dict[MadeCall, None] = {}
        """The open calls that wait for a place in their workers, in order."""

    # What workers say

    def begin(self, worker: Worker, payload: memoryview) -> None:
        """Make the call that a worker wants. Raises WireError for a malformed frame."""
        text, body = calls.read(payload)
        about = wire.control(wire.CALL, text)
        number, model, version = about["call"], about["model"], about["version"]
        if about.get("asks") in CHANGES:
            self._change(worker, number, model, about["asks"])
            return
        callee = self.find(model, version)
        if callee is None:
            which = f"{model} version {version}" if version else model
            fault = Fault(404, "no_model", f"there is no model '{which}' in this server that takes tensors")
            self._refuse(worker, number, fault)
        elif about.get("asks"):
            self._send(worker, number, {"status": 200 if callee.engine.state in (READY, ASLEEP, WAKING) else 503})
        elif about["size"] > callee.max_body:
            problem = f"the request has {about['size']} bytes, and {model} takes {callee.max_body}"
            self._refuse(worker, number, Fault(413, "body_too_large", problem))
        else:
            known = (worker.in_flight.get(item) for item in about["items"])
            self._submit(
                MadeCall(self, worker, number, callee, [call for call in known if call is not None]), about, body
            )

    def _change(self, worker: Worker, number: int, model: str, what: str) -> None:
        """Load or unload a model for a worker, and answer when that is done. It goes on if the worker dies."""

        async def carry_out() -> None:
            # A model that is loading has one of the few places for loads, and would wait for another.
            fault = NOT_LOADED if not worker.loaded else await self.change(what, model)
            if fault is not None:
                self._refuse(worker, number, fault)
            else:
                self._send(worker, number, {"status": 200})

        task = asyncio.ensure_future(carry_out())
        # The event loop refers to a task only weakly: without this set it could vanish half done.
        self._changing.add(task)
        task.add_done_callback(self._changing.discard)

    def _submit(self, call: MadeCall, about: dict[str, Any], body: memoryview) -> None:
        worker, callee = call.worker_calling, call.callee
        parents = [worker.in_flight[item] for item in call.parents]
        if parents and all(parent.state == DONE for parent in parents):
            self._refuse(worker, call.call_number, PARENT_ENDED)
            return
        call.request_id = parents[0].request_id if parents else b""
        head = callee.heads[about["streams"]]
        call.streams = about["streams"]
        if about["native"] is not None:
            call.is_native, head = True, native_head(callee.native, about["native"])
        call.head = head._replace(request_id=call.request_id).pack()
        # The latest deadline: a call for a batch is worth making as long as one request of the batch waits. And a
        # second later: if the call were late first, the script's error about it might reach the client before the 504
        # of the request itself.
        until = (parent.deadline + AFTER_PARENTS for parent in parents)
        call.deadline = max(until, default=call.arrived + callee.timeout)
        if about["seconds"]:
            call.deadline = min(call.deadline, call.arrived + about["seconds"])
        if not self._take_body(call, about, body):
            self._refuse(worker, call.call_number, NO_MEMORY)
            return
        fault = callee.engine.submit(call)
        if fault is not None:
            call.fail(fault)
            return
        if call.state == DONE:
            # The first step of an ensemble was refused at once: the worker has its answer.
            return
        self.open[worker, call.call_number] = call
        for item in call.parents:
            self.by_parent.setdefault(item, set()).add(call)
        if not made_calls_progress.can_run(callee.engine):
            self._refuse_deadlock(call)

    def _take_body(self, call: MadeCall, about: dict[str, Any], body: memoryview) -> bool:
        """Let a call own its body; False when there is no memory for it. Raises WireError."""
        if not about["in_pieces"]:
            return call.take_body(body, None, len(body))
        buffer = pieces.received(body, call.worker_calling.leases.looked_at.get)
        if not call.take_body(body, buffer, len(body)):
            return False
        if pieces.are_in(buffer, call.callee.engine.bodies):
            # The frame to the callee carries the table, and the pieces that came with it.
            call.pieces = (body,)
        else:
            # The workers of the callee have not mapped the memory of this engine.
            call.copy_out()
        return True

    def _refuse_deadlock(self, call: MadeCall) -> None:
        problem = (
            f"{self.name} would wait for ever: it calls {call.callee.name}, and all workers of that model wait for "
            f"others that wait for {self.name}; give them more workers (instance_group, --workers)"
        )
        call.callee.engine.cancel(call)
        call.fail(Fault(503, "deadlock", problem))

    def refuse_place(self, call: MadeCall) -> None:
        """Answer a call that would wait for ever for a place."""
        name = call.callee.name
        problem = (
            f"all workers of {self.name} wait for sequences of {name} to end, and the requests that could end them "
            f"wait for {self.name}; give {self.name} more workers (instance_group, --workers), or {name} more places "
            "(max_batch_size, max_candidate_sequences)"
        )
        call.callee.engine.cancel(call)
        call.fail(Fault(503, "deadlock", problem))

    def on_event(self, worker: Worker, event: dict[str, Any]) -> None:
        """Note that a worker does not want an answer any more, or that it has taken bytes of a stream."""
        call = self.open.get((worker, event["call"]))
        # The answer crossed the event on its way.
        if call is None:
            return
        if event["type"] == "took":
            self._pace(call, -event["bytes"])
        else:
            self._forget(call)
            call.callee.engine.cancel(call)

    def _pace(self, call: MadeCall, more: int) -> None:
        """Count the untaken bytes of a stream. While they are too many, the model that sends the stream waits."""
        before = call.untaken > WINDOW
        call.untaken += more
        call.largest_part = max(call.largest_part, more)
        if before != (call.untaken > WINDOW):
            call.callee.engine.pause_stream(call, not before)

    # The end of the requests they were made for

    def parent_ended(self, item: int) -> None:
        """Cancel the calls that were made for this request alone: it has its answer, or is cancelled."""
        for call in self.by_parent.pop(item, ()):
            call.parents.remove(item)
            if not call.parents:
                call.callee.engine.cancel(call)
                # Cancelling answers nobody, but the script in the calling worker waits for an answer.
                call.fail(PARENT_ENDED)

    def worker_ended(self, worker: Worker) -> None:
        """Cancel all that a dead worker has called."""
        for call in [call for (caller, _), call in self.open.items() if caller is worker]:
            self._forget(call)
            call.callee.engine.cancel(call)

    def close(self) -> None:
        """Cancel all calls: the engine stops."""
        for call in list(self.open.values()):
            self._forget(call)
            call.callee.engine.cancel(call)
        # Steps of chains are left: no worker has made them.
        for item in list(self.by_parent):
            self.parent_ended(item)

    # Answers

    def answer(
        self,
        call: MadeCall,
        status: int,
        body: wire.Buffer = b"",
        message: str = "",
        code: str = "",
        more: bool = False,
        content_type: str = "",
    ) -> None:
        """Give a worker the answer to its call, or a part of it."""
        if not more:
            self._forget(call)
            call.callee.on_answer(status, self.clock() - call.arrived)
        elif call.untaken > MOST_UNTAKEN + PARTS_AHEAD * max(call.largest_part, len(body)):
            call.callee.engine.metrics.refused["stream_backlog"] += 1
            call.callee.engine.cancel(call)
            call.fail(UNTAKEN)
            return
        elif call.streams:
            self._pace(call, len(body))
        buffer, call.answer_buffer = call.answer_buffer, None
        if buffer is not None:
            self._send_placed(call, buffer, len(body), {"status": status, "content_type": content_type})
        else:
            about = {"status": status, "message": message, "code": code, "more": more, "content_type": content_type}
            self._send(call.worker_calling, call.call_number, about, body)

    def _refuse(self, worker: Worker, number: int, fault: Fault) -> None:
        """Answer a call that was never submitted."""
        self._send(worker, number, {"status": fault.status, "message": fault.message, "code": fault.code})

    def _send(self, worker: Worker, number: int, about: dict[str, Any], body: wire.Buffer = b"") -> None:
        worker.link.send(calls.frame(wire.ANSWER, worker.generation, {"call": number, **about}, (body,)))

    def _send_placed(self, call: MadeCall, buffer: SharedBuffer, size: int, about: dict[str, Any]) -> None:
        """Give a worker the answer to its call without copying it. The worker owns the buffer from now on."""
        worker, lease = call.worker_calling, self.new_id()
        worker.leases.looked_at[lease] = buffer
        self._send(worker, call.call_number, {**about, "lease": lease, "location": buffer.address, "size": size})

    def _forget(self, call: MadeCall) -> None:
        self.open.pop((call.worker_calling, call.call_number), None)
        self.held.pop(call, None)
        for item in call.parents:
            calls = self.by_parent.get(item)
            if calls is not None:
                calls.discard(call)
                if not calls:
                    del self.by_parent[item]
