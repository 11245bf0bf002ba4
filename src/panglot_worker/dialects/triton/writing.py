"""How the responses of a decoupled model are written: part by part, or the only one as a whole answer."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Union

from panglot_worker.bodies import jsontext, streams
from panglot_worker.dialects.base import Answer, Request, Stages
from panglot_worker.dialects.triton.answers import ModelRefusal, checked
from panglot_worker.errors import ClientError
from panglot_worker.items.replying import finished
from panglot_worker.items.running import Runner
from panglot_worker.line import wire
from panglot_worker.tensors.infer import GENERATE

NOT_ONE = (
    "generate expects model to produce exactly 1 response, use generate stream for model that generates various "
    "number of responses"
)


class PartWriter:
    """Each response is a part of the answer. An error among them is a part too, unless it is the last."""

    def __init__(self, runner: Runner, request: Request) -> None:
        self._parts = runner.parts_of(request)
        self._head = self._parts.content_type.encode("latin-1")
        self._item = request.id
        self._is_grpc = self._parts.content_type == "application/grpc"

    def replies(self, response: Any, last: bool, times: wire.Times) -> List[wire.Reply]:
        """What the front gets. Raises ModelRefusal for an error that is the end."""
        replies = []
        if response is not None:
            if response.has_error() and not last:
                replies.append(self._refused(response.error(), times))
            else:
                body = self._parts.encode(checked(response))
                replies.append(wire.Reply(self._item, 200, wire.MORE, times, self._head, body))
        if last:
            replies.append(wire.Reply(self._item, 200, 0, times, self._head, self._parts.end()))
        return replies

    def _refused(self, error: Any, times: wire.Times) -> wire.Reply:
        """An error with responses behind it: over gRPC by its status, else as JSON."""
        if self._is_grpc:
            status = ModelRefusal(error.message(), error.code()).answer_status
            body = error.message().encode("utf-8", "replace")
            return wire.Reply(self._item, status, wire.MORE, times, self._head, body)
        text = jsontext.unguarded({"error": error.message()})
        body = streams.written(text, self._parts.content_type.partition(";")[0])
        return wire.Reply(self._item, 200, wire.MORE, times, self._head, body)


class OnlyWriter:
    """The only response is the answer."""

    def __init__(self, encode: Callable[[Any, Request], Answer], request: Request) -> None:
        self._encode = encode
        self._request = request
        self._response: Optional[Any] = None
        self._count = 0

    def replies(self, response: Any, last: bool, times: wire.Times) -> List[wire.Reply]:
        """What the front gets: the answer, at the end. Raises ClientError where there is not exactly one response."""
        if response is not None:
            self._response = response
            self._count += 1
        if not last:
            return []
        if self._count != 1:
            raise ClientError(NOT_ONE)
        return [finished(self._request.id, self._encode(checked(self._response), self._request), times)]


def writer_of(runner: Runner, stages: Stages, request: Request) -> Union[PartWriter, OnlyWriter]:
    """How the responses to a request are written. Raises ClientError where its client cannot take them."""
    if request.has_tensors and request.head.form == GENERATE:
        return OnlyWriter(stages.encode, request)
    return PartWriter(runner, request)
