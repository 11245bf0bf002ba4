"""The client for programs with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx

from panglot.client.answers import CallAnswer, answer_of, parser_of
from panglot.client.attempts import Outcome, Pause, Result, Send, Steps
from panglot.client.common import CallerBase
from panglot.client.errors import CallError
from panglot.client.jobs import AsyncJobHandle, name_of
from panglot.client.requests import NOTHING
from panglot.inputs.base import About


class AsyncClient(CallerBase):
    """`Client` for programs with an event loop: the same methods, with `await`."""

    _http: httpx.AsyncClient
    _make_http = httpx.AsyncClient
    _make_transport = httpx.AsyncHTTPTransport

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def predict(self, **values: Any) -> Any:
        """The answer to values by name: a path, bytes or an open file is sent as a file. Raises CallError."""
        return (await self.call(**values)).value

    async def ask(self, given: Any = NOTHING, /, **values: Any) -> Any:
        """The answer to one input, sent as the server's platform wants it: a path or bytes, or else a JSON value.

        Raises CallError when there is no good answer, and ValueError for an input that cannot be sent there.
        """
        return (await self.call(given, **values)).value

    async def call(self, given: Any = NOTHING, /, **values: Any) -> CallAnswer:
        """As `ask`, with everything that is known about the answer."""
        return answer_of(await self._drive(self._calling(given, values)))

    async def stream(self, given: Any = NOTHING, /, **values: Any) -> AsyncIterator[Any]:
        """The parts of an answer as they come; an answer in one piece is the only part. Raises CallError."""
        response = await self._drive(self._calling(given, values, whole=False))
        try:
            parser = parser_of(response)
            if parser is None:
                await response.aread()
                yield answer_of(response).value
                return
            async for line in response.aiter_lines():
                for part in parser.feed(line):
                    yield part
        except httpx.HTTPError as error:
            raise self._lost(error, response) from None
        finally:
            await response.aclose()

    async def submit(
        self, given: Any = NOTHING, /, *, idempotency_key: str = "", webhook: str = "", **values: Any
    ) -> AsyncJobHandle:
        """Have an input run as a job, which outlives this connection. Raises CallError, and ValueError as `ask`.

        A second job with the same `idempotency_key` is the first one. The server calls the address `webhook` when the
        job ends. An input that has fields of these names is given as a dict.
        """
        response = await self._drive(self._submitting(given, values, idempotency_key, webhook))
        try:
            name = name_of(response)
            # So that the connection can be used again. If it is lost, the job is known nevertheless.
            with contextlib.suppress(httpx.HTTPError):
                await response.aread()
        finally:
            await response.aclose()
        return self.job(name)

    def job(self, name: str) -> AsyncJobHandle:
        """A job that was submitted before, by its id."""
        return AsyncJobHandle(self, name, self._job_steps(name))

    async def map(
        self, inputs: Iterable[Any], *, concurrency: int = 8, return_errors: bool = False
    ) -> AsyncIterator[Any]:
        """The answers to many inputs in their order, at most `concurrency` of them under way.

        With `return_errors` a CallError is yielded instead of its answer; without, it is raised.
        """
        waiting: deque[asyncio.Task[Any]] = deque()
        try:
            for given in inputs:
                waiting.append(asyncio.create_task(self.ask(given)))
                if len(waiting) >= concurrency:
                    yield await _result(waiting.popleft(), return_errors)
            while waiting:
                yield await _result(waiting.popleft(), return_errors)
        finally:
            # The caller may have stopped before the last answer: nobody would cancel the other calls.
            for task in waiting:
                task.cancel()

    async def about(self) -> About:
        """What the server says about itself, read once, as soon as its script is loaded."""
        return await self._drive(self._learning())

    async def _drive(self, steps: Steps[Result]) -> Result:
        """Do the steps: send, and sleep."""
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = await self._send(step) if isinstance(step, Send) else None
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
        except StopIteration as done:
            result: Result = done.value
            return result

    async def _send(self, step: Send) -> httpx.Response | httpx.HTTPError:
        try:
            response = await self._http.send(self._request(step), stream=not step.whole)
            # Also for a stream: the error is in the body, and reading it frees the connection.
            if response.status_code >= 400:
                await response.aread()
            return response
        except httpx.HTTPError as error:
            return error


async def _result(task: asyncio.Task[Any], return_errors: bool) -> Any:
    try:
        return await task
    except CallError as error:
        if return_errors:
            return error
        raise
