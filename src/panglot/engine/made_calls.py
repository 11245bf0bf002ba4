"""Calls that workers make of other models of the server: ensembles, and scripts that call models themselves.

A worker sends CALL. The front finds the model and submits the call to that model's engine, as it does with a client's
request: it waits in the same queue and shares batches with everybody's. The answer goes back as ANSWER. What is between
them, tensors in a message, the front never reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from panglot.engine import made_calls_progress
from panglot.engine.call import DONE, Call, Fault, MemoryQuota
from panglot.engine.interface import ASLEEP, READY, WAKING
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.workers.worker import Worker

PARENT_ENDED = Fault(499, "cancelled", "the request that this call was made for has ended")
NO_MEMORY = Fault(503, "memory", "there is no memory for more requests; try again later")


class Callee(NamedTuple):
    """A model that can be called, as the owner of the models knows it."""

    name: str
    engine: LocalEngine
    heads: Mapping[bool, wire.Head]
    """What its worker gets besides the message; by whether the answer may come in parts."""
    lane: str
    quota: MemoryQuota
    timeout: float
    max_body: int
    on_answer: Callable[[int, float], None]
    """Counts an answer: its status, and the seconds it took."""


Find = Callable[[str, str], "Callee | None"]
"""Finds a model by name and version; without a version the newest."""


class MadeCall(Call):
    """A call of another model, on its way through that model's engine."""

    __slots__ = ("call_number", "callee", "owner", "parents", "worker_calling")

    def __init__(self, owner: MadeCalls, worker: Worker, number: int, callee: Callee, parents: list[Call]) -> None:
        super().__init__(callee.quota)
        self.owner = owner
        self.worker_calling = worker
        self.call_number = number
        self.callee = callee
        self.parents = [parent.id for parent in parents]
        self.lane = callee.lane
        self.arrived = owner.clock()

    def reply(self, reply: wire.Reply) -> None:
        """Pass on the answer, a part of it, or the script's failure."""
        if reply.flags & wire.ERROR:
            problem = json.loads(bytes(reply.body))
            if problem["traceback"]:
                request_id = self.request_id.decode("latin-1")
                self.callee.engine.trouble(request_id, problem["message"], problem["traceback"], self.worker)
            self.owner.answer(self, reply.status, message=problem["message"], code=problem["code"])
        elif reply.status != 200:
            # An error among other parts: its body is the sentence.
            text = str(reply.body, "utf-8", "replace")
            self.owner.answer(self, reply.status, message=text, more=bool(reply.flags & wire.MORE))
        else:
            self.owner.answer(self, 200, reply.body, more=bool(reply.flags & wire.MORE))

    def fail(self, fault: Fault) -> None:
        self.owner.answer(self, fault.status, message=fault.message, code=fault.code)


class MadeCalls:
    """Owns the open calls that the workers of one engine have made. Each ends by its answer, with the requests that it
    was made for, with its worker, or when the worker cancels it."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self.clock = clock
        self.find: Find = lambda name, version: None
        """Set by the owner of the models."""
        self.open: dict[tuple[Worker, int], MadeCall] = {}
        self.by_parent: dict[int, set[MadeCall]] = {}
        """The open calls by the items they were made for."""

    # What workers say

    def begin(self, worker: Worker, payload: memoryview) -> None:
        """Make the call that a worker wants. Raises WireError for a frame that says it wrongly."""
        text, body = wire.described(payload)
        about = wire.control(wire.CALL, text)
        number, model, version = about["call"], about["model"], about["version"]
        callee = self.find(model, version)
        if callee is None:
            which = f"{model} version {version}" if version else model
            fault = Fault(404, "no_model", f"there is no model '{which}' in this server that takes tensors")
            self._refuse(worker, number, fault)
        elif about.get("ready"):
            self._send(worker, number, 200 if callee.engine.state in (READY, ASLEEP, WAKING) else 503)
        elif len(body) > callee.max_body:
            problem = f"the request has {len(body)} bytes, and {model} takes {callee.max_body}"
            self._refuse(worker, number, Fault(413, "body_too_large", problem))
        else:
            known = (worker.in_flight.get(item) for item in about["items"])
            self._submit(
                MadeCall(self, worker, number, callee, [call for call in known if call is not None]), about, body
            )

    def _submit(self, call: MadeCall, about: dict[str, Any], body: memoryview) -> None:
        worker, callee = call.worker_calling, call.callee
        parents = [worker.in_flight[item] for item in call.parents]
        if parents and all(parent.state == DONE for parent in parents):
            self._refuse(worker, call.call_number, PARENT_ENDED)
            return
        call.request_id = parents[0].request_id if parents else b""
        call.head = callee.heads[about["streams"]]._replace(request_id=call.request_id).pack()
        # The longest of all: a call that is made for a batch is worth making as long as one of its requests waits.
        call.deadline = max((parent.deadline for parent in parents), default=call.arrived + callee.timeout)
        if about["seconds"]:
            call.deadline = min(call.deadline, call.arrived + about["seconds"])
        if not call.take_body(body, None, len(body)):
            self._refuse(worker, call.call_number, NO_MEMORY)
            return
        fault = callee.engine.submit(call)
        if fault is not None:
            call.fail(fault)
            return
        self.open[worker, call.call_number] = call
        for item in call.parents:
            self.by_parent.setdefault(item, set()).add(call)
        if not made_calls_progress.can_run(callee.engine):
            self._refuse_deadlock(call)

    def _refuse_deadlock(self, call: MadeCall) -> None:
        problem = (
            f"{self.name} would wait for ever: it calls {call.callee.name}, and all workers of that model wait for "
            f"others that wait for {self.name}; give them more workers (instance_group, --workers)"
        )
        call.callee.engine.cancel(call)
        call.fail(Fault(503, "deadlock", problem))

    def cancelled(self, worker: Worker, number: int) -> None:
        """Note that a worker does not want an answer any more."""
        call = self.open.get((worker, number))
        if call is not None:
            self._forget(call)
            call.callee.engine.cancel(call)

    # What becomes of those they were made for

    def parent_ended(self, item: int) -> None:
        """Cancel what was made for a request alone, which has its answer or is cancelled."""
        for call in self.by_parent.pop(item, ()):
            call.parents.remove(item)
            if not call.parents:
                call.callee.engine.cancel(call)
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

    # Answers

    def answer(
        self,
        call: MadeCall,
        status: int,
        body: wire.Buffer = b"",
        message: str = "",
        code: str = "",
        more: bool = False,
    ) -> None:
        """Give a worker the answer to its call, or a part of it."""
        if not more:
            self._forget(call)
            call.callee.on_answer(status, self.clock() - call.arrived)
        self._send(call.worker_calling, call.call_number, status, body, message, code, more)

    def _refuse(self, worker: Worker, number: int, fault: Fault) -> None:
        """Answer a call that was never made."""
        self._send(worker, number, fault.status, message=fault.message, code=fault.code)

    def _send(
        self,
        worker: Worker,
        number: int,
        status: int,
        body: wire.Buffer = b"",
        message: str = "",
        code: str = "",
        more: bool = False,
    ) -> None:
        about = {"call": number, "status": status, "message": message, "code": code, "more": more}
        worker.link.send(wire.described_frame(wire.ANSWER, worker.generation, about, body))

    def _forget(self, call: MadeCall) -> None:
        self.open.pop((call.worker_calling, call.call_number), None)
        for item in call.parents:
            calls = self.by_parent.get(item)
            if calls is not None:
                calls.discard(call)
                if not calls:
                    del self.by_parent[item]
