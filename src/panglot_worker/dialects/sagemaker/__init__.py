"""Inference scripts of SageMaker: `model_fn` once, then `input_fn`, `predict_fn` and `output_fn`, or `transform_fn`.

What a script lacks, its container does (`containers`). The names that scripts import are in `platform/fallback`: where
the real packages are installed, those are used.
"""

from __future__ import annotations

import os
from typing import Any, Callable, List, NamedTuple, Optional, Union

from panglot_worker.bodies.standard_json import StandardJson
from panglot_worker.compat.model_context import Context, RequestHeaders, RequestProcessor, header_pairs
from panglot_worker.compat.model_metrics import ModelMetrics
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages, TensorStages, warned
from panglot_worker.dialects.sagemaker import answers, bodies, examples, handler_service, invocations, script
from panglot_worker.dialects.sagemaker.answers import Refused
from panglot_worker.dialects.sagemaker.containers import container
from panglot_worker.dialects.sagemaker.pipeline import MOST_OPEN, ContainerFailed, Pipeline
from panglot_worker.dialects.sagemaker.script import ScriptFunction
from panglot_worker.items.calling import OutgoingCalls
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.net.fetched import Fetching
from panglot_worker.scripts import current
from panglot_worker.tensors import outputs
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor

EXECUTION = b"/execution-parameters"


class Given(NamedTuple):
    """A request as `input_fn` and `transform_fn` get it."""

    data: Any
    content_type: Optional[str]


class SageMaker(Dialect):
    """Serves one script. It is called on the main thread, one request at a time, as on the platform."""

    status_blames_client = False
    # A generator is a result like others: `output_fn` may go through it.
    streams = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        strict = bool(package.settings.get("strict_results", True))
        self.writer = answers.Writer(self.limits, self.nan, strict)
        self.json = StandardJson(self.limits, self.nan)
        self.container = container(package)
        self.script = script.Script(None, {})
        self.model: Any = None
        self.context = self._context()
        self._begun: Optional[Request] = None
        """The request that the context is about."""
        self._shows_traceback = bool(package.settings.get("dev"))

    def _context(self) -> Context:
        package = self.package
        return Context(package.name, package.options["model_dir"], {}, 1, None, metrics=ModelMetrics(package.name))

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script and load its model. Raises ScriptError, and what the script raises."""
        os.chdir(self.package.folder)
        if "pipeline" in self.package.options:
            chain = Pipeline(self.package, OutgoingCalls(self.port))
            # Of this object alone: all other packages are called on the main thread, one request at a time.
            self.server, self.slots = "panglot_worker.items.concurrent:serve", MOST_OPEN
            return Stages(decode=chain.decode, infer=chain.infer, encode=chain.encode)
        if self.package.options.get("is_service"):
            return handler_service.load(self, progress)
        if self.package.options["flavor"] == "tensorflow":
            from panglot_worker.dialects.sagemaker import tensorflow_serving

            return tensorflow_serving.load(self, progress)
        if self.package.options.get("has_script"):
            progress("importing " + os.path.basename(self.package.script))
        self.script = script.load(self.package)
        if self.package.does("inference"):
            self._load_model(progress)
        functions = self.script.functions
        whole, read, write = functions.get("transform_fn"), functions.get("input_fn"), functions.get("output_fn")
        stages = Stages(
            decode=self.given if whole or read else self.decode,
            preprocess=self.input_fn if read else None,
            infer=self.transform_fn if whole else self.predict_fn,
            postprocess=self.output_fn if write else None,
            encode=self.encode if whole or write else self.encode_result,
        )
        if self.script.get("execution_parameters_fn") is not None:
            parameters = Stages(decode=lambda _: None, infer=self.execution_parameters, encode=self.encode_parameters)
            stages = stages._replace(by_route={EXECUTION: parameters})
        return stages

    def _load_model(self, progress: Callable[[str], None]) -> None:
        model_dir = self.package.options["model_dir"]
        functions = self.script.functions
        if "pre_model_fn" in functions:
            progress("running pre_model_fn")
            self._call(functions["pre_model_fn"], None, model_dir)
        progress("running model_fn")
        if "model_fn" in functions:
            self.model = self._call(functions["model_fn"], None, model_dir)
        else:
            self.model = self.container.model_fn(model_dir)
        if "model_warmup_fn" in functions:
            progress("running model_warmup_fn")
            self._call(functions["model_warmup_fn"], None, model_dir, self.model)

    def describe(self) -> Description:
        """The API, as far as it is known without a schema: the functions, and a request that lies in the package."""
        return {
            "entry": ", ".join(name for name in script.ARGUMENTS if name in self.script.functions) or "model_fn",
            "summary": (getattr(self.script.module, "__doc__", "") or "").strip(),
            "example": examples.example_of(self.package),
            "request_schema": {},
            "response_schema": {},
            "request_types": examples.request_types(self.package),
            "any_status": self.script.takes_context or bool(self.package.options.get("is_service")),
        }

    # The script's functions

    def _call(self, function: ScriptFunction, request: Optional[Request], *arguments: Any) -> Any:
        if not function.takes_context:
            return function.call(*arguments)
        # Once for a request: the status and headers that one function sets are still there for the next.
        if request is not None and self._begun is not request:
            self._begin(request)
        return function.call(*arguments, self.context)

    def _begin(self, request: Request) -> None:
        """Make the context be about a request. It is one object for all of them, as on the platform."""
        self._begun = request
        headers = RequestHeaders(header_pairs(request.head.headers))
        self.context.begin([(request.head.request_id.decode("latin-1"), RequestProcessor(headers))])

    def input_fn(self, value: Given) -> Any:
        return self._call(self.script.functions["input_fn"], current.running[0], value.data, value.content_type)

    def predict_fn(self, data: Any) -> Any:
        function = self.script.functions.get("predict_fn")
        if function is None:
            return self.container.predict_fn(data, self.model)
        return self._call(function, current.running[0], data, self.model)

    def output_fn(self, prediction: Any) -> Any:
        request = current.running[0]
        return self._call(self.script.functions["output_fn"], request, prediction, self.accept(request))

    def transform_fn(self, value: Given) -> Any:
        request = current.running[0]
        function = self.script.functions["transform_fn"]
        return self._call(function, request, self.model, value.data, value.content_type, self.accept(request))

    def execution_parameters(self, _: Any) -> Any:
        return self.script.get("execution_parameters_fn")()

    def result_function(self, request: Request) -> Any:
        return next(filter(None, map(self.script.get, ("transform_fn", "output_fn", "predict_fn"))), None)

    # A request

    def given(self, request: Request) -> Given:
        """The body: text for exactly the types of text that the toolkit knows, else bytes. Raises Refused, Fetching."""
        body, kind = invocations.read(request)
        kind = kind or self.container.default_type
        if kind not in bodies.UTF8_TYPES:
            return Given(self.container.octets(body), kind or None)
        try:
            return Given(bytes(body).decode("utf-8", self.container.utf8_errors), kind)
        except UnicodeDecodeError as error:
            raise Refused(error) from error

    def accept(self, request: Request) -> str:
        """The header Accept as it came; where the client accepts anything, the default.

        A list with `*/*` in it, as browsers and axios send it, is its first type that the toolkit can write.
        """
        accept = invocations.accept(request)
        if bodies.ANY not in accept:
            return accept or self.container.default_accept
        known = (kind for kind in bodies.parse_accept(accept) if kind in bodies.WRITERS)
        return next(known, self.container.default_accept)

    def decode(self, request: Request) -> Any:
        """The data for `predict_fn`, where the script has no `input_fn`. Raises Refused."""
        data, kind = self.given(request)
        return self.container.read(data, kind)

    # Answers

    def encode(self, output: Any, request: Request) -> Answer:
        """The answer for what the script's `output_fn` or `transform_fn` returned."""
        status, lines = 200, []  # type: int, List[str]
        # Else no function of this request took the context, which still has the status of an earlier one.
        if self._begun is request:
            status = self.context.get_response_status(0)[0]
            lines = answers.header_lines(self.context.get_response_headers(0))
        answer = self.writer.write(output, self.accept(request), status, lines)
        return answer._replace(content_type=self.container.typed(answer.content_type))

    def encode_result(self, output: Any, request: Request) -> Answer:
        """The answer for a result, where the script has no `output_fn`."""
        accept = self.accept(request)
        # Only our own encoder follows the setting `nan`. Tensors of PyTorch need their container, which makes lists.
        if accept == bodies.JSON and self.container.takes_arrays and not hasattr(output, "detach"):
            body, warning = self.json.encode(output)
            answer = self.encode((body, accept), request)
            return answer._replace(headers=(*answer.headers, *warned(warning))) if warning else answer
        return self.encode(self.container.write(output, accept), request)

    def encode_parameters(self, output: Any, request: Request) -> Answer:
        return self.writer.write(output, bodies.JSON)

    # Tensors

    def tensors(self) -> Optional[TensorStages]:
        """An array for `predict_fn`, where the script leaves bodies to its container."""
        own = {"input_fn", "output_fn", "transform_fn"} & set(self.script.functions)
        takes_bodies_alone = "pipeline" in self.package.options or self.package.options.get("is_service")
        if own or takes_bodies_alone or not self.container.takes_arrays:
            return None
        if self.package.options["flavor"] == "tensorflow":
            return None
        return TensorStages(self.decode_tensors, self.encode_tensors, platform="panglot_sagemaker")

    def decode_tensors(self, infer: Infer, request: Request) -> Any:
        arrays = outputs.by_name(infer.inputs, arrays=True, texts=True)
        return self.container.array(next(iter(arrays.values()))) if len(arrays) == 1 else arrays

    def encode_tensors(self, output: Any, request: Request) -> List[Tensor]:
        return outputs.tensors_of(output, lambda value: bytes(self.json.encode(value)[0]))

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """The container's answer. With `--dev` the toolkit's traceback is behind its message, as on the platform."""
        if isinstance(error, Fetching):
            return Answer("", error.to_json(), flags=wire.FETCH)
        if isinstance(error, ContainerFailed):
            return error.problem
        if isinstance(error, handler_service.ServiceFailed):
            return handler_service.failure(error)
        if self.package.options["flavor"] == "tensorflow":
            from panglot_worker.dialects.sagemaker import tensorflow_serving

            return tensorflow_serving.failure(error)
        answer = self.container.failure(error, stage)
        if self._shows_traceback and answer.status == 500 and isinstance(answer, Answer):
            return answers.with_traceback(answer, error)
        return answer

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        return isinstance(error, (Fetching, ContainerFailed)) or super().blames_client(error, answer)


DIALECT = SageMaker
