"""Models of Baseten's Truss: a class with `load`, `predict`, maybe `preprocess`, `postprocess` and OpenAI methods."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, Dict, Optional, Tuple, Union, cast

from panglot_worker.bodies.codec import ALWAYS_JSON
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.truss import answers, inputs, methods, schema, script
from panglot_worker.dialects.truss.environment import Environment
from panglot_worker.dialects.truss.flow import ConcurrentFlow, Flow, Unhandled
from panglot_worker.dialects.truss.methods import OPENAI, REQUEST, Method
from panglot_worker.dialects.truss.requests import Call, Incoming, Requests
from panglot_worker.errors import ClientError, EncodeError, message_of
from panglot_worker.line.description import Description, RouteDescription

PREDICT, READY = b"/v1/models/model:predict", b"/v1/models/{model}"
NOT_READY = "Model with name model is not ready."


class Truss(Dialect):
    """Serves one model: one request at a time, or several where its methods are awaited."""

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.config: Dict[str, Any] = package.options["config"]
        self.concurrency = int(package.options["concurrency"])
        self.writer = answers.Writer(self.limits, self.nan, bool(package.settings.get("strict_results", True)))
        self.requests = Requests(self.is_gone)
        self.reader: inputs.Reader
        self.module: Any = None
        self.kind: Any = None
        self.methods: Dict[str, Method] = {}
        self.schema: Optional[schema.Schema] = None
        self.environment: Optional[Environment] = None
        self.at_once = False
        """Whether several requests run at once in this worker."""
        self.threads = False

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script, construct its class and run its `load()`. Raises ScriptError."""
        sys.path += self.package.options.get("import_folders", [])
        script.make_data_folder(self.package.script)
        progress("importing " + os.path.basename(self.package.script))
        self.module, self.kind = script.find(self.package)
        progress("constructing " + self.kind.__name__)
        model, platform = script.construct(self.kind, self.config)
        if hasattr(model, "setup_environment"):
            self.environment = Environment(self, model, platform)
        self.methods = methods.of_model(model, self.package.script)
        self.schema = schema.of_methods(self.methods)
        self.reader = inputs.Reader(self.limits, self.schema)
        if hasattr(model, "load") and self.package.does("inference"):
            progress("running load()")
            script.load(model, self.settled, self.warn)
        self._choose_concurrency()
        return self._stages()

    def _choose_concurrency(self) -> None:
        """Requests at once in this worker where methods are awaited, else as many workers as the machine can run."""
        waits = [name for name, method in self.methods.items() if method.is_async and name != "is_healthy"]
        self.threads = bool(self.package.settings.get("predict_threads")) and self.concurrency > 1
        if waits or self.threads:
            self.at_once = True
            self.server = "panglot_worker.items.concurrent:serve"
            slots = int(self.package.settings.get("slots", 16))
            # The platform counts calls of predict alone: those of the OpenAI methods are never made to wait.
            self.slots = max(slots, self.concurrency) if any(name in OPENAI for name in waits) else self.concurrency
        elif self.concurrency > 1:
            self.workers = min(self.concurrency, os.cpu_count() or 1)

    def _stages(self) -> Stages:
        own = self.methods
        predict = self._route(own["predict"], own.get("preprocess"), own.get("postprocess"))
        by_route = {path: self._route(own[name]) for name, path in OPENAI.items() if name in own}
        if "is_healthy" in self.package.options["methods"]:
            by_route[READY] = Stages(decode=_nothing, infer=self._health, encode=self._healthy)
        return predict._replace(by_route={PREDICT: predict, inputs.ASYNC: predict, **by_route}) if by_route else predict

    def _route(self, main: Method, before: Optional[Method] = None, after: Optional[Method] = None) -> Stages:
        """The stages of one route: a method, with what comes before and after it."""
        takes = any(method is not None and method.takes_request for method in (main, before, after))
        requests = self.requests if takes else None
        flow: Flow
        if self.at_once:
            limited = main.name == "predict" and self.slots > self.concurrency
            limit = self.concurrency if limited else 0
            flow = ConcurrentFlow(self, main, requests, before, after, limit=limit, threads=self.threads)
        else:
            flow = Flow(self, main, requests, before, after)
        preprocess: Optional[Callable[[Any], Any]] = flow.preprocess if before is not None else None
        infer: Callable[[Any], Any] = flow.infer
        if self.environment is not None:
            # Both stages, since each may run in a worker of its own.
            preprocess = self.environment.before(preprocess) if preprocess is not None else None
            infer = self.environment.before(infer)
        return Stages(
            decode=self._decode_call if takes else self._decode_nothing if self.parses_nothing else self.reader.read,
            preprocess=preprocess,
            infer=infer,
            postprocess=flow.postprocess if after is not None else None,
            encode=self.encode,
        )

    @property
    def parses_nothing(self) -> bool:
        """Whether bodies are read on no route: `predict`, and a stage before it, take the request alone."""
        first = self.methods.get("preprocess", self.methods["predict"])
        return self.methods["predict"].takes == REQUEST and first.takes == REQUEST

    def describe(self) -> Description:
        """What predict takes and gives, by hints of pydantic; and the OpenAI methods by their paths."""
        main = self.methods["predict"]
        described = self._described(main)
        described["stages"] = [name for name in ("preprocess", "postprocess") if name in self.methods]
        described["summary"] = script.summary(self.kind, self.module) or self.package.options["summary"]
        described["example"] = self.package.options.get("example")
        if self.schema is not None:
            described["request_schema"] = schema.schema_of(self.schema.input) or {}
            described["response_schema"] = schema.schema_of(self.schema.output) or {}
        whole = cast(Description, dict(described))
        whole["platform"] = {"schema": self.schema.shown() if self.schema is not None else None}
        paths: Dict[str, Any] = self.package.options.get("openai_paths", {})
        routes = {path: self._described(self.methods[name]) for name in OPENAI if name in self.methods
                  for path in paths.get(name, ())}  # fmt: skip
        if routes:
            whole["routes"] = {PREDICT.decode(): described, **routes}
        return whole

    def _described(self, method: Method) -> RouteDescription:
        return {
            "entry": "%s.%s" % (self.kind.__name__, method.name),
            "request_types": [answers.JSON],
            "streams": method.streams,
            "any_status": script.chooses_status(self.module),
        }

    def result_function(self, request: Request) -> Any:
        names = [name for name, route in OPENAI.items() if route == request.route] or ["postprocess", "predict"]
        return next((self.methods[name].function for name in names if name in self.methods), None)

    # A request

    def _decode_call(self, request: Request) -> Call:
        values = None if self.parses_nothing else self.reader.read(request)
        return Call(values, Incoming(request.id, request.head.pack(), bytes(request.body)))

    def _decode_nothing(self, request: Request) -> None:
        return None

    def is_gone(self, item: int) -> bool:
        """Whether nobody waits for the answer to an item any more."""
        if self.at_once:
            tasks: Any = getattr(self.serving, "tasks", {})
            return item not in tasks or item in getattr(self.serving, "unwanted", ())
        self.port.poll()
        return item in self.port.cancelled

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """JSON as it is; other text as a text of JSON; what is no text is msgpack."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            return answers.OCTETS, content
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return answers.JSON, json.dumps(text).encode()
        return answers.JSON, content

    def encode(self, output: Any, request: Request) -> Answer:
        """The platform's answer to a result. Raises TypeError and EncodeError for what cannot be sent."""
        if type(output) not in ALWAYS_JSON:
            if type(output) is Answer:
                return output
            if answers.is_response(output):
                return answers.of_response(output)
        if inputs.is_binary(request.content_type):
            return self.writer.write_binary(output)
        return self.writer.write(output)

    def stream_type(self, request: Request) -> str:
        """The head of an answer in parts: that of the script's response, or the platform's content type."""
        return request.context if type(request.context) is str else answers.OCTETS

    def encode_part(self, output: Any, content_type: str) -> bytes:
        return answers.part(output)

    # Health

    def _health(self, value: None) -> Any:
        method = self.methods.get("is_healthy")
        if method is None:
            return True
        try:
            result = method.function()
            return result if self.at_once else self.settled(result)
        except Exception as error:
            self.warn("is_healthy() failed: %s" % message_of(error))
            return False

    def _healthy(self, output: Any, request: Request) -> Answer:
        if not output:
            return answers.error(503, NOT_READY, answers.MODEL)
        return Answer(answers.JSON, b"{}")

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """The platform's answer: the client's fault, the script's own HTTPException, its failure, or a wrong result."""
        if request.head.route == READY:
            return answers.error(503, NOT_READY, answers.MODEL)
        if isinstance(error, ClientError):
            return answers.error(error.status, error.message, answers.CLIENT)
        if stage == "encode":
            reason = error.reason if isinstance(error, EncodeError) else message_of(error)
            message = "Unhandled exception: %s: %s" % (type(error).__name__, reason)
            return answers.error(500, message, answers.SERVER)
        if is_http_exception(error):
            return answers.error(cast(Any, error).status_code, cast(Any, error).detail, answers.MODEL)
        if isinstance(error, Unhandled):
            return answers.error(500, "Unhandled exception: %s" % error, answers.SERVER)
        return answers.error(500, answers.FAILED, answers.MODEL)

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """Whether the log can leave a failure out: an HTTPException is an answer that the script chose."""
        return is_http_exception(error) or super().blames_client(error, answer)


def is_http_exception(error: BaseException) -> bool:
    """Whether an exception is FastAPI's own; starlette's is a failure, as on the platform."""
    kind = getattr(sys.modules.get("fastapi"), "HTTPException", None)
    return kind is not None and isinstance(error, kind)


def _nothing(request: Request) -> None:
    return None


DIALECT = Truss
