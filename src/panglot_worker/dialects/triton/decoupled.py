"""Serving models that send their responses themselves, when and as many as they like.

`execute` runs on the main thread, one call after the other. What it sends goes out at once, from whatever thread it is
sent. A call that has returned may leave requests open, for threads or tasks of the model to answer: meanwhile the next
call begins, as in Triton.
"""

from __future__ import annotations

import inspect
import queue
import select
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any, Deque, Dict, List, Optional

from panglot_worker.dialects.base import Dialect, Request, Stages
from panglot_worker.dialects.triton.answers import ModelRefusal, WrongResponse
from panglot_worker.dialects.triton.writing import writer_of
from panglot_worker.errors import described
from panglot_worker.items.replying import cancelled
from panglot_worker.items.running import Runner
from panglot_worker.line import wire
from panglot_worker.line.port import Frame, FrontGone, Port
from panglot_worker.scripts import current
from panglot_worker.scripts.loading import script_traceback

MOST_OPEN = 512
"""Requests that a worker has at once: those beyond wait in the server's queue."""
LOOK_EVERY = 1.0
"""Seconds after which a thread that waits for a slow client looks again whether it holds up other requests."""
LOST = "the model let go of its request and sent no last response"


class OpenCall:
    """A request that the model answers: the way of its responses. Any thread may call it."""

    def __init__(self, server: "DecoupledServer", request: Request) -> None:
        self.server = server
        self.request = request
        self.started = time.perf_counter()
        self.is_over = False
        """Whether it has its final reply. Read and written with the lock."""
        self.unwanted = False
        self.is_held = False
        """Whether its client reads more slowly than responses come."""
        self.held_up = 0.0
        """Seconds for which a thread that also answers others has waited for its client."""
        self.sender = 0
        """The thread that sent the last response; 0: there is none yet."""
        self._lock = threading.Lock()
        self._writer: Any = None

    def begin(self) -> None:
        """Choose how responses are written. Raises ClientError where the client cannot take what the model sends."""
        self._writer = writer_of(self.server.runner, self.server.stages, self.request)

    def is_cancelled(self) -> bool:
        return self.unwanted

    def take(self, response: Any, last: bool) -> None:
        """Send a response, the end, or both. A failure to encode it is the request's end."""
        self.sender = threading.get_ident()
        if self.is_held:
            self.server.wait_for_client(self)
        with self._lock:
            # Cancelled meanwhile, or failed: what the model still sends is dropped.
            if self.is_over:
                return
            try:
                replies = self._writer.replies(response, last, self._times())
                self.is_over = last
                self.server.port.reply(*replies)
            except Exception as error:
                self._fail(error, "inference" if isinstance(error, ModelRefusal) else "encode")
        if last:
            self.server.on_over(self)

    def lost(self) -> None:
        """Note that nothing of the model refers to the request any more. Called while objects are collected."""
        # Not answered here: this may run in the middle of a `send` on the same thread, which holds its lock.
        self.server.lost.put(self)

    def fail(self, error: BaseException) -> bool:
        """Answer with a failure; False when there is an answer already."""
        with self._lock:
            if self.is_over:
                return False
            self._fail(error, "inference")
        self.server.on_over(self)
        return True

    def cancel(self) -> None:
        """Nobody waits any more: the model is told when it asks, and the front has its slot back at once."""
        self.unwanted = True
        # A thread may wait for this client in `take`.
        self.server.pace(self.request.id, False)
        with self._lock:
            if self.is_over:
                return
            self.is_over = True
            self.server.port.reply(cancelled(self.request.id))
        self.server.on_over(self)

    def _fail(self, error: BaseException, stage: str) -> None:
        self.is_over = True
        self.server.port.reply(self.server.runner.failed_reply(self.request, error, stage, self._times()))

    def _times(self) -> wire.Times:
        return (0, 0, int((time.perf_counter() - self.started) * 1e6), 0, 0)


class DecoupledServer:
    """Runs the calls of one worker. Its main thread executes; another thread reads from the front."""

    def __init__(self, dialect: Any, stages: Stages, port: Port, rerun: bool) -> None:
        self.dialect = dialect
        self.stages = stages
        self.port = port
        self.rerun = rerun
        self.runner = Runner(dialect, stages, port, rerun)
        self.rows = dialect.configuration.rows if dialect.configuration.shares else 1
        """The most rows of a call."""
        self.delay: float = dialect.configuration.delay
        settings = dialect.package.settings
        self.patience: float = float(settings.get("slow_reader", 0)) or float("inf")
        """Seconds for which the client of one request may hold up others."""
        self.longest_wait = float(settings.get("run_timeout", 60)) / 2
        """Seconds for which a send waits at most: a call without a part for `run_timeout` is taken for a hung one."""
        self.open: Dict[int, OpenCall] = {}
        """All requests without a final reply. Read and written with `changed`."""
        self.waiting: Deque[OpenCall] = deque()
        self.lost: "queue.SimpleQueue[OpenCall]" = queue.SimpleQueue()
        self.changed = threading.Condition()
        self.executing = self.stopping = False
        self.stands_still = False
        """Whether `execute` itself waits for a client. The front then sends more, which shows whether others wait."""
        self.error: Optional[BaseException] = None

    # What the front sends

    def _read(self) -> None:
        """Read frames until the end, on a thread of its own: a cancellation must be heard while `execute` runs."""
        arrived = select.poll()
        arrived.register(self.port.fileno(), select.POLLIN)
        try:
            while not self.stopping:
                while self.port.pending:
                    self._frame(self.port.pending.popleft())
                self._cancel()
                self.port.tell_free()
                if not self.stopping:
                    arrived.poll()
                    self.port.poll()
        except (FrontGone, OSError, wire.WireError) as error:
            with self.changed:
                self.error = error
                self.changed.notify_all()

    def _frame(self, frame: Frame) -> None:
        if frame.kind not in (wire.RUN, wire.STOP):
            raise wire.WireError("unexpected frame %s" % wire.NAMES.get(frame.kind, frame.kind))
        with self.changed:
            if frame.kind == wire.STOP:
                self.stopping = True
            else:
                calls = [OpenCall(self, Request(item)) for item in self.port.items(frame.payload, frame.items)]
                self.open.update((call.request.id, call) for call in calls)
                self.waiting.extend(calls)
            self.changed.notify_all()

    def _cancel(self) -> None:
        while self.port.cancelled:
            with self.changed:
                call = self.open.get(self.port.cancelled.pop())
            if call is not None:
                call.cancel()

    # Clients that read slowly

    def pace(self, item_id: int, hold: bool) -> None:
        """Note that the client of a request reads too slowly, or that nothing needs to wait for it any more."""
        with self.changed:
            call = self.open.get(item_id)
            if call is not None:
                call.is_held = hold
                self.changed.notify_all()

    def wait_for_client(self, call: OpenCall) -> None:
        """Wait until the client of a request has read, is gone, or has held up others for too long."""
        # A task that waited here would hold up all others.
        if self.dialect.loop.is_here:
            return
        now = time.monotonic()
        until = now + self.longest_wait
        with self.changed:
            executes = self.executing and threading.current_thread() is threading.main_thread()
            if executes:
                self.stands_still = True
                self._tell_slots()
            while call.is_held and not call.is_over and now < until and call.held_up < self.patience:
                if self.error is not None:
                    break
                # Judged before the wait: only the time counts in which others were held up.
                others = bool(self.waiting) if executes else self._shares_thread(call)
                self.changed.wait(min(until - now, self.patience - call.held_up, LOOK_EVERY))
                before, now = now, time.monotonic()
                if others:
                    call.held_up += now - before
            if executes:
                self.stands_still = False
                self._tell_slots()

    def _shares_thread(self, call: OpenCall) -> bool:
        """Whether the present thread answers other requests too, or may be the one that will."""
        senders = (0, threading.get_ident())
        return any(other is not call and other.sender in senders for other in self.open.values())

    def _bury(self) -> None:
        """Answer the requests that the model has forgotten."""
        while True:
            call = self.lost.get()
            call.fail(self.dialect.utils.Lost(LOST))

    # What the model does

    def on_over(self, call: OpenCall) -> None:
        """Forget a request that has its final reply."""
        with self.changed:
            self.open.pop(call.request.id, None)
            self._tell_slots()
            self.changed.notify_all()

    def _tell_slots(self) -> None:
        """Have the front send the requests that the model can begin now: none while `execute` runs, which may last."""
        free = 0 if self.executing and not self.stands_still else self.rows
        self.dialect.change_slots(min(MOST_OPEN, len(self.open) + free))

    def end(self, why: str) -> None:
        """Have this process end once all it holds is answered: the front sends no more, and then STOP."""
        self.port.tell(wire.EVENT, {"type": "replace", "reason": why})

    def resize(self, slots: int) -> None:
        """Do nothing: the model decides by itself how many requests are open."""

    def serve(self) -> str:
        """Run calls until the front says stop and none is left. Returns why it ended."""
        self.dialect.serving = self
        self.port.has_reader = True
        self.port.on_pace = self.pace
        with self.changed:
            self._tell_slots()
        for work in (self._read, self._bury):
            threading.Thread(target=work, name="panglot" + work.__name__, daemon=True).start()
        while True:
            batch = self._next()
            if not batch:
                return self.runner.broken
            with self.changed:
                self.executing = True
            try:
                self._run(batch)
            finally:
                current.running.clear()
                with self.changed:
                    self.executing = False
                    self._tell_slots()

    def _next(self) -> List[OpenCall]:
        """The requests of the next call; none at the end. Raises what reading from the front met."""
        with self.changed:
            while True:
                if self.error is not None:
                    raise self.error
                # Open requests are not waited for: as after a death, the front decides whether they run again.
                if self.runner.broken or (self.stopping and not self.open):
                    return []
                patience = self._patience()
                if patience is not None and patience <= 0:
                    return [self.waiting.popleft() for _ in range(min(self.rows, len(self.waiting)))]
                self.changed.wait(patience)

    def _patience(self) -> Optional[float]:
        """Seconds for which the next call waits for more requests; None: there is no call to make."""
        if not self.waiting:
            return None
        if len(self.waiting) >= self.rows or not self.delay or self.stopping:
            return 0.0
        return self.waiting[0].started + self.delay - time.perf_counter()

    def _run(self, batch: List[OpenCall]) -> None:
        """Decode the requests, and call the model as often as their rows need."""
        together: List[Any] = []
        rows = 0
        for call in batch:
            made = self._made(call)
            if made is None:
                continue
            if together and rows + made.rows > self.rows:
                self._execute(together)
                together, rows = [], 0
            together.append((call, made.request))
            rows += made.rows
        if together:
            self._execute(together)

    def _made(self, call: OpenCall) -> Any:
        """The request as the model gets it; None for one that is cancelled, or that the model cannot take."""
        if call.unwanted:
            return None
        try:
            made = self.stages.decode(call.request)
            call.begin()
        except BaseException as error:
            call.fail(error)
            return None
        finally:
            # Arrays are copies: the memory of the body is the front's again.
            call.request.release()
        made.request._responses = self.dialect.utils.Responses(call, decoupled=True)
        made.request._is_cancelled = call.is_cancelled
        return made

    def _execute(self, together: List[Any]) -> None:
        calls = [call for call, _ in together]
        requests = [request for _, request in together]
        current.running[:] = [call.request for call in calls]
        try:
            result = self.dialect.model.execute(requests)
            if inspect.iscoroutine(result):
                awaited = self.dialect.loop.start(result)
                awaited.add_done_callback(lambda done: self._on_awaited(done, calls))
            elif result is not None:
                raise WrongResponse("the model is decoupled, and its execute must return None")
        except BaseException as error:
            self._on_failure(error, calls)
        # No variable here may refer to the requests while the model answers them: see `Responses`.
        finally:
            del requests
            together.clear()

    def _on_awaited(self, done: "Future[Any]", calls: List[OpenCall]) -> None:
        error = done.exception()
        if error is not None:
            self._on_failure(error, calls)

    def _on_failure(self, error: BaseException, calls: List[OpenCall]) -> None:
        """Answer the requests of a call that raised; where all have their answers, the log has it."""
        if not [call for call in calls if call.fail(error)]:
            item = calls[0].request.id
            event = {"type": "failure", "item": item, "message": described(error), "traceback": script_traceback(error)}
            self.port.tell(wire.EVENT, event)
        with self.changed:
            self.changed.notify_all()


def serve(dialect: Dialect, stages: Stages, port: Port, rerun: bool) -> str:
    """Run calls until the front says stop, or the script has spoilt the process. Returns why it ended."""
    return DecoupledServer(dialect, stages, port, rerun).serve()
