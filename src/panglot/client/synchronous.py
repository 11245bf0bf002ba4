"""The client for programs without an event loop."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx

from panglot.client.answers import CallAnswer, answer_of, parser_of
from panglot.client.attempts import Outcome, Pause, Result, Send, Steps
from panglot.client.common import CallerBase
from panglot.client.errors import CallError
from panglot.client.jobs import JobHandle, name_of
from panglot.client.requests import NOTHING
from panglot.inputs.base import About


class Client(CallerBase):
    """Calls a server. Keep one for the whole program: several threads may use it at once, and `with` closes it."""

    _http: httpx.Client
    _make_http = httpx.Client
    _make_transport = httpx.HTTPTransport

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def predict(self, **values: Any) -> Any:
        """The answer to values by name: a path, bytes or an open file is sent as a file. Raises CallError."""
        return self.call(**values).value

    def ask(self, given: Any = NOTHING, /, **values: Any) -> Any:
        """The answer to one input, sent as the server's platform wants it: a path or bytes, or else a JSON value.

        Raises CallError when there is no good answer, and ValueError for an input that cannot be sent there.
        """
        return self.call(given, **values).value

    def call(self, given: Any = NOTHING, /, **values: Any) -> CallAnswer:
        """As `ask`, with everything that is known about the answer."""
        return answer_of(self._drive(self._calling(given, values)))

    def stream(self, given: Any = NOTHING, /, **values: Any) -> Iterator[Any]:
        """The parts of an answer as they come; an answer in one piece is the only part. Raises CallError."""
        response = self._drive(self._calling(given, values, whole=False))
        try:
            parser = parser_of(response)
            if parser is None:
                response.read()
                yield answer_of(response).value
                return
            for line in response.iter_lines():
                yield from parser.feed(line)
        except httpx.HTTPError as error:
            raise self._lost(error, response) from None
        finally:
            response.close()

    def submit(
        self, given: Any = NOTHING, /, *, idempotency_key: str = "", webhook: str = "", **values: Any
    ) -> JobHandle:
        """Have an input run as a job, which outlives this connection. Raises CallError, and ValueError as `ask`.

        A second job with the same `idempotency_key` is the first one. The server calls the address `webhook` when the
        job ends. An input that has fields of these names is given as a dict.
        """
        response = self._drive(self._submitting(given, values, idempotency_key, webhook))
        try:
            name = name_of(response)
            # So that the connection can be used again. If it is lost, the job is known nevertheless.
            with contextlib.suppress(httpx.HTTPError):
                response.read()
        finally:
            response.close()
        return self.job(name)

    def job(self, name: str) -> JobHandle:
        """A job that was submitted before, by its id."""
        return JobHandle(self, name, self._job_steps(name))

    def map(self, inputs: Iterable[Any], *, concurrency: int = 8, return_errors: bool = False) -> Iterator[Any]:
        """The answers to many inputs in their order, at most `concurrency` of them under way.

        With `return_errors` a CallError is yielded instead of its answer; without, it is raised.
        """
        return in_order(self.ask, inputs, concurrency, return_errors)

    def about(self) -> About:
        """What the server says about itself, read once, as soon as its script is loaded."""
        return self._drive(self._learning())

    def _drive(self, steps: Steps[Result]) -> Result:
        """Do the steps: send, and sleep."""
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = self._send(step) if isinstance(step, Send) else None
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
        except StopIteration as done:
            result: Result = done.value
            return result

    def _send(self, step: Send) -> httpx.Response | httpx.HTTPError:
        try:
            response = self._http.send(self._request(step), stream=not step.whole)
            # Also for a stream: the error is in the body, and reading it frees the connection.
            if response.status_code >= 400:
                response.read()
            return response
        except httpx.HTTPError as error:
            return error


def in_order(
    function: Callable[[Any], Any], inputs: Iterable[Any], concurrency: int, return_errors: bool,
    leave: Callable[[], None] = lambda: None,
) -> Iterator[Any]:  # fmt: skip
    """The function's result for each input, in their order. At most `concurrency` inputs are in work at once.

    `leave` is called at the end, also at an early one, before the wait for inputs that are still in work.
    """
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(concurrency, "panglot-client") as threads:
        try:
            for given in inputs:
                waiting.append(threads.submit(function, given))
                if len(waiting) >= concurrency:
                    yield _result(waiting.popleft(), return_errors)
            while waiting:
                yield _result(waiting.popleft(), return_errors)
        finally:
            # The caller may have stopped early. The pool waits for running calls when it closes: `leave` can end them.
            leave()
            for future in waiting:
                future.cancel()


def _result(future: Future[Any], return_errors: bool) -> Any:
    try:
        return future.result()
    except CallError as error:
        if return_errors:
            return error
        raise
