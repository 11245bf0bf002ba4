"""`chat(messages, **options)` behind /v1/chat/completions and /v1/completions."""

from __future__ import annotations

import inspect
import time
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional

from panglot_worker.dialects.base import Request, Stages
from panglot_worker.dialects.plain.chat import reading
from panglot_worker.dialects.plain.chat.composing import Composer, Count
from panglot_worker.dialects.plain.chat.composing import usage as counted
from panglot_worker.dialects.plain.chat.forms import END, ChatForm, Form, failed
from panglot_worker.dialects.plain.chat.reading import Asked, text_of
from panglot_worker.dialects.plain.endpoints import Bodies, EncodedPart, Endpoint, Function
from panglot_worker.errors import SCRIPT_ERROR, ClientError
from panglot_worker.line.description import RouteDescription

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


MESSAGE = {"type": "object", "properties": {"role": {"type": "string"}, "content": {}}, "required": ["role"]}
SHAPES: Dict[str, Dict[str, Any]] = {
    "messages": {"type": "array", "items": MESSAGE, "minItems": 1},
    "prompt": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
}


class Gone(Exception):
    """The client has left: nobody waits for the rest."""

    status = 499


class ChatEndpoint(Endpoint):
    """A route whose requests and answers have OpenAI's form, and lead to the script's `chat`."""

    def __init__(
        self, path: str, function: Function, model: str, count: Optional[Count], left: Callable[[], bool]
    ) -> None:
        super().__init__(path, function)
        self.model = model
        self.count = count
        self.left = left
        """Whether the client of the call in progress has left."""
        self.form = ChatForm if path == CHAT else Form
        self.read = reading.chat if path == CHAT else reading.completion

    @property
    def may_stream(self) -> bool:
        return True

    def check(self) -> None:
        """Any function whose first argument is `messages` will do; that was looked at when the script was read."""

    def stages(self, bodies: Bodies, called: Callable[[Function], Function], asks: bool) -> Stages:
        """A stream is written here; an answer in one piece is encoded as any other."""

        def decode(request: Request) -> Asked:
            request.since = time.monotonic()
            request_id = request.head.request_id.decode("latin-1")
            return self.read(bodies.decode(request), self.model, request_id, self.function)

        infer = self.infer_later if self.asynchronous else self.infer
        return Stages(decode=decode, infer=infer, encode=bodies.encode)

    # Ordinary functions and generators

    def infer(self, asked: Asked) -> Any:
        """The answer: a generator of parts where a stream is asked for."""
        if asked.stream:
            return self._stream(asked)
        composers = [Composer(asked.stop) for _ in asked.chats]
        for messages, composer in zip(asked.chats, composers):
            for piece in self._pieces(messages, asked):
                composer.take(piece)
                if composer.done:
                    break
                if self.left():
                    raise Gone("the client has left")
            composer.end()
        return self.form(asked).answer(composers, self.usage(asked, composers))

    def _pieces(self, messages: reading.Messages, asked: Asked) -> Iterator[Any]:
        """What the script gives for a chat, piece by piece; what it does in `finally` is done when nobody asks more."""
        output = self.function(messages, **asked.options)
        if not inspect.isgenerator(output):
            yield output
            return
        try:
            yield from output
        finally:
            output.close()

    def _stream(self, asked: Asked) -> Iterator[EncodedPart]:
        writer = Writer(self, asked)
        begun = False
        try:
            for index, messages in enumerate(asked.chats):
                for piece in self._pieces(messages, asked):
                    yield from writer.take(index, piece)
                    begun = True
                    if writer.composers[index].done:
                        break
                yield from writer.end(index)
            yield from writer.finish()
        except Exception as error:
            if begun:
                yield told(error)
            raise

    # Coroutines and asynchronous generators

    def infer_later(self, asked: Asked) -> Any:
        """The same for functions that are awaited."""
        return self._stream_later(asked) if asked.stream else self._answer_later(asked)

    async def _answer_later(self, asked: Asked) -> Dict[str, Any]:
        composers = [Composer(asked.stop) for _ in asked.chats]
        for messages, composer in zip(asked.chats, composers):
            async for piece in self._pieces_later(messages, asked):
                composer.take(piece)
                if composer.done:
                    break
            composer.end()
        return self.form(asked).answer(composers, self.usage(asked, composers))

    async def _pieces_later(self, messages: reading.Messages, asked: Asked) -> AsyncIterator[Any]:
        output = self.function(messages, **asked.options)
        if not inspect.isasyncgen(output):
            yield await output
            return
        try:
            async for piece in output:
                yield piece
        finally:
            await output.aclose()

    async def _stream_later(self, asked: Asked) -> AsyncIterator[EncodedPart]:
        writer = Writer(self, asked)
        begun = False
        try:
            for index, messages in enumerate(asked.chats):
                async for piece in self._pieces_later(messages, asked):
                    for part in writer.take(index, piece):
                        yield part
                    begun = True
                    if writer.composers[index].done:
                        break
                for part in writer.end(index):
                    yield part
            for part in writer.finish():
                yield part
        except Exception as error:
            if begun:
                yield told(error)
            raise

    def usage(self, asked: Asked, composers: List[Composer]) -> Dict[str, int]:
        return counted([text_of(messages) for messages in asked.chats], composers, self.count)

    def describe(self, bodies: Bodies, example: Any) -> RouteDescription:
        """What `/docs` shows: the form is OpenAI's."""
        asks: Dict[str, Any] = (
            {"messages": [{"role": "user", "content": "Hello"}]} if self.form is ChatForm else {"prompt": "Hello"}
        )
        said = super().describe(bodies, {"model": self.model, **asks})
        field = next(iter(asks))
        fields = {"model": {"type": "string"}, "stream": {"type": "boolean"}, field: SHAPES[field]}
        schema = {"type": "object", "properties": fields, "required": [field]}
        return {**said, "request_schema": schema, "response_schema": {"type": "object"}, "streams": False}


class Writer:
    """Writes a streamed answer."""

    def __init__(self, endpoint: ChatEndpoint, asked: Asked) -> None:
        self.endpoint = endpoint
        self.asked = asked
        self.form = endpoint.form(asked)
        self.composers = [Composer(asked.stop) for _ in asked.chats]
        self.begun = -1

    def take(self, index: int, piece: Any) -> Iterator[EncodedPart]:
        told = self.composers[index].take(piece)
        yield from self._begin(index)
        if told:
            yield self.form.chunk(index, told)

    def end(self, index: int) -> Iterator[EncodedPart]:
        """What ends one choice."""
        yield from self._begin(index)
        composer = self.composers[index]
        rest = composer.end()
        if rest:
            yield self.form.chunk(index, rest)
        yield self.form.chunk(index, {}, composer.reason)

    def finish(self) -> Iterator[EncodedPart]:
        """What ends the whole answer."""
        if self.asked.counts:
            yield self.form.counts(self.endpoint.usage(self.asked, self.composers))
        yield END

    def _begin(self, index: int) -> List[EncodedPart]:
        if index == self.begun:
            return []
        self.begun = index
        return self.form.begin(index)


def told(error: Exception) -> EncodedPart:
    """What a client is told of a stream that fails: in a refusal the script's words, else our own."""
    if isinstance(error, ClientError):
        return failed(str(error), error.code, error.status)
    return failed(SCRIPT_ERROR, "script_error", 500)
