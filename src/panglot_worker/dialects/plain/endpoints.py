"""The functions of a script that routes lead to."""

from __future__ import annotations

import inspect
import json
import time
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from panglot_worker import current
from panglot_worker.bodies import codec, schema
from panglot_worker.bodies.codec import File
from panglot_worker.bodies.response import BODILESS, Response, disposition, is_json
from panglot_worker.dialects.base import Answer, Request, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.results import only_result, with_one

Function = Callable[..., Any]
PREDICT = "/predict"


class Bodies(NamedTuple):
    """How requests are read and answers written, the same for all endpoints of a script."""

    limits: codec.Limits
    nan: str

    def decode(self, request: Request) -> Any:
        return codec.decode(request.head.content_type.decode("latin-1"), request.body, self.limits)

    def note_and_decode(self, request: Request) -> Any:
        """Decode, and note when: `panglot.request().deadline` counts from then."""
        request.since = time.monotonic()
        return self.decode(request)

    def encode(self, output: Any, request: Request) -> Answer:
        """The answer for what the script returned. Raises EncodeError."""
        if isinstance(output, (Response, File)):
            response = output if isinstance(output, Response) else Response(output)
            return self._encode_response(response, request)
        content_type, body, warning = codec.encode(output, request.head.accept.decode("latin-1"), self.limits, self.nan)
        return Answer(content_type, body, 200, ("x-panglot-warning: " + warning,) if warning else ())

    def _encode_response(self, response: Response, request: Request) -> Answer:
        """The answer of a Response; a text with a content type of its own is sent as it is, if that is not JSON."""
        response.check()
        value, content_type, lines = response.value, response.content_type, response.lines()
        if value is None and (response.status in BODILESS or content_type):
            return Answer(content_type, b"", response.status, lines)
        if isinstance(value, str) and content_type and not is_json(content_type):
            value = value.encode("utf-8", "replace")
        found, body, warning = codec.encode(value, request.head.accept.decode("latin-1"), self.limits, self.nan)
        if isinstance(value, File) and value.name and "content-disposition" not in response:
            lines.append(disposition(value.name))
        if warning:
            lines.append("x-panglot-warning: " + warning)
        return Answer(content_type or found, body, response.status, lines)


class Endpoint:
    """A path, the function it leads to, and what that function takes and gives.

    `load`, `preprocess`, `postprocess` and `example` are of `/predict` alone: other routes have one function each.
    """

    def __init__(self, path: str, function: Function, *, batched: bool = False, max_batch: Optional[int] = None,
                 hooks: Optional[Mapping[str, Function]] = None) -> None:  # fmt: skip
        self.path = path
        self.function = function
        self.batched = batched
        self.max_batch = max_batch
        """The most items of a batch, where the script says it."""
        self.preprocess = (hooks or {}).get("preprocess")
        self.postprocess = (hooks or {}).get("postprocess")
        self.make_example = (hooks or {}).get("example")
        self.signature: Any = None
        """Where the function takes its arguments by name: what makes them of a request. None: it takes the body."""

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", "predict_batch" if self.batched else "predict"))

    @property
    def streams(self) -> bool:
        return inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function)

    @property
    def asynchronous(self) -> bool:
        """Whether several of its calls can be in progress at once."""
        return not self.batched and (is_async(self.function) or inspect.isasyncgenfunction(self.function))

    def check(self) -> None:
        """Refuse functions that cannot be called as they will be. Raises ScriptError."""
        names = ("preprocess", self.name, "postprocess")
        for function, name in zip((self.preprocess, self.function, self.postprocess), names):
            if function is not None:
                takes_one(function, name)

    def stages(self, bodies: Bodies, called: Callable[[Function], Function], asks: bool) -> Stages:
        """What happens to a request of this endpoint. `called` makes a stage of a function; `asks`: of `request()`."""
        infer = called(together(self.function) if asks and self.batched else self.function)
        return Stages(
            decode=bodies.note_and_decode if asks else bodies.decode,
            preprocess=called(self.preprocess) if self.preprocess is not None else None,
            infer=alone(infer) if self.batched else infer,
            infer_batch=infer if self.batched else None,
            postprocess=called(self.postprocess) if self.postprocess is not None else None,
            encode=bodies.encode,
            max_batch=self.max_batch,
        )

    def describe(self, bodies: Bodies, example: Any) -> Dict[str, Any]:
        """The description of its API, from type hints, docstrings and an example."""
        return {
            "entry": getattr(self.function, "__qualname__", self.name),
            "stages": [name for name in ("preprocess", "postprocess") if getattr(self, name) is not None],
            "request_schema": self._request_schema(),
            "response_schema": self._response_schema(),
            "summary": schema.documentation(self.function) or "",
            "example": shown(example, bodies),
            "streams": self.streams,
        }

    def _request_schema(self) -> Dict[str, Any]:
        of_items = self.batched and self.preprocess is None
        found = schema.of_parameter(self.preprocess or self.function)
        return found.get("items", {}) if of_items else found

    def _response_schema(self) -> Dict[str, Any]:
        of_items = self.batched and self.postprocess is None
        found = schema.of_result(self.postprocess or self.function)
        return found.get("items", {}) if of_items else found


def shown(value: Any, bodies: Bodies) -> Optional[Dict[str, Any]]:
    """An example in a shape that travels as JSON; uploads by name and type only."""
    if value is None:
        return None
    if isinstance(value, File):
        return {"kind": "file", "type": value.type, "name": value.name}
    if isinstance(value, dict) and any(isinstance(field, File) for field in value.values()):
        files = {name: field.type for name, field in value.items() if isinstance(field, File)}
        names = {name: value[name].name for name in files}
        fields = [name for name in value if name not in files]
        texts = {name: value[name] if isinstance(value[name], str) else json.dumps(value[name], default=str)
                 for name in fields}  # fmt: skip
        return {"kind": "form", "files": files, "names": names, "fields": fields, "values": texts}
    try:
        return {"kind": "json", "value": json.loads(codec.encode(value, "", bodies.limits, bodies.nan).body)}
    except (codec.EncodeError, ValueError):
        return None


def alone(infer: Function) -> Function:
    """A batch call as a call with one item."""
    if not is_async(infer):
        return with_one(infer)

    async def call(value: Any) -> Any:
        return only_result(await infer([value]))

    return call


def together(function: Function) -> Function:
    """A function that takes batches, in which `request()` would be one of several."""
    if is_async(function):

        async def call_async(items: Any) -> Any:
            current.together.set(True)
            return await function(items)

        return call_async

    def call(items: Any) -> Any:
        before = current.together.set(True)
        try:
            return function(items)
        finally:
            current.together.reset(before)

    return call


def is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def takes_one(function: Function, name: str) -> None:
    """Refuse a function that cannot be called with exactly one argument. Raises ScriptError."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    try:
        signature.bind(None)
    except TypeError:
        code: Any = getattr(inspect.unwrap(function), "__code__", None)
        raise ScriptError(
            "%s%s must take exactly one argument" % (name, signature),
            getattr(code, "co_filename", ""),
            getattr(code, "co_firstlineno", 0),
            fix="def %s(%s)" % (name, "self, item" if inspect.ismethod(function) else "request"),
        ) from None
