"""One inference over gRPC, as the engine sees it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from panglot.engine.call import Call, Fault
from panglot.web.access.keys import KeyHolder, Wanted
from panglot.web.contract import InferRoute, RpcErrorWriter
from panglot.web.front import Front
from panglot.web.grpc.messages import leading_name
from panglot.web.grpc.received_message import NO_MEMORY, NO_NAME, ReceivedMessage
from panglot.web.grpc.statuses import OK, UNIMPLEMENTED, RpcError, refused, status_and_sentence, status_of
from panglot.web.http1.heads.request_head import REQUEST_ID
from panglot.web.models import Model
from panglot.web.v2 import metadata
from panglot.web.v2.routes import RpcTarget, rpc_head
from panglot_worker.line import wire

log = logging.getLogger("panglot.web")

OnAnswer = Callable[[int, str, wire.Buffer, bool], None]
"""Takes an answer: a status of gRPC, a sentence, the message, and whether more follow."""


class RpcCall(Call):
    """A call whose answers go to `on_answer`. It owns the memory of its message until it is answered or cancelled."""

    __slots__ = (
        "began", "counted_for", "front", "holder", "is_over", "model", "on_answer", "route", "trace", "write_error",
    )  # fmt: skip
    method = b"POST"

    def __init__(self, front: Front, model: Model, route: InferRoute, on_answer: OnAnswer) -> None:
        super().__init__(model.quota)
        self.front = front
        self.model = model
        self.route = route
        self.lane = route.lane
        self.on_answer = on_answer
        self.is_over = False
        """Whether it has its answer, or is cancelled."""
        self.trace = b""
        self.write_error: RpcErrorWriter = status_and_sentence
        """Writes the status and the sentence for a fault."""
        self.began = self.arrived = time.monotonic()
        self.holder: KeyHolder | None = None
        """The client, where it came with a key."""
        self.counted_for: KeyHolder | None = None
        """The same until `release`: so long the key counts this among its open requests."""

    def count_for(self, holder: KeyHolder, path: str) -> None:
        """Count this for the key of its client, until its body is released. Raises RpcError: the key refuses it."""
        fault = holder.refusal(Wanted(self.route.access, path, self.model.name))
        if fault is not None:
            raise refused(fault)
        self.holder = self.counted_for = holder
        holder.take()

    def release(self) -> None:
        """Give the body back, and what its key counts for it."""
        super().release()
        if self.counted_for is not None:
            self.counted_for.release()
            self.counted_for = None

    def take_over(self, message: ReceivedMessage) -> None:
        """Own the memory of a message. Raises RpcError where the quota has no space: then it stays the message's."""
        # First: the same bytes would count twice, and a large message would be refused because of itself.
        message.release_quota()
        if not self.take_body(*message.contents(), message.size):
            raise refused(NO_MEMORY)
        message.hand_over()
        if self.buffer is not None and message.model is not self.model:
            # The first bytes named one model, and the whole message names another: its workers do not see this memory.
            self.copy_out()

    def reply(self, reply: wire.Reply) -> None:
        """Pass on the script's answer, one part of it, or its failure."""
        try:
            if reply.flags & wire.ERROR:
                self._failed(reply)
            elif reply.flags & wire.MORE:
                if reply.status == 200:
                    self.on_answer(OK, "", reply.body, True)
                else:
                    # An error among other parts: its body is the sentence.
                    self.on_answer(status_of(reply.status), str(reply.body, "utf-8", "replace"), b"", True)
            else:
                self._end(200, reply.times)
                self.on_answer(OK, "", reply.body, False)
        except Exception:
            # It must not reach the engine, for which it would be the fault of a worker.
            log.exception("request %s: the server itself failed on it", self.request_id.decode("latin-1"))

    def _failed(self, reply: wire.Reply) -> None:
        problem = json.loads(bytes(reply.body))
        if problem["traceback"]:
            request_id = self.request_id.decode("latin-1")
            self.model.engine.trouble(request_id, problem["message"], problem["traceback"], self.worker)
        self._end(reply.status, reply.times)
        fault = Fault(reply.status, problem["code"], problem["message"], details=problem.get("details"))
        self.on_answer(*self.write_error(fault), b"", False)

    def fail(self, fault: Fault) -> None:
        self._end(fault.status, wire.NO_TIMES)
        self.on_answer(*self.write_error(fault), b"", False)

    def _end(self, status: int, times: wire.Times) -> None:
        """Count what was answered, and give the body back."""
        self.is_over = True
        front, name, metrics = self.front, self.route.name, self.model.metrics
        total = int((time.monotonic() - self.began) * 1e6)
        metrics.requests[name, status] += 1
        metrics.latency[name].add(total)
        front.recent.append((time.time(), self.request_id, name, status, total, self.queued_us, times, self.model.name))
        # The engine has released the body of most calls.
        if self.size or self.buffer is not None or self.counted_for is not None:
            self.release()
        for observe in front.observers:
            observe(self, status, times, total)

    def cancel(self) -> None:
        """Cancel the call: the client does not wait for it any more."""
        self.is_over = True
        if self.id:
            self.model.engine.cancel(self)
        self.release()


class InferCall(NamedTuple):
    """What a client says of an inference besides its message."""

    form: bytes
    seconds: float | None = None
    """Until its deadline; None: it has none."""
    request_id: bytes = b""
    trace: bytes = b""
    holder: KeyHolder | None = None
    """The client, where it came with a key."""
    path: str = ""
    """The method that it calls."""


def begin(front: Front, about: InferCall, message: ReceivedMessage, on_answer: OnAnswer) -> RpcCall:
    """Submit an inference; `on_answer` may be called before this returns.

    Raises RpcError: the message is then as it was.
    """
    model, target, forms, heads = _destination(front, message)
    call = RpcCall(front, model, forms[about.form], on_answer)
    call.request_id = about.request_id if REQUEST_ID.fullmatch(about.request_id) else front.new_request_id()
    call.trace = about.trace
    rest = heads[about.form]
    if call.trace or message.encoding:
        rest = rpc_head(target, about.form)._replace(traceparent=call.trace, encoding=message.encoding).pack()
    call.head = call.request_id + rest
    longest = model.settings.timeout
    call.deadline = call.arrived + (longest if about.seconds is None else min(longest, max(0.0, about.seconds)))
    # After everything else that can raise: until here the message is its inbox's to release.
    own(call, about, message)
    submit(call)
    return call


def own(call: RpcCall, about: InferCall, message: ReceivedMessage) -> None:
    """Have a call own its message, and count for its key. Raises RpcError: then it does neither."""
    if about.holder is None:
        call.take_over(message)
        return
    # The key first: taking the message over cannot be undone.
    call.count_for(about.holder, about.path)
    try:
        call.take_over(message)
    except RpcError:
        call.release()
        raise


def announced(front: Front, first: wire.Buffer) -> Model | None:
    """The model that the first bytes of a message name; None where they do not tell.

    Raises RpcError where there is no such model.
    """
    name = leading_name(first)
    return _target(front, *name).model if name is not None else None


def _destination(front: Front, message: ReceivedMessage) -> RpcTarget:
    """The model that a message names. Raises RpcError."""
    name, version, _, is_all = message.addressed()
    if not name and not is_all:
        raise NO_NAME.error()
    return _target(front, name, version)


def _target(front: Front, name: str, version: str) -> RpcTarget:
    target = front.paths.rpc.get((name, version))
    if target is None:
        try:
            model = metadata.find(front.models, name, version)
        except metadata.Missing as missing:
            raise refused(missing.fault) from None
        raise RpcError(UNIMPLEMENTED, f"model '{model.name}' takes no tensors")
    return target


def submit(call: RpcCall) -> None:
    """Give a call to its engine; a fault becomes its answer."""
    try:
        fault = call.model.engine.submit(call)
    except Exception:
        # Releases the body, and has the engine forget the call where it knows the call already.
        call.cancel()
        raise
    if fault is not None:
        call.fail(fault)
