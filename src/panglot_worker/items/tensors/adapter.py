"""The adapter for requests with tensors, the same for every dialect.

A script that knows no tensors gets a body as its platform's own clients send it. A single element of BYTES is that body
itself; other inputs become a JSON object by name. The native answer comes back as BYTES, called `output`. A dialect
whose script takes tensors itself says so (`Dialect.tensors`).
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from panglot_worker.dialects.base import Answer, Dialect, Parts, Problem, Request, Stages, TensorStages
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.line.description import TensorDescription
from panglot_worker.tensors import generating, messages, outputs, rest
from panglot_worker.tensors.answer_cache import AnswerCache
from panglot_worker.tensors.handing import UNFIT, ChainError, ChainPassage, Handing, Hop
from panglot_worker.tensors.infer import GENERATE, GENERATE_STREAM, REST, STREAM, Infer, Wishes, chosen
from panglot_worker.tensors.tensors import Tensor, TensorSpec
from panglot_worker.tensors.text_cache import TextCache

INPUTS = (TensorSpec("input", "BYTES", (1,)),)
OUTPUTS = (TensorSpec(outputs.OUTPUT, "BYTES", (1,)),)
PLATFORM = "panglot_script"
LONGEST_REASON = 2000
Decode = Callable[[Request], Any]
Encode = Callable[[Any, Request], Answer]


class Adapted(NamedTuple):
    """How a client wants its answer, on its way through the stages, beside the dialect's own context."""

    wishes: Wishes
    context: Any
    taken: bool = False
    """Whether the dialect itself took the tensors."""


class TensorAdapter:
    """Decodes requests with tensors for the stages of one dialect, and encodes its answers as tensors."""

    def __init__(self, dialect: Dialect, stages: Optional[Stages]) -> None:
        self.dialect = dialect
        self.limits, self.nan = dialect.limits, dialect.nan
        self.taking: Optional[TensorStages] = dialect.tensors()
        self.text_cache = TextCache(self.limits)
        self.reader = rest.RestReader(self.limits, self.taking.inputs if self.taking is not None else INPUTS)
        self.answer_cache = AnswerCache(self.nan, self.limits)
        self.handing = Handing()
        self._encode = stages.encode if stages is not None else None

    def describe(self) -> TensorDescription:
        """The description of the tensors, which the front shows to clients."""
        taking = self.taking
        inputs, given = (taking.inputs, taking.outputs) if taking is not None else (INPUTS, OUTPUTS)
        return {
            "inputs": [_row(spec) for spec in inputs],
            "outputs": [_row(spec) for spec in given],
            "platform": taking.platform if taking is not None else PLATFORM,
            "rows": taking is not None and taking.rows,
            "needs": list(taking.needs) if taking is not None and taking.needs is not None else None,
        }

    def around(self, stages: Stages) -> Stages:
        """The stages, with requests of this protocol decoded and encoded here."""
        return stages._replace(
            decode=self._decoding(stages.decode),
            encode=self._encoding(stages.encode),
            by_route={route: self.around(own) for route, own in stages.by_route.items()},
        )

    def _decoding(self, inner: Decode) -> Decode:
        def decode(request: Request) -> Any:
            if not request.has_tensors:
                return inner(request)
            infer = self.read(request)
            taking = self.taking
            taken = taking is not None and not (taking.takes_bodies and only_element(infer) is not None)
            if taking is not None and taken:
                value = taking.decode(infer, request)
            else:
                value = inner(self.native(request, infer))
            request.context = Adapted(infer.wishes, request.context, taken)
            return value

        return decode

    def _encoding(self, inner: Encode) -> Encode:
        def encode(output: Any, request: Request) -> Answer:
            carried = request.context
            if type(carried) is not Adapted:
                return inner(output, request)
            return self._answered(output, request, inner, carried)

        return encode

    # In

    def read(self, request: Request) -> Infer:
        """The tensors of a request. Raises ClientError."""
        raw = request.raw_head
        if raw.count(b"\0") == wire.HOP:
            return self._read_in_chain(self.handing.hop(raw[raw.rfind(b"\0") + 1 :]), request)
        infer = self.text_cache.read(raw, request.body)
        if infer is None:
            infer = self._parsed(request)
        if not infer.inputs and (self.taking is None or self.taking.needs_inputs):
            raise ClientError("the request has no inputs")
        return infer

    def _read_in_chain(self, hop: Hop, request: Request) -> Infer:
        """The tensors of a request for one model of a chain. Raises ChainError where it is not for the chain."""
        if hop.takes is None:
            return self.handing.handed(hop, request.body)
        try:
            infer = self.text_cache.read(request.raw_head, request.body) or self._parsed(request)
        except ClientError:
            # The chain's own worker gets the request next, and words the error.
            raise ChainError(UNFIT, UNFIT, 400) from None
        return self.handing.first(hop, infer)

    def _parsed(self, request: Request) -> Infer:
        head, body = request.head, request.body
        if head.fetched:
            body = memoryview(body)[: _layout(head)["body"]]
        if head.form in (GENERATE, GENERATE_STREAM):
            taking = self.taking
            return generating.read(self.reader, head, body, taking is not None and taking.rows)
        if head.form != REST:
            if head.encoding:
                body = rest.inflated(head.encoding.decode("latin-1"), memoryview(body), self.limits.output_bytes)
            return messages.read(head, body)
        infer = self.reader.read(head, body)
        self.text_cache.keep(request.raw_head, head, body, infer)
        return infer

    def adapt(self, request: Request) -> Request:
        """The request as a client of the platform would have sent it, for `adapt_answer`. Raises ClientError."""
        infer = self.read(request)
        self.native(request, infer)
        request.context = Adapted(infer.wishes, None)
        return request

    def adapt_answer(self, answer: Answer, request: Request) -> Answer:
        """The platform's answer to a request that `adapt` has changed, as tensors."""
        return self.wrapped(request.context.wishes, answer)

    def native(self, request: Request, infer: Infer) -> Request:
        """The request as a client of the platform would have sent it. Raises ClientError."""
        only = only_element(infer)
        if only is not None:
            content_type, body = self.dialect.body_of_element(only.name, only.data[0])
        else:
            content_type, body = "application/json", _json_object(infer)
        head = request.head._replace(content_type=content_type.encode("latin-1"))
        if head.fetched:
            layout = _layout(head)
            behind = memoryview(request.body)[layout["body"] :]
            head = head._replace(fetched=json.dumps({**layout, "body": len(body)}).encode())
            body += behind
        request.become(head, body)
        return request

    # Out

    def _answered(self, output: Any, request: Request, inner: Encode, carried: Adapted, last: bool = True) -> Answer:
        wishes, request.context, taken = carried
        taking = self.taking
        if taken and taking is not None:
            parameters = taking.parameters(output) if taking.parameters is not None else None
            return self.answer(wishes, taking.encode(output, request), parameters, last)
        return self.wrapped(wishes, inner(output, request), last)

    def wrapped(self, wishes: Wishes, answer: Answer, last: bool = True) -> Answer:
        """A native answer as one element of BYTES."""
        answered = self.answer(wishes, [outputs.of_bytes(outputs.OUTPUT, bytes(answer.body))], None, last)
        warnings = [line for line in answer.headers if line.startswith("x-panglot-warning")]
        return answered._replace(headers=[*answered.headers, *warnings])

    def answer(
        self, wishes: Wishes, tensors: List[Tensor], parameters: Optional[Dict[str, Any]] = None, last: bool = True
    ) -> Answer:
        """The answer with these outputs, in the form of the request; or a part of it, which may be the last."""
        if wishes.carried is not None:
            return self._handed_on(wishes.carried, tensors)
        tensors = chosen(tensors, wishes.wanted)
        if wishes.form == STREAM:
            return Answer("application/grpc", messages.part(wishes, tensors, parameters, last))
        if wishes.form in (GENERATE, GENERATE_STREAM):
            return Answer(*generating.answer(wishes, tensors, self.nan, self.limits, parameters))
        if wishes.form != REST:
            return Answer("application/grpc", messages.answer(wishes, tensors, parameters))
        text = self.answer_cache.text(wishes, tensors) if not parameters else None
        if text is not None:
            return Answer("application/json", text)
        content_type, body, headers = rest.answer(wishes, tensors, self.nan, self.limits, parameters)
        return Answer(content_type, body, 200, headers)

    def _handed_on(self, carried: ChainPassage, tensors: List[Tensor]) -> Answer:
        """The answer of one model of a chain: the body for the next model, or the client's answer."""
        if carried.hop.last:
            return self.answer(carried.client, self.handing.answers(carried, tensors))
        return Answer("", self.handing.body(carried, tensors))

    def parts(self, request: Request) -> Parts:
        """How an answer in parts is written. Raises ClientError where there may be none."""
        carried = request.context
        wishes = carried.wishes
        if wishes.form not in (STREAM, GENERATE_STREAM) or self._encode is None:
            raise ClientError(
                "this model answers in parts: ask by ModelStreamInfer, /generate_stream, or on its own route"
            )
        inner = self._encode
        is_last = self.taking.is_last if self.taking is not None and carried.taken else None
        ended = False

        def encode(part: Any) -> bytes:
            nonlocal ended
            ended = is_last is not None and is_last(part)
            return bytes(self._answered(part, request, inner, carried, ended).body)

        if wishes.form == GENERATE_STREAM:
            return Parts(generating.EVENTS, encode)

        def end() -> wire.Buffer:
            return messages.part(wishes, [], None, last=True) if wishes.end and not ended else b""

        return Parts("application/grpc", encode, end)

    def failure(self, error: BaseException, answer: Union[Answer, Problem], request: Request) -> Union[Answer, Problem]:
        """The protocol's error for a failure, given the platform's error."""
        if isinstance(error, ChainError):
            return Problem(error.answer_status, error.code, error.message)
        if isinstance(error, ClientError):
            return Problem(error.status, "bad_request", _sentence(error))
        if isinstance(answer, Problem) or answer.flags & wire.FETCH:
            return answer
        if answer.status == 200 and isinstance(request.context, Adapted):
            return self.wrapped(request.context.wishes, answer)
        return self.refusal(answer.status, answer.body)

    def refusal(self, status: int, body: wire.Buffer) -> Problem:
        """The platform's message for a failure, in an error of this protocol."""
        reason = str(bytes(body[:LONGEST_REASON]), "utf-8", "replace")
        return Problem(status if status >= 400 else 500, "script_error", reason)


def _sentence(error: ClientError) -> str:
    """All faults of a request in one text: the protocol has only one field for them."""
    fields = getattr(error, "fields", None) or []
    return "; ".join(("%(path)s %(message)s" % field).strip() for field in fields) or error.message


def only_element(infer: Infer) -> Optional[Tensor]:
    """The only tensor, where that is one element of BYTES."""
    if len(infer.inputs) != 1:
        return None
    (tensor,) = infer.inputs.values()
    return tensor if tensor.datatype == "BYTES" and len(tensor.data) == 1 else None


def _json_object(infer: Infer) -> bytes:
    value = {}
    for name, tensor in infer.inputs.items():
        try:
            value[name] = tensor.nested()
        except UnicodeDecodeError:
            message = "input '%s' holds bytes that are no text; this model takes them as the only element" % name
            raise ClientError(message) from None
    return json.dumps(value).encode()


def _layout(head: wire.Head) -> Dict[str, Any]:
    """Where the client's body ends, and where each content that was fetched begins."""
    layout: Dict[str, Any] = json.loads(head.fetched)
    return layout


def _row(spec: TensorSpec) -> Dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}
