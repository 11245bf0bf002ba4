"""Serving models of sequences: requests of one correlation id run one after the other, in this worker.

Another thread reads from the front. The main thread decodes what has come, and calls the model with at most one request
of each sequence.
"""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Set

from panglot_worker.dialects.base import Dialect, Request, Stages
from panglot_worker.dialects.triton import answers
from panglot_worker.dialects.triton.reserved import ENDS, STARTS
from panglot_worker.dialects.triton.sequence_inputs import SequenceInputs
from panglot_worker.dialects.triton.sequence_slots import SequenceCall, Sequences
from panglot_worker.errors import ClientError
from panglot_worker.items.replying import cancelled, finished, microseconds
from panglot_worker.items.running import Runner
from panglot_worker.line import wire
from panglot_worker.line.port import Frame, FrontGone, Port
from panglot_worker.scripts import current

FIRST_CANCELLED = "the first request of this sequence was cancelled"
now = time.monotonic


class SequenceServer:
    """Runs the requests of one worker."""

    def __init__(self, dialect: Any, stages: Stages, port: Port) -> None:
        self.dialect = dialect
        self.stages = stages
        self.port = port
        self.runner = Runner(dialect, stages, port, False)
        about, rows = dialect.sequences, max(1, dialect.configuration.rows)
        slots = rows if about.direct else about.candidates
        self.sequences = Sequences(dialect.package.name, slots, rows, about.idle, about.direct)
        self.inputs = SequenceInputs(about, dialect.configuration.rows > 0, dialect.utils)
        self.outputs = [tensor.name for tensor in dialect.configuration.outputs]
        self.waiting: Dict[int, SequenceCall] = {}
        """The requests that wait for their turn, by item."""
        self.arrived: Deque[Request] = deque()
        self.gone: Set[int] = set()
        """The items that are cancelled, and have arrived or did so before."""
        self.changed = threading.Condition()
        self.held: List[int] = []
        """The requests that wait for a slot, as the front knows them."""
        self.stopping = False
        self.error: Optional[BaseException] = None

    # What the front sends

    def _read(self) -> None:
        arrived = select.poll()
        arrived.register(self.port.fileno(), select.POLLIN)
        try:
            while not self.stopping:
                with self.changed:
                    # Before the frames: then the request of each of these ids is among them, or has arrived already. A
                    # cancellation that is seen before its request has arrived would be lost.
                    self.gone.update(self.port.cancelled)
                    while self.port.pending:
                        self._frame(self.port.pending.popleft())
                    # Also without a frame: a cancellation is work too.
                    self.changed.notify_all()
                self.port.tell_free()
                if not self.stopping:
                    arrived.poll()
                    self.port.poll()
        except (FrontGone, OSError, wire.WireError) as error:
            with self.changed:
                self.error = error
                self.changed.notify_all()

    def _frame(self, frame: Frame) -> None:
        if frame.kind == wire.STOP:
            self.stopping = True
        elif frame.kind == wire.RUN:
            self.arrived.extend(Request(item) for item in self.port.items(frame.payload, frame.items))
        else:
            raise wire.WireError("unexpected frame %s" % wire.NAMES.get(frame.kind, frame.kind))

    def end(self, why: str) -> None:
        """Have this process end once all it holds is answered: the front sends no more, and then STOP."""
        self.port.tell(wire.EVENT, {"type": "replace", "reason": why})

    def resize(self, slots: int) -> None:
        """Do nothing: the slots are those of the configuration."""

    # Running

    def serve(self) -> str:
        """Run requests until the front says stop and none is left. Returns why it ended."""
        self.dialect.serving = self
        self.port.has_reader = True
        threading.Thread(target=self._read, name="panglot-read", daemon=True).start()
        while True:
            with self.changed:
                while not self._has_work():
                    if self.error is not None:
                        raise self.error
                    if self.runner.broken or (self.stopping and not self.waiting):
                        return self.runner.broken
                    if self.stopping and self.sequences.by_name:
                        # Their further requests go to another worker: only their places are of use here.
                        self.sequences.close()
                        continue
                    until = self.sequences.next_expiry() - now()
                    self.changed.wait(until if until < threading.TIMEOUT_MAX else None)
                arrived, gone = list(self.arrived), list(self.gone)
                self.arrived.clear()
                self.gone.clear()
            for request in arrived:
                self._take(request)
            self._drop(gone)
            self.sequences.expire(now())
            self._tell_held()
            batch = self.sequences.next()
            if any(batch):
                self._execute(batch)

    def _has_work(self) -> bool:
        if self.error is not None or self.runner.broken:
            return False
        is_due = self.sequences.next_expiry() <= now()
        # A cancelled request that waits has to be answered, even where nothing can run.
        gone = any(item in self.waiting for item in self.gone)
        return bool(self.arrived) or self.sequences.is_runnable or is_due or gone

    def _take(self, request: Request) -> None:
        """Decode a request and queue it in its sequence, or answer what is wrong with it."""
        try:
            made = self.stages.decode(request)
            if made.rows > 1:
                raise ClientError("a request of a sequence has one row, and this one has %d" % made.rows)
            flags, name = made.request.flags(), made.request.correlation_id()
            self.inputs.check(name)
            call = SequenceCall(request, made, bool(flags & STARTS), bool(flags & ENDS))
            self.sequences.add(call, name, now())
            self.waiting[request.id] = call
        except BaseException as error:
            self.port.reply(self.runner.failed_reply(request, error, "decode", wire.NO_TIMES))
        finally:
            # Arrays are copies: the memory of the body is the front's again.
            request.release()

    def _tell_held(self) -> None:
        """Tell the front which requests wait for a slot. It knows whether the models that made them wait for ever."""
        held = self.sequences.held()
        if held != self.held:
            self.held = held
            since = self.sequences.oldest_last()
            self.port.tell(wire.EVENT, {"type": "held", "items": held, "since": since})

    def _drop(self, gone: List[int]) -> None:
        """Answer the requests that are cancelled and still wait."""
        for item in gone:
            self.port.cancelled.discard(item)
            call = self.waiting.pop(item, None)
            if call is None:
                continue
            self.port.reply(cancelled(item))
            for other in self.sequences.remove(call):
                del self.waiting[other.item.id]
                error = ClientError(FIRST_CANCELLED)
                self.port.reply(self.runner.failed_reply(other.item, error, "inference", wire.NO_TIMES))

    def _execute(self, batch: List[Optional[SequenceCall]]) -> None:
        calls = [call for call in batch if call is not None]
        for call in calls:
            del self.waiting[call.item.id]
        started = now()
        current.running[:] = [call.item for call in calls]
        try:
            for call in calls:
                self.inputs.complete(call)
            given = [call.made if call is not None else self._empty(calls[0]) for call in batch]
            responses = self.dialect.execute(given)
            took = microseconds(now() - started)
            replies = [self._reply(call, response, took) for call, response in zip(batch, responses) if call]
        except BaseException as error:
            times = (0, 0, microseconds(now() - started), 0, 0)
            replies = [self.runner.failed_reply(call.item, error, "inference", times) for call in calls]
        finally:
            current.running.clear()
        for call in calls:
            self.sequences.done(call, now())
        self.port.reply(*replies)

    def _empty(self, like: SequenceCall) -> Any:
        return like.made._replace(request=self.inputs.empty(like))

    def _reply(self, call: SequenceCall, response: Any, took: int) -> wire.Reply:
        times = (0, 0, took, 0, 0)
        stage = "inference"
        try:
            checked = answers.checked(response)
            self.inputs.take_states(call.sequence, checked, self.outputs)
            stage = "encode"
            return finished(call.item.id, self.stages.encode(checked, call.item), times)
        except Exception as error:
            return self.runner.failed_reply(call.item, error, stage, times)


def serve(dialect: Dialect, stages: Stages, port: Port, rerun: bool) -> str:
    """Run requests until the front says stop, or the script has spoilt the process. Returns why it ended."""
    return SequenceServer(dialect, stages, port).serve()
