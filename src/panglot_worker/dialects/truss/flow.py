"""The way of a request through the methods of a model: one after another, or many at once on an event loop.

What a method gives may be a value, a stream, or a response of starlette's; a value goes on to `postprocess`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Iterator, List, Optional

from panglot_worker.dialects.base import Answer, Request
from panglot_worker.dialects.truss import answers
from panglot_worker.dialects.truss.methods import INPUTS, Method
from panglot_worker.dialects.truss.requests import Call, Requests, scope_of
from panglot_worker.errors import ClientError, EncodeError
from panglot_worker.scripts import current

if TYPE_CHECKING:
    from panglot_worker.dialects.truss import Truss

VALUES = frozenset((dict, list, str, int, float, bool, type(None), tuple))
"""Types that are never a stream nor a response."""
NO_POSTPROCESS = "ModelDefinitionError: if predict returns a %s, there can be no postprocess"
END = object()
GONE = 499
"""The platform's status for a request whose client has gone."""


class Unhandled(Exception):
    """A failure whose text the platform sends to the client: of a stream that was to become one text."""


class WrongModel(EncodeError):
    """A result with which the model breaks the platform's rules while it runs."""


def gathers(request: Request) -> bool:
    """Whether the client wants a stream as one text of JSON. OpenAI's client always asks for JSON, and reads streams.

    It is known by its User-Agent.
    """
    head = request.head
    if head.accept != b"application/json":
        return False
    for line in head.headers.split(b"\n"):
        if line.startswith(b"user-agent:") and b"openai" in line.lower():
            return False
    return True


def caller(method: Method, requests: Optional[Requests]) -> Callable[[Any], Any]:
    """The method as a function of a value; with `requests`, of a Call."""
    function = method.function
    if requests is None:
        return function if method.takes == INPUTS else lambda value: function()

    def call(value: Call) -> Any:
        made = requests.of(value.incoming) if method.takes_request else None
        return function(*method.arguments(value.inputs, made))

    return call


class Flow:
    """The stages of one route, for a worker that runs one request at a time."""

    def __init__(
        self,
        dialect: Truss,
        main: Method,
        requests: Optional[Requests],
        before: Optional[Method] = None,
        after: Optional[Method] = None,
    ) -> None:
        self.dialect = dialect
        self.with_call = requests is not None
        self.main = caller(main, requests)
        self.before = caller(before, requests) if before is not None else None
        self.after = caller(after, requests) if after is not None else None
        self.has_after = after is not None

    def preprocess(self, value: Any) -> Any:
        assert self.before is not None
        result = self.dialect.settled(self.before(value))
        return value._replace(inputs=result) if self.with_call else result

    def _skip_if_gone(self, step: str) -> None:
        """Raise ClientError before a further step, for a client that has gone."""
        if self.dialect.is_gone(current.current()[0].id):
            raise ClientError("Client disconnected, skipping `%s`." % step, status=GONE)

    def infer(self, value: Any) -> Any:
        if self.before is not None:
            self._skip_if_gone("predict")
        output = self.main(value)
        if type(output) not in VALUES:
            output = self._concluded(self.dialect.settled(output))
        return value._replace(inputs=output) if self.with_call and self.has_after else output

    def postprocess(self, value: Any) -> Any:
        """What postprocess gives; a stream of it, or a response, is collected."""
        assert self.after is not None
        self._skip_if_gone("postprocess")
        output = self.dialect.settled(self.after(value))
        if type(output) in VALUES:
            return output
        if is_stream(output):
            return whole_stream(list(self._chunks(output)))
        return self._whole(output) if answers.is_response(output) else output

    def _concluded(self, output: Any) -> Any:
        """A stream as a generator, or as one text; a response that comes in parts likewise; all else as it is."""
        if is_stream(output):
            refuse(self.has_after, "generator")
            if not gathers(current.current()[0]):
                return output if inspect.isgenerator(output) else self._chunks(output)
            try:
                return answers.gathered(list(self._chunks(output)))
            except Exception as error:
                raise unhandled(error) from None
        if answers.is_response(output):
            refuse(self.has_after, "response")
            return output if answers.is_known(output) else self._response(output, current.current()[0])
        return output

    def _chunks(self, stream: Any) -> Iterator[Any]:
        """The parts of a generator, ordinary or asynchronous."""
        if inspect.isgenerator(stream):
            yield from stream
            return
        loop = self.dialect.event_loop()
        try:
            while True:
                try:
                    chunk = loop.run_until_complete(stream.__anext__())
                except StopAsyncIteration:
                    return
                yield chunk
        finally:
            loop.run_until_complete(stream.aclose())

    def _response(self, response: Any, request: Request) -> Any:
        """A response that comes in parts: as a generator where its status allows that, else whole."""
        parts = self._chunks(answers.messages(response, scope_of(request.head)))
        start = next(parts)
        if start["status"] != 200 or request.has_tensors:
            return whole_response(start, parts)
        note_head(request, start)
        return (message["body"] for message in parts if message.get("body"))

    def _whole(self, response: Any) -> Any:
        if answers.is_known(response):
            return response
        parts = self._chunks(answers.messages(response, scope_of(current.current()[0].head)))
        return whole_response(next(parts), parts)


class ConcurrentFlow(Flow):
    """The stages of one route, for a worker that runs several requests at once; each stage is awaited.

    `limit` counts the requests that are in `predict`, streams until their end. With `threads`, plain functions run in
    threads.
    """

    def __init__(self, *given: Any, limit: int = 0, threads: bool = False, **methods: Any) -> None:
        super().__init__(*given, **methods)
        # Before CPython 3.10 a semaphore belongs to the loop that is there when it is made.
        self.dialect.event_loop()
        self.limit = asyncio.Semaphore(limit) if limit else None
        self.threads = threads

    async def _call(self, function: Callable[..., Any], *values: Any) -> Any:
        if not self.threads:
            result = function(*values)
        else:
            # With the context of the task: the script may ask for its request in the thread too.
            run = functools.partial(contextvars.copy_context().run, function, *values)
            result = await asyncio.get_running_loop().run_in_executor(None, run)
        return await result if inspect.isawaitable(result) else result

    async def preprocess(self, value: Any) -> Any:
        assert self.before is not None
        result = await self._call(self.before, value)
        return value._replace(inputs=result) if self.with_call else result

    async def infer(self, value: Any) -> Any:
        """The output of the method, within the limit; a stream leaves it when it ends."""
        if self.limit is None:
            return await self._inferred(value)
        await self.limit.acquire()
        # A stream is still to come when this returns: it releases the place itself.
        is_open = False
        try:
            output = await self._inferred(value)
            is_open = inspect.isasyncgen(output)
            return self._limited(output) if is_open else output
        finally:
            if not is_open:
                self.limit.release()

    async def _limited(self, stream: Any) -> AsyncIterator[Any]:
        assert self.limit is not None
        try:
            async for part in stream:
                yield part
        finally:
            self.limit.release()

    async def _inferred(self, value: Any) -> Any:
        output = await self._call(self.main, value)
        if type(output) not in VALUES:
            output = await self._settled(output)
        return value._replace(inputs=output) if self.with_call and self.has_after else output

    async def postprocess(self, value: Any) -> Any:
        """What postprocess gives; a stream of it, or a response, is collected."""
        assert self.after is not None
        output = await self._call(self.after, value)
        if type(output) in VALUES:
            return output
        if is_stream(output):
            return whole_stream([chunk async for chunk in self._turns(output)])
        if answers.is_response(output) and not answers.is_known(output):
            parts = answers.messages(output, scope_of(current.current()[0].head))
            return await self._collected(await parts.__anext__(), parts)
        return output

    async def _settled(self, output: Any) -> Any:
        request = current.current()[0]
        if is_stream(output):
            refuse(self.has_after, "generator")
            if not gathers(request):
                return self._turns(output)
            try:
                return answers.gathered([chunk async for chunk in self._turns(output)])
            except Exception as error:
                raise unhandled(error) from None
        if answers.is_response(output):
            refuse(self.has_after, "response")
            return output if answers.is_known(output) else await self._parts_of(output, request)
        return output

    async def _turns(self, stream: Any) -> AsyncIterator[Any]:
        """The parts of a generator. After each part of a plain one, other requests get a turn."""
        if inspect.isasyncgen(stream):
            async for chunk in stream:
                yield chunk
            return
        while True:
            # A default instead of StopIteration, which cannot be raised into a Future.
            chunk = await self._call(next, stream, END)
            if chunk is END:
                return
            yield chunk
            await asyncio.sleep(0)

    async def _parts_of(self, response: Any, request: Request) -> Any:
        parts = answers.messages(response, scope_of(request.head))
        start = await parts.__anext__()
        if start["status"] != 200 or request.has_tensors:
            return await self._collected(start, parts)
        note_head(request, start)
        return self._bodies(parts)

    async def _bodies(self, parts: Any) -> AsyncIterator[bytes]:
        async for message in parts:
            if message.get("body"):
                yield message["body"]

    async def _collected(self, start: Dict[str, Any], parts: Any) -> Answer:
        return whole_response(start, [message async for message in parts])


def is_stream(output: Any) -> bool:
    return inspect.isgenerator(output) or inspect.isasyncgen(output)


def refuse(has_after: bool, what: str) -> None:
    """Refuse what cannot go through postprocess. Raises WrongModel."""
    if has_after:
        raise WrongModel(NO_POSTPROCESS % what, fix="do its work in predict")


def unhandled(error: Exception) -> Unhandled:
    """The failure of a stream that was to become one text, with the traceback of the script."""
    return Unhandled("%s: %s" % (type(error).__name__, error)).with_traceback(error.__traceback__)


def note_head(request: Request, start: Dict[str, Any]) -> None:
    """Leave the head of a response that comes in parts with the request, for `stream_type`."""
    kind, lines = answers.head_of(start["status"], start["headers"])
    request.context = "\0".join((kind, *lines))


def whole_response(start: Dict[str, Any], parts: Any) -> Answer:
    kind, lines = answers.head_of(start["status"], start["headers"])
    body = b"".join(message.get("body", b"") for message in parts)
    return Answer(kind, b"" if start["status"] in answers.BODILESS else body, start["status"], lines)


def whole_stream(chunks: List[Any]) -> Answer:
    return Answer(answers.OCTETS, b"".join(map(answers.part, chunks)))
