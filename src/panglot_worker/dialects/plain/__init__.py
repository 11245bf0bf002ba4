"""Our own dialect: a function `predict(request)`, or a class `Model` with optional stages."""

from __future__ import annotations

import inspect
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from panglot_worker.bodies import codec, schema
from panglot_worker.bodies.codec import File
from panglot_worker.dialects.base import Answer, Dialect, Package, Request, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.loading import import_script
from panglot_worker.results import with_one

if TYPE_CHECKING:
    import asyncio

EVENT_STREAM = "text/event-stream"
JSON_LINES = "application/x-ndjson"
HOOKS = ("load", "preprocess", "predict", "predict_batch", "predict_frame", "postprocess", "example", "close")


class Plain(Dialect):
    """Scripts in our own convention. What they define beside `predict`, `HOOKS` lists."""

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.limits = codec.Limits(**package.settings.get("limits", {}))
        self.nan: str = package.settings.get("nan", "null")
        self.hooks: Dict[str, Callable[..., Any]] = {}
        self.asynchronous = False
        self.batched = False
        self.module: Any = None
        self.owner: Any = None
        """What has the hooks: the script's `Model`, or the script itself."""
        self._event_loop: Optional["asyncio.AbstractEventLoop"] = None

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script, construct its `Model` if it has one, and run its `load()`. Raises ScriptError."""
        progress("importing " + os.path.basename(self.package.script))
        self.module = owner = import_script(self.package.script)
        if isinstance(getattr(owner, "Model", None), type):
            progress("constructing Model")
            owner = owner.Model()
        self.hooks = {name: getattr(owner, name) for name in HOOKS if callable(getattr(owner, name, None))}
        self._check()
        if "load" in self.hooks and self.package.does("inference"):
            progress("running load()")
            self._finish(self.hooks["load"]())
        self.owner = owner
        stages = self._stages()
        self._check_pool()
        if self.package.options.get("frames") and "predict_frame" in self.hooks:
            return self._with_videos(stages)
        return stages

    def _check(self) -> None:
        if "predict" not in self.hooks and "predict_batch" not in self.hooks:
            raise ScriptError(
                "there is no predict in it",
                self.package.script,
                fix="define predict(request), or a class Model with predict(item) or predict_batch(items)",
            )
        for name in ("preprocess", "predict", "predict_batch", "predict_frame", "postprocess"):
            if name in self.hooks:
                takes_one(self.hooks[name], name)

    def _with_videos(self, stages: Stages) -> Stages:
        if self.batched or self.asynchronous or self.package.pool:
            raise ScriptError("predict_frame needs a script in one process", self.package.script,
                              fix="leave out --pools")  # fmt: skip
        from panglot_worker.dialects.plain import videos

        videos.check_libraries(self.package)
        return videos.with_videos(stages, self.hooks["predict_frame"], self.package.settings)

    def _check_pool(self) -> None:
        """A pool for a stage the script does not have is a waste worth a word."""
        name = self.package.pool.get("name", "")
        if name in ("preprocess", "postprocess") and name not in self.hooks and not self.package.worker:
            self.warn("the script has no %s: its pool only reads or writes the bodies" % name)

    def _stages(self) -> Stages:
        self.batched = "predict_batch" in self.hooks
        predict = self.hooks["predict_batch" if self.batched else "predict"]
        self.asynchronous = not self.batched and (is_async(predict) or inspect.isasyncgenfunction(predict))
        if self.asynchronous:
            self.slots = int(self.package.settings.get("slots", 16))
            self.server = "panglot_worker.dialects.plain.concurrent:serve"
        infer = self._called(predict)
        return Stages(
            decode=self.decode,
            preprocess=self._hook("preprocess"),
            infer=with_one(infer) if self.batched else infer,
            infer_batch=infer if self.batched else None,
            postprocess=self._hook("postprocess"),
            encode=self.encode,
        )

    def _hook(self, name: str) -> Optional[Callable[[Any], Any]]:
        return self._called(self.hooks[name]) if name in self.hooks else None

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a stage: what it returns is awaited here, unless the server of async scripts does that."""
        return self._awaiting(function) if is_async(function) and not self.asynchronous else function

    def _awaiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda value: self._finish(function(value))

    def _finish(self, value: Any) -> Any:
        return self.event_loop().run_until_complete(value) if inspect.isawaitable(value) else value

    def event_loop(self) -> "asyncio.AbstractEventLoop":
        """The one loop of this worker, made when first needed."""
        if self._event_loop is None:
            import asyncio

            self._event_loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._event_loop)
        return self._event_loop

    def describe(self) -> Dict[str, Any]:
        """The description of the API, from the script's type hints, docstrings and example."""
        entry = self.hooks["predict_batch" if self.batched else "predict"]
        taker = self.hooks.get("preprocess", entry)
        giver = self.hooks.get("postprocess", entry)
        request = schema.of_parameter(taker)
        if self.batched and taker is entry:
            request = request.get("items", {})
        result = schema.of_result(giver)
        if self.batched and giver is entry:
            result = result.get("items", {})
        return {
            "entry": getattr(entry, "__qualname__", "predict"),
            "stages": [name for name in ("preprocess", "postprocess") if name in self.hooks],
            "request_schema": request,
            "response_schema": result,
            "summary": self._summary(entry),
            "example": self._example(),
            "streams": inspect.isgeneratorfunction(entry) or inspect.isasyncgenfunction(entry),
        }

    def _summary(self, entry: Any) -> str:
        """What the author wrote about it: the class, the function, or the script."""
        written = (schema.documentation(self.owner), schema.documentation(entry), schema.documentation(self.module))
        return next((text for text in written if text), "")

    def _example(self) -> Optional[Dict[str, Any]]:
        """The author's example, in a shape that travels as JSON; uploads by name and type only."""
        value = self.example()
        if value is None:
            return None
        if isinstance(value, File):
            return {"kind": "file", "type": value.type, "name": value.name}
        if isinstance(value, dict) and any(isinstance(field, File) for field in value.values()):
            files = {name: field.type for name, field in value.items() if isinstance(field, File)}
            names = {name: value[name].name for name in files}
            fields = [name for name in value if name not in files]
            return {"kind": "form", "files": files, "names": names, "fields": fields}
        try:
            return {"kind": "json", "value": json.loads(codec.encode(value, "", self.limits, self.nan).body)}
        except (codec.EncodeError, ValueError):
            return None

    def example(self) -> Any:
        return self._finish(self.hooks["example"]()) if "example" in self.hooks else None

    def warm_up(self, stages: Stages) -> Stages:
        """Run the script's example through all stages; of an answer in parts only the first is asked for."""
        value = self.example()
        if value is not None:
            if stages.preprocess is not None:
                value = self._finish(stages.preprocess(value))
            output = stages.infer(value)
            if inspect.isgenerator(output):
                next(output, None)
                output.close()
            elif not inspect.isasyncgen(output):
                self._warm_up_answer(self._finish(output), stages)
        return stages

    def _warm_up_answer(self, output: Any, stages: Stages) -> None:
        if stages.postprocess is not None:
            output = self._finish(stages.postprocess(output))
        codec.encode(output, "", self.limits, self.nan)

    def decode(self, request: Request) -> Any:
        return codec.decode(request.head.content_type.decode("latin-1"), request.body, self.limits)

    def encode(self, output: Any, request: Request) -> Answer:
        content_type, body, warning = codec.encode(output, request.head.accept.decode("latin-1"), self.limits, self.nan)
        return Answer(content_type, body, 200, ("x-panglot-warning: " + warning,) if warning else ())

    def stream_type(self, request: Request) -> str:
        accept = request.head.accept.decode("latin-1")
        return JSON_LINES if "ndjson" in accept or "jsonl" in accept or "json-lines" in accept else EVENT_STREAM

    def encode_part(self, output: Any, content_type: str) -> bytes:
        body = codec.encode(output, "", self.limits, self.nan).body
        if content_type == JSON_LINES:
            return body + b"\n"
        return b"data: " + body.replace(b"\n", b"\ndata: ") + b"\n\n"

    def close(self) -> None:
        if "close" in self.hooks:
            self._finish(self.hooks["close"]())


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def takes_one(function: Callable[..., Any], name: str) -> None:
    """Refuse a hook that cannot be called with exactly one argument."""
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


DIALECT = Plain
