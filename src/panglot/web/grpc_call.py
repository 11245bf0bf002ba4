"""One inference over gRPC, as the engine sees it; whatever transport it came by."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from panglot.engine.call import Berth, Call, Fault
from panglot.web import v2
from panglot.web.contract import InferRoute
from panglot.web.front import Front
from panglot.web.grpc_encoding import beginning
from panglot.web.grpc_messages import leading_name, named
from panglot.web.grpc_statuses import INVALID_ARGUMENT, OK, UNIMPLEMENTED, RpcError, refused, status_of
from panglot.web.head import REQUEST_ID
from panglot.web.models import Model
from panglot.web.v2_routes import RpcTarget, rpc_head
from panglot_worker import wire

log = logging.getLogger("panglot.web")
NO_ROOM = Fault(503, "memory", "the server holds too many request bodies; try again later", 1)

Told = Callable[[int, str, wire.Buffer, bool], None]
"""Is told a status of gRPC, a sentence, the message, and whether more follow."""


class RpcCall(Call):
    """A call whose answers go to `told`."""

    __slots__ = ("began", "front", "model", "route", "told", "trace")

    def __init__(self, front: Front, model: Model, route: InferRoute, told: Told) -> None:
        super().__init__()
        self.front = front
        self.model = model
        self.route = route
        self.lane = route.lane
        self.told = told
        self.trace = b""
        self.began = self.arrived = time.monotonic()

    def reply(self, reply: wire.Reply) -> None:
        """Pass on the script's answer, one part of it, or its failure."""
        try:
            if reply.flags & wire.ERROR:
                self._failed(reply)
            elif reply.flags & wire.MORE:
                self.told(OK, "", reply.body, True)
            else:
                self._end(200, reply.times)
                self.told(OK, "", reply.body, False)
        except Exception:
            # It must not reach the engine, for which it would be the fault of a worker.
            log.exception("request %s: the server itself failed on it", self.request_id.decode("latin-1"))

    def _failed(self, reply: wire.Reply) -> None:
        problem = json.loads(bytes(reply.body))
        if problem["traceback"]:
            request_id = self.request_id.decode("latin-1")
            self.model.engine.trouble(request_id, problem["message"], problem["traceback"], self.worker)
        self._end(reply.status, reply.times)
        self.told(status_of(reply.status), problem["message"], b"", False)

    def fail(self, fault: Fault) -> None:
        self._end(fault.status, wire.NO_TIMES)
        self.told(status_of(fault.status), fault.message, b"", False)

    def _end(self, status: int, times: wire.Times) -> None:
        """Count what was answered, and let the body go."""
        front, name, metrics = self.front, self.route.name, self.model.metrics
        total = int((time.monotonic() - self.began) * 1e6)
        metrics.requests[name, status] += 1
        metrics.latency[name].add(total)
        front.recent.append((time.time(), self.request_id, name, status, total, self.queued_us, times))
        self.release()
        for observe in front.observers:
            observe(self, status, times, total)

    def release(self) -> None:
        """Drop the body and the room it takes."""
        self.model.room.held -= self.size
        self.size, self.pieces = 0, ()

    def cancel(self) -> None:
        """Give the call up: nobody waits for it."""
        if self.id:
            self.model.engine.cancel(self)
        self.release()

    def grow(self, size: int) -> bool:
        if not self.model.room.take(size, self.size + size):
            return False
        self.size += size
        return True

    def become(self, body: wire.Buffer, berth: Berth | None) -> None:
        self.model.room.held += len(body) - self.size
        super().become(body, berth)


class Landing(NamedTuple):
    """The shared memory that a message was read into, and the model whose workers see it."""

    model: Model
    berth: Berth


class Sent(NamedTuple):
    """What a client sends with an inference."""

    form: bytes
    body: wire.Buffer
    seconds: float | None = None
    """Until its deadline; None: it has none."""
    request_id: bytes = b""
    trace: bytes = b""
    encoding: bytes = b""
    """How the body is compressed; empty: it is not."""
    landing: Landing | None = None
    """Where the body lies, if that is shared memory; the call's from now on."""


def begin(front: Front, sent: Sent, told: Told) -> RpcCall:
    """Submit an inference; `told` may be called before this returns. Raises RpcError."""
    try:
        model, target, forms, heads = _destination(front, sent)
        size = len(sent.body)
        if not model.room.take(size, size):
            raise refused(NO_ROOM)
    except RpcError:
        if sent.landing is not None:
            sent.landing.berth.drop()
        raise
    call = RpcCall(front, model, forms[sent.form], told)
    call.request_id = sent.request_id if REQUEST_ID.fullmatch(sent.request_id) else front.new_request_id()
    call.trace = sent.trace
    rest = heads[sent.form]
    if call.trace or sent.encoding:
        rest = rpc_head(target, sent.form)._replace(traceparent=call.trace, encoding=sent.encoding).pack()
    call.head = call.request_id + rest
    longest = model.settings.timeout
    call.deadline = call.arrived + (longest if sent.seconds is None else min(longest, max(0.0, sent.seconds)))
    call.size = size
    if sent.landing is None:
        call.pieces = (sent.body,)
    else:
        call.berth = sent.landing.berth
        if sent.landing.model is not model:
            call.come_ashore()
    _submit(call)
    return call


def announced(front: Front, first: wire.Buffer) -> Model | None:
    """The model that a message is for of which only the first bytes have come; None where they do not tell.

    Raises RpcError where there is no such model.
    """
    name = leading_name(first)
    return _target(front, *name).model if name is not None else None


def _destination(front: Front, sent: Sent) -> RpcTarget:
    """The model that a message names. Raises RpcError."""
    try:
        if sent.encoding:
            name = leading_name(beginning(sent.encoding, sent.body))
            return _target(front, *(name or named(beginning(sent.encoding, sent.body))))
        return _target(front, *named(sent.body))
    except ValueError:
        raise RpcError(INVALID_ARGUMENT, "the message is no ModelInferRequest") from None


def _target(front: Front, name: str, version: str) -> RpcTarget:
    target = front.paths.rpc.get((name, version))
    if target is None:
        try:
            model = v2.find(front.models, name, version)
        except v2.Missing as missing:
            raise refused(missing.fault) from None
        raise RpcError(UNIMPLEMENTED, f"model '{model.name}' takes no tensors")
    return target


def _submit(call: RpcCall) -> None:
    try:
        fault = call.model.engine.submit(call)
    except Exception:
        call.cancel()
        raise
    if fault is not None:
        call.fail(fault)
