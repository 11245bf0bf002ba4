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
from panglot_worker.dialects.plain.chat.reading import ChatRequest, text_of
from panglot_worker.dialects.plain.endpoints import Bodies, EncodedPart, Endpoint, Function
from panglot_worker.errors import SCRIPT_ERROR, ClientError
from panglot_worker.line.description import RouteDescription

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


MESSAGE = {"type": "object", "properties": {"role": {"type": "string"}, "content": {}}, "required": ["role"]}
PART = {
    "type": "object",
    "properties": {
        "type": {"enum": ["text", "image_url"]},
        "text": {"type": "string"},
        "image_url": {"type": "object"},
    },
    "required": ["type"],
}
WITH_PICTURES = {
    "role": {"type": "string"},
    "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": PART}]},
}
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
        self, path: str, function: Function, model: str, count: Optional[Count], left: Callable[[], bool],
        pictures: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(path, function)
        self.pictures = pictures
        """Whether the script looks for pictures in messages."""
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

    def stages(self, bodies: Bodies, called: Callable[[Function], Function], uses_request: bool) -> Stages:
        """A stream is written here; an answer in one piece is encoded as any other."""

        def decode(request: Request) -> ChatRequest:
            request.since = time.monotonic()
            request_id = request.head.request_id.decode("latin-1")
            return self.read(bodies.decode(request), self.model, request_id, self.function)

        infer = self.infer_later if self.asynchronous else self.infer
        return Stages(decode=decode, infer=infer, encode=bodies.encode)

    # Ordinary functions and generators

    def infer(self, chat_request: ChatRequest) -> Any:
        """The answer: a generator of parts where the client wants a stream."""
        if chat_request.stream:
            return self._stream(chat_request)
        composers = [Composer(chat_request.stop) for _ in chat_request.chats]
        for messages, composer in zip(chat_request.chats, composers):
            for piece in self._pieces(messages, chat_request):
                composer.take(piece)
                if composer.done:
                    break
                if self.left():
                    raise Gone("the client has left")
            composer.end()
        return self.form(chat_request).answer(composers, self.usage(chat_request, composers))

    def _pieces(self, messages: reading.Messages, chat_request: ChatRequest) -> Iterator[Any]:
        """The pieces that the script gives for a chat; its `finally` runs when the caller stops."""
        output = self.function(messages, **chat_request.options)
        if not inspect.isgenerator(output):
            yield output
            return
        try:
            yield from output
        finally:
            output.close()

    def _stream(self, chat_request: ChatRequest) -> Iterator[EncodedPart]:
        writer = Writer(self, chat_request)
        begun = False
        try:
            for index, messages in enumerate(chat_request.chats):
                for piece in self._pieces(messages, chat_request):
                    yield from writer.take(index, piece)
                    begun = True
                    if writer.composers[index].done:
                        break
                yield from writer.end(index)
            yield from writer.finish()
        except Exception as error:
            # The status is on its way with the first part: from then on only a part can tell of a failure.
            if begun:
                yield error_part(error)
            raise

    # Coroutines and asynchronous generators

    def infer_later(self, chat_request: ChatRequest) -> Any:
        """The same for functions that are awaited."""
        return self._stream_later(chat_request) if chat_request.stream else self._answer_later(chat_request)

    async def _answer_later(self, chat_request: ChatRequest) -> Dict[str, Any]:
        composers = [Composer(chat_request.stop) for _ in chat_request.chats]
        for messages, composer in zip(chat_request.chats, composers):
            async for piece in self._pieces_later(messages, chat_request):
                composer.take(piece)
                if composer.done:
                    break
            composer.end()
        return self.form(chat_request).answer(composers, self.usage(chat_request, composers))

    async def _pieces_later(self, messages: reading.Messages, chat_request: ChatRequest) -> AsyncIterator[Any]:
        output = self.function(messages, **chat_request.options)
        if not inspect.isasyncgen(output):
            yield await output
            return
        try:
            async for piece in output:
                yield piece
        finally:
            await output.aclose()

    async def _stream_later(self, chat_request: ChatRequest) -> AsyncIterator[EncodedPart]:
        writer = Writer(self, chat_request)
        begun = False
        try:
            for index, messages in enumerate(chat_request.chats):
                async for piece in self._pieces_later(messages, chat_request):
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
                yield error_part(error)
            raise

    def usage(self, chat_request: ChatRequest, composers: List[Composer]) -> Dict[str, int]:
        return counted([text_of(messages) for messages in chat_request.chats], composers, self.count)

    def describe(self, bodies: Bodies, example: Any) -> RouteDescription:
        """The description for `/docs`, in OpenAI's form."""
        fields_of_request: Dict[str, Any] = (
            {"messages": [{"role": "user", "content": "Hello"}]} if self.form is ChatForm else {"prompt": "Hello"}
        )
        said = super().describe(bodies, {"model": self.model, **fields_of_request})
        if said["example"] is not None:
            said["example"]["guessed"] = True
        field = next(iter(fields_of_request))
        fields = {"model": {"type": "string"}, "stream": {"type": "boolean"}, field: SHAPES[field]}
        if self.pictures and self.form is ChatForm:
            fields[field] = {"type": "array", "items": {**MESSAGE, "properties": WITH_PICTURES}, "minItems": 1}
        fields.update(reading.described_options(self.function))
        schema = {"type": "object", "properties": fields, "required": [field]}
        return {**said, "request_schema": schema, "response_schema": {"type": "object"}, "streams": False}


class Writer:
    """Writes a streamed answer."""

    def __init__(self, endpoint: ChatEndpoint, chat_request: ChatRequest) -> None:
        self.endpoint = endpoint
        self.chat_request = chat_request
        self.form = endpoint.form(chat_request)
        self.composers = [Composer(chat_request.stop) for _ in chat_request.chats]
        self.begun = -1

    def take(self, index: int, piece: Any) -> Iterator[EncodedPart]:
        # Before anything is sent: a first piece that is refused can still be answered with a status.
        delta = self.composers[index].take(piece)
        yield from self._begin(index)
        if delta:
            yield self.form.chunk(index, delta)

    def end(self, index: int) -> Iterator[EncodedPart]:
        """The parts that end one choice."""
        yield from self._begin(index)
        composer = self.composers[index]
        rest = composer.end()
        if rest:
            yield self.form.chunk(index, rest)
        yield self.form.chunk(index, {}, composer.reason)

    def finish(self) -> Iterator[EncodedPart]:
        """The parts that end the whole answer."""
        if self.chat_request.counts:
            yield self.form.counts(self.endpoint.usage(self.chat_request, self.composers))
        yield END

    def _begin(self, index: int) -> List[EncodedPart]:
        if index == self.begun:
            return []
        self.begun = index
        return self.form.begin(index)


def error_part(error: Exception) -> EncodedPart:
    """The error part of a stream that fails: with the script's message for a ClientError, else with our own."""
    if isinstance(error, ClientError):
        return failed(str(error), error.code, error.status)
    return failed(SCRIPT_ERROR, "script_error", 500)
