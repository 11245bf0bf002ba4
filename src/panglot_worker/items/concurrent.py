"""Serving a dialect with several items in flight, whose functions are awaited: `async def predict`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import time
from collections import deque
from typing import Any, AsyncIterator, Deque, Dict, Iterator, Set

from panglot_worker.dialects.base import Dialect, Request, Stages
from panglot_worker.items.capturing import capture_of
from panglot_worker.items.replying import cancelled, durations, finished
from panglot_worker.items.serving import runner_of
from panglot_worker.line import wire
from panglot_worker.line.port import FrontGone, Port
from panglot_worker.scripts import current


class Slots:
    """Runs as many tasks at once as there are slots; further tasks wait in their order. The number may change."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken = 0
        self._waiting: Deque["asyncio.Future[None]"] = deque()

    async def __aenter__(self) -> None:
        # A newcomer must not overtake those that wait, even if a slot is free at this moment.
        if self._taken < self.most and not self._waiting:
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):  # `_wake` may have passed over it already.
                    self._waiting.remove(turn)
            else:
                # The slot was given to this task just before it was cancelled.
                await self.__aexit__()
            raise

    async def __aexit__(self, *raised: Any) -> None:
        self._taken -= 1
        self._wake()

    def resize(self, most: int) -> None:
        """Change the number of slots. Tasks beyond it run to their end."""
        self.most = most
        self._wake()

    def _wake(self) -> None:
        while self._taken < self.most and self._waiting:
            turn = self._waiting.popleft()
            # A cancelled task leaves the queue only when it runs again: until then its turn may still be here.
            if not turn.done():
                # Counted here, not when the task wakes: another one may ask for a slot before that.
                self._taken += 1
                turn.set_result(None)


class Concurrent:
    """One task per item on the main thread's event loop. Items are answered in any order."""

    def __init__(self, dialect: Dialect, stages: Stages, port: Port, rerun: bool) -> None:
        self.dialect = dialect
        self.stages = stages
        self.by_route = stages.by_route
        self.port = port
        self.capture = capture_of(dialect, stages, port)
        if self.capture is not None:
            self.stages = stages = self.capture.around(stages)
            self.by_route = stages.by_route
        self.runner = runner_of(dialect, stages._replace(by_route={}), port, rerun, None, self.capture)
        self.tasks: Dict[int, "asyncio.Task[None]"] = {}
        self.unwanted: Set[int] = set()
        self.stopping = False
        self.ended: "asyncio.Future[str]"
        self.slots: Slots

    async def serve(self) -> str:
        """Run items until the front says stop and none is left. Returns why it ended."""
        loop = asyncio.get_running_loop()
        self.ended = loop.create_future()
        self.slots = Slots(self.dialect.slots)
        self.dialect.serving = self
        self.port.has_reader = True
        loop.add_reader(self.port.fileno(), self._readable)
        # Frames may have been read together with the last one, and the socket then never becomes readable for them.
        self._readable()
        try:
            return await self.ended
        finally:
            loop.remove_reader(self.port.fileno())

    def _readable(self) -> None:
        try:
            self.port.poll()
            while self.port.pending:
                self._frame()
            # After the frames: RUN and CANCEL of one item may have come in the same read.
            self._cancel()
            self.port.tell_free()
        except (FrontGone, wire.WireError) as error:
            # Raised here it would only be logged by the loop; `serve` waits for this future.
            if not self.ended.done():
                self.ended.set_exception(error)

    def _frame(self) -> None:
        kind, _flags, count, payload = self.port.pending.popleft()
        if kind == wire.STOP:
            self.stopping = True
            self._end_when_idle()
        elif kind == wire.RUN:
            for item in self.port.items(payload, count):
                # A task begins at the next turn of the loop, so it is in `tasks` before its first line runs.
                task = asyncio.ensure_future(self._run(Request(item)))
                self.tasks[item.id] = task
                task.add_done_callback(functools.partial(self._forget, item.id))
        else:
            raise wire.WireError("unexpected frame %s" % wire.NAMES.get(kind, kind))

    def _forget(self, item_id: int, task: "asyncio.Task[None]") -> None:
        # Here, not in the task: a task that is cancelled before it begins never runs a line.
        if task.cancelled():
            self.port.reply(cancelled(item_id))
        self.unwanted.discard(item_id)
        self.tasks.pop(item_id, None)
        self.port.tell_free()
        self._end_when_idle()

    def _end_when_idle(self) -> None:
        if self.stopping and not self.tasks and not self.ended.done():
            self.ended.set_result("")

    def end(self, why: str) -> None:
        """Have this process end once all its items are answered: the front sends no further ones, and then STOP."""
        self.port.tell(wire.EVENT, {"type": "replace", "reason": why})

    def resize(self, slots: int) -> None:
        self.slots.resize(slots)

    def _cancel(self) -> None:
        while self.port.cancelled:
            item_id = self.port.cancelled.pop()
            task = self.tasks.get(item_id)
            if task is not None:
                # Before `cancel`: by this set the task tells a cancellation by the front from one by the script.
                self.unwanted.add(item_id)
                task.cancel()

    async def _run(self, request: Request) -> None:
        async with self.slots:
            # Each task has its own copy of the context, so that nothing is reset at its end.
            current.in_task.set((request,))
            try:
                # With several slots nobody can say which call has printed a line.
                if self.capture is not None and self.slots.most == 1:
                    with self.capture.of(request):
                        await self._run_stages(request)
                else:
                    await self._run_stages(request)
            finally:
                request.release()

    async def _run_stages(self, request: Request) -> None:
        stages = self.stages_of(request)
        now = time.perf_counter
        marks = [now()]
        stage = "decode"
        try:
            value = stages.decode(request)
            marks.append(now())
            stage = "preprocess"
            if stages.preprocess is not None:
                value = await settled(stages.preprocess(value))
            marks.append(now())
            stage = "inference"
            # An awaited function may return a generator too.
            output = await settled(stages.infer(value))
            if inspect.isgenerator(output):
                output = by_turns(output)
            if inspect.isasyncgen(output):
                await self._stream(request, output, stages.postprocess)
                return
            marks.append(now())
            stage = "postprocess"
            if stages.postprocess is not None:
                output = await settled(stages.postprocess(output))
            marks.append(now())
            stage = "encode"
            answer = stages.encode(output, request)
            marks.append(now())
        except asyncio.CancelledError as error:
            # A cancellation by the front must go on: `_forget` replies only to a task that ends cancelled.
            if request.id in self.unwanted:
                self.dialect.cancelled(request)
                raise
            marks.append(now())
            failure = RuntimeError("the script cancelled its own call")
            failure.__cause__ = error
            self._failed(request, failure, stage, marks)
            return
        except BaseException as error:
            marks.append(now())
            self._failed(request, error, stage, marks)
            return
        self.runner.sickness.alike = 0
        self.port.reply(finished(request.id, answer, durations(marks)))

    def stages_of(self, request: Request) -> Stages:
        return self.by_route.get(request.head.route, self.stages) if self.by_route else self.stages

    async def _stream(self, request: Request, parts: Any, postprocess: Any) -> None:
        writing = self.runner.parts_of(request)
        encode_part, head = writing.encode, writing.content_type.encode("latin-1")
        async for part in parts:
            if postprocess is not None:
                part = await settled(postprocess(part))
            body = encode_part(part)
            self.port.reply(wire.Reply(request.id, 200, wire.MORE, wire.NO_TIMES, head, body))
        self.runner.sickness.alike = 0
        self.port.reply(wire.Reply(request.id, 200, 0, wire.NO_TIMES, head, writing.end()))

    def _failed(self, request: Request, error: BaseException, stage: str, marks: Any) -> None:
        self.port.reply(self.runner.failed_reply(request, error, stage, durations(marks)))
        # Calls in progress are not waited for: as after a death, the front decides whether they run again.
        if self.runner.broken and not self.ended.done():
            self.ended.set_result(self.runner.broken)


async def by_turns(parts: Iterator[Any]) -> AsyncIterator[Any]:
    """The parts of an ordinary generator, with a turn for other tasks after each."""
    for part in parts:
        yield part
        # An ordinary generator never gives way by itself: no other task would run, and no cancellation be read.
        await asyncio.sleep(0)


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def serve(dialect: Dialect, stages: Stages, port: Port, rerun: bool) -> str:
    """Run items until the front says stop, or the script has spoilt the process. Returns why it ended."""
    return dialect.event_loop().run_until_complete(Concurrent(dialect, stages, port, rerun).serve())
