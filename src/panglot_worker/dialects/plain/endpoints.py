"""The functions of a script that routes lead to."""

from __future__ import annotations

import inspect
import json
import time
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from panglot_worker.bodies import codec, schema
from panglot_worker.bodies.codec import File
from panglot_worker.bodies.response import BODILESS, Response, disposition, is_json
from panglot_worker.dialects.base import BETWEEN, Answer, Request, Stages, warned
from panglot_worker.errors import ScriptError
from panglot_worker.hints.arguments import Arguments
from panglot_worker.hints.functions import RouteShape, Typed, typed
from panglot_worker.hints.misfit import InvalidInput, Misfit
from panglot_worker.hints.spelling import file_and_line
from panglot_worker.items.results import only_result, with_one
from panglot_worker.line.description import ExampleRequest, RouteDescription
from panglot_worker.scripts import current

Function = Callable[..., Any]
PREDICT = "/predict"


class Bodies(NamedTuple):
    """How requests are read and answers written, the same for all endpoints of a script."""

    limits: codec.Limits
    nan: str

    def decode(self, request: Request) -> Any:
        views = request.files if request.location else None
        return codec.decode(request.content_type, request.body, self.limits, views)

    def by_hints(self, arguments: Arguments) -> Callable[[Request], Any]:
        """How the requests of a function with hints are read."""
        read, limits = arguments.of_request, self.limits
        if arguments.path is not None or not arguments.has_body:
            return self._by_route(arguments)

        def decode(request: Request) -> Any:
            views = request.files if request.location else None
            return read(request.content_type, request.body, request.head.query, limits, views)

        return decode

    def _by_route(self, arguments: Arguments) -> Callable[[Request], Any]:
        """The same for a function whose route has free segments, or no body."""

        def decode(request: Request) -> Any:
            views, head = request.files if request.location else None, request.head
            body, query = request.body, head.query
            return arguments.of_route(head.path_values, request.content_type, body, query, self.limits, views)

        return decode

    def encode(self, output: Any, request: Request) -> Answer:
        """The answer for what the script returned. Raises EncodeError."""
        if type(output) in codec.ALWAYS_JSON:
            body, warning = codec.encode_json(output, self.limits, self.nan)
            return Answer(codec.JSON, body, 200, warned(warning))
        if isinstance(output, (Response, File)):
            response = output if isinstance(output, Response) else Response(output)
            return self._encode_response(response, request)
        content_type, body, warning = codec.encode(output, request.head.accept.decode("latin-1"), self.limits, self.nan)
        return Answer(content_type, body, 200, warned(warning))

    def _encode_response(self, response: Response, request: Request) -> Answer:
        """The answer of a Response; a text with a content type of its own is sent as it is, if that is not JSON."""
        response.check()
        value, content_type, lines = response.value, response.content_type, response.lines()
        if value is None and (response.status in BODILESS or content_type):
            return Answer(content_type, b"", response.status, lines)
        if isinstance(value, str) and content_type and not is_json(content_type):
            value = value.encode("utf-8", "replace")
        chosen, body, warning = codec.encode(value, request.head.accept.decode("latin-1"), self.limits, self.nan)
        if isinstance(value, File) and value.name and "content-disposition" not in response:
            lines.append(disposition(value.name))
        return Answer(content_type or chosen, body, response.status, (*lines, *warned(warning)))


class EncodedPart(bytes):
    """A part of a streamed answer that is ready to be sent."""


class Endpoint:
    """A route, the function it leads to, and what that function takes and gives.

    `path` is the route as the front sends it: a path, with the methods before it where these are not POST alone.

    `load`, `preprocess`, `postprocess` and `example` are of `/predict` alone: other routes have one function each.
    """

    def __init__(self, path: str, function: Function, *, batched: bool = False, max_batch: Optional[int] = None,
                 hooks: Optional[Mapping[str, Function]] = None,
                 route: Optional[RouteShape] = None) -> None:  # fmt: skip
        self.path = path
        self.route = route
        """For a function with a route of its own: where its arguments come from."""
        self.function = function
        self.batched = batched
        self.max_batch = max_batch
        """The most items of a batch, where the script says it."""
        self.preprocess = (hooks or {}).get("preprocess")
        self.postprocess = (hooks or {}).get("postprocess")
        self.make_example = (hooks or {}).get("example")
        self.signature: Optional[Typed] = None
        """How the first function takes its arguments by their hints; None: it takes the whole body. Set by `check`."""

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", "predict_batch" if self.batched else "predict"))

    @property
    def streams(self) -> bool:
        return inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function)

    @property
    def may_stream(self) -> bool:
        """Whether an answer of it can be one in parts."""
        return self.streams

    @property
    def asynchronous(self) -> bool:
        """Whether several of its calls can be in progress at once."""
        return not self.batched and (is_async(self.function) or inspect.isasyncgenfunction(self.function))

    def check(self) -> None:
        """Read the hints, and refuse functions that cannot be called as they will be. Raises ScriptError."""
        names = ("preprocess", self.name, "postprocess")
        functions = dict(zip(names, (self.preprocess, self.function, self.postprocess)))
        first = next(name for name in names if functions[name] is not None)
        self.signature = typed(self.first, first, self.batched and self.preprocess is None, self.route)
        for name, function in functions.items():
            if function is not None and (name != first or self.signature is None):
                takes_one(function, name)

    @property
    def first(self) -> Function:
        """The function that gets what a request holds."""
        return self.preprocess or self.function

    def prepared(self, value: Any) -> Any:
        """What the first function gets for a value as a request holds it: the script's example. Raises ScriptError."""
        if self.signature is None:
            return value
        try:
            return self.signature.arguments.of_value(value)
        except Misfit as misfit:
            file, line = file_and_line(self.make_example or self.function)
            problem = "what example() returns is no request: %s" % InvalidInput(misfit)
            raise ScriptError(problem, file, line, fix="let it return what the hints say") from None

    def stages(self, bodies: Bodies, called: Callable[[Function], Function], uses_request: bool) -> Stages:
        """The endpoint's stages. `called` makes a function a stage; `uses_request`: the script calls `request()`."""
        decode = bodies.decode if self.signature is None else bodies.by_hints(self.signature.arguments)
        waited = called(together(self.function) if uses_request and self.batched else self.function)
        infer = self._by_hints(waited, self.function)
        preprocess = self._by_hints(called(self.preprocess), self.preprocess) if self.preprocess is not None else None
        return Stages(
            decode=noting(decode) if uses_request else decode,
            preprocess=preprocess,
            infer=alone(infer, is_async(waited)) if self.batched else infer,
            infer_batch=infer if self.batched else None,
            postprocess=called(self.postprocess) if self.postprocess is not None else None,
            encode=bodies.encode,
            max_batch=self.max_batch,
            decodes_ahead=True,
            script_code=BETWEEN | {"decode"} if self.signature is not None and self.signature.calls_script else BETWEEN,
        )

    def _by_hints(self, made: Function, of: Function) -> Function:
        """A stage made of a function, which gets its arguments by name where it is the first and has hints."""
        return self.signature.calling(made) if self.signature is not None and of is self.first else made

    def describe(self, bodies: Bodies, example: Any) -> RouteDescription:
        """The description of its API, from type hints, docstrings and an example."""
        described: RouteDescription = {
            "entry": getattr(self.function, "__qualname__", self.name),
            "stages": [name for name in ("preprocess", "postprocess") if getattr(self, name) is not None],
            "request_schema": {} if self.signature is None else self.signature.arguments.schema(),
            "response_schema": self._response_schema(),
            "summary": schema.documentation(self.function) or "",
            "example": shown(example, bodies) if example is not None else self._guess(bodies),
            "streams": self.streams,
        }
        if self.signature is not None:
            described["files_in_json"] = True
            if not self.signature.arguments.has_body:
                described["without_body"] = True
            if self.signature.arguments.path is not None:
                described["path_schema"] = self.signature.arguments.path.schema()
        return described

    def _guess(self, bodies: Bodies) -> Optional[ExampleRequest]:
        """An example by the hints; None without."""
        guess = None if self.signature is None else shown(self.signature.arguments.example(), bodies)
        if guess is not None:
            guess["guessed"] = True
        return guess

    def _response_schema(self) -> Dict[str, Any]:
        of_items = self.batched and self.postprocess is None
        described = schema.of_result(self.postprocess or self.function)
        return described.get("items", {}) if of_items else described


def shown(value: Any, bodies: Bodies) -> Optional[ExampleRequest]:
    """An example in a shape that travels as JSON; uploads by name and type only."""
    if value is None:
        return None
    if isinstance(value, File):
        return {"kind": "file", "type": value.type, "name": value.name}
    files = _files(value) if isinstance(value, dict) else {}
    if files:
        types, names = ({name: getattr(file, of) for name, file in files.items()} for of in ("type", "name"))
        rest = {name: _text(field, bodies) for name, field in value.items() if name not in files}
        values = {name: text for name, text in rest.items() if text is not None}
        return {"kind": "form", "files": types, "names": names, "fields": list(rest), "values": values}
    try:
        return {"kind": "json", "value": json.loads(codec.encode(value, "", bodies.limits, bodies.nan).body)}
    except (codec.EncodeError, ValueError):
        return None


def _files(fields: Dict[str, Any]) -> Dict[str, File]:
    """The fields of a form that are files, or lists of them."""
    firsts = {name: field[0] if isinstance(field, list) and field else field for name, field in fields.items()}
    return {name: field for name, field in firsts.items() if isinstance(field, File)}


def _text(field: Any, bodies: Bodies) -> Optional[str]:
    """A value as a form spells it; None where it cannot."""
    try:
        return field if isinstance(field, str) else codec.encode([field], "", *bodies).body[1:-1].decode()
    except codec.EncodeError:
        return None


def noting(decode: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Decode, and note when: `panglot.request().deadline` counts from then."""

    def note_and_decode(request: Request) -> Any:
        request.since = time.monotonic()
        return decode(request)

    return note_and_decode


def alone(infer: Function, is_awaited: bool) -> Function:
    """A batch call as a call with one item."""
    if not is_awaited:
        return with_one(infer)

    async def call(value: Any) -> Any:
        return only_result(await infer([value]))

    return call


def together(function: Function) -> Function:
    """A function that takes batches, marked so that `request()` is refused in it: it would be one of several."""
    if is_async(function):

        async def call_async(*items: Any, **columns: Any) -> Any:
            # Not reset: the task of this call has its own copy of the context.
            current.together.set(True)
            return await function(*items, **columns)

        return call_async

    def call(*items: Any, **columns: Any) -> Any:
        before = current.together.set(True)
        try:
            return function(*items, **columns)
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
            fix="def %s(%s), or give every argument a hint, to take it by name"
            % (name, "self, item" if inspect.ismethod(function) else "request"),
        ) from None
