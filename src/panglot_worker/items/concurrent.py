"""Serving a dialect that keeps several items in flight, whose functions are awaited: `async def predict`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from typing import Any, AsyncIterator, Dict, Iterator, Set

from panglot_worker.dialects.base import Dialect, Request, Stages
from panglot_worker.items.replying import cancelled, durations, finished
from panglot_worker.items.running import Runner, encoding_of_parts
from panglot_worker.line import wire
from panglot_worker.line.port import FrontGone, Port
from panglot_worker.scripts import current


class Concurrent:
    """One task per item on the main thread's event loop. Items are answered in any order."""

    def __init__(self, dialect: Dialect, stages: Stages, port: Port, rerun: bool) -> None:
        self.dialect = dialect
        self.stages = stages
        self.by_route = stages.by_route
        self.port = port
        self.runner = Runner(dialect, stages, port, rerun)
        self.tasks: Dict[int, "asyncio.Task[None]"] = {}
        self.unwanted: Set[int] = set()
        self.stopping = False
        self.ended: "asyncio.Future[str]"
        self.room: asyncio.Semaphore

    async def serve(self) -> str:
        """Run items until the front says stop and none is left. Returns why it ended."""
        loop = asyncio.get_running_loop()
        self.ended = loop.create_future()
        self.room = asyncio.Semaphore(self.dialect.slots)
        loop.add_reader(self.port.fileno(), self._readable)
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
            self._cancel()
            self.port.tell_free()
        except (FrontGone, wire.WireError) as error:
            if not self.ended.done():
                self.ended.set_exception(error)

    def _frame(self) -> None:
        kind, _flags, count, payload = self.port.pending.popleft()
        if kind == wire.STOP:
            self.stopping = True
            self._end_when_idle()
        elif kind == wire.RUN:
            for item in self.port.items(payload, count):
                task = asyncio.ensure_future(self._run(Request(item)))
                self.tasks[item.id] = task
                task.add_done_callback(functools.partial(self._forget, item.id))
        else:
            raise wire.WireError("unexpected frame %s" % wire.NAMES.get(kind, kind))

    def _forget(self, item_id: int, task: "asyncio.Task[None]") -> None:
        # Here and not in the task: one that is cancelled before it began never runs a line.
        if task.cancelled():
            self.port.reply(cancelled(item_id))
        self.unwanted.discard(item_id)
        self.tasks.pop(item_id, None)
        self.port.tell_free()
        self._end_when_idle()

    def _end_when_idle(self) -> None:
        if self.stopping and not self.tasks and not self.ended.done():
            self.ended.set_result("")

    def _cancel(self) -> None:
        while self.port.cancelled:
            item_id = self.port.cancelled.pop()
            task = self.tasks.get(item_id)
            if task is not None:
                self.unwanted.add(item_id)
                task.cancel()

    async def _run(self, request: Request) -> None:
        async with self.room:
            current.in_task.set((request,))
            try:
                await self._run_stages(request)
            finally:
                request.let_go()

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
            output = stages.infer(value)
            if inspect.isgenerator(output):
                output = by_turns(output)
            if inspect.isasyncgen(output):
                await self._stream(request, output, stages.postprocess)
                return
            output = await settled(output)
            marks.append(now())
            stage = "postprocess"
            if stages.postprocess is not None:
                output = await settled(stages.postprocess(output))
            marks.append(now())
            stage = "encode"
            answer = stages.encode(output, request)
            marks.append(now())
        except asyncio.CancelledError as error:
            if request.id in self.unwanted:
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
        writing = encoding_of_parts(self.dialect, request)
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
        if self.runner.broken and not self.ended.done():
            self.ended.set_result(self.runner.broken)


async def by_turns(parts: Iterator[Any]) -> AsyncIterator[Any]:
    """What an ordinary generator yields, with a turn for the others after each part."""
    for part in parts:
        yield part
        await asyncio.sleep(0)


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def serve(dialect: Dialect, stages: Stages, port: Port, rerun: bool) -> str:
    """Run items until the front says stop, or the script has spoilt the process. Returns why it ended."""
    return dialect.event_loop().run_until_complete(Concurrent(dialect, stages, port, rerun).serve())
