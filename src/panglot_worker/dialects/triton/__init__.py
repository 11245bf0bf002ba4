"""Models of Triton's Python backend: class TritonPythonModel with initialize, execute and finalize."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages, TensorStages
from panglot_worker.dialects.triton import answers, configured, describing, reserved, sequence_inputs, warming
from panglot_worker.dialects.triton.answers import ModelRefusal
from panglot_worker.dialects.triton.calling_models import ModelCaller
from panglot_worker.dialects.triton.configured import Configuration
from panglot_worker.dialects.triton.ensembles import MOST_OPEN, Ensemble, as_lists
from panglot_worker.dialects.triton.event_loop import LoopThread
from panglot_worker.dialects.triton.sent import Alone, cancellation, sent_alone
from panglot_worker.dialects.triton.sequence_inputs import SequenceConfiguration
from panglot_worker.errors import ClientError, ScriptError, message_of
from panglot_worker.items.results import one_each
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.scripts.loading import import_script
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor

UTILS = "triton_python_backend_utils"
CLASS = "TritonPythonModel"
MOST_FITTING = 256
"""The most entries of `Triton._fitting`: clients choose the shapes."""


class ModelRequest(NamedTuple):
    """A request as the model gets it, and how many rows it has."""

    request: Any
    rows: int


class Triton(Dialect):
    """One instance of the model per worker."""

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.utils: Any = None
        self.model: Any = None
        self.config: Dict[str, Any] = copy.deepcopy(package.options.get("config", {}))
        self.configuration: Configuration
        self.ensemble: Optional[Ensemble] = None
        self.sequences: Optional[SequenceConfiguration] = None
        self._fitting: Dict[Any, int] = {}
        """The rows of requests that fit, by the names, types and shapes of their inputs."""
        self.loop = LoopThread()
        """Where coroutines of the model run."""

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script, complete its configuration, construct and initialize the model. Raises ScriptError."""
        if "ensemble" in self.package.options:
            return self._load_ensemble()
        progress("importing " + os.path.basename(self.package.script))
        self.utils = importlib.import_module(UTILS)
        self.utils.MetricFamily.reporter = self._tell_figure
        self.utils.InferenceRequest.caller = ModelCaller(self.port, self.utils)
        kind = getattr(import_script(self.package.script), CLASS, None)
        if not isinstance(kind, type):
            raise ScriptError("there is no class %s in it" % CLASS, self.package.script, fix="define it")
        self._complete(kind)
        self.configuration = configured.configuration(self.config, self.package.script)
        root = str(self.package.options["root"])
        self.sequences = sequence_inputs.configuration(self.config, root, self.package.script)
        if self.sequences is not None:
            sequence_inputs.check_states(self.sequences, self.utils)
        progress("running initialize()")
        self.model = self.called(kind)
        if callable(getattr(self.model, "initialize", None)):
            self.called(lambda: self.model.initialize(self._arguments()))
        return self._stages()

    def _load_ensemble(self) -> Stages:
        """An ensemble has no script: its steps are calls of other models."""
        self.configuration = configured.configuration(self.config, self.package.script)
        self.ensemble = ensemble = Ensemble(self.package, self.configuration, self.port)
        self.server, self.slots = "panglot_worker.items.concurrent:serve", MOST_OPEN
        return Stages(decode=ensemble.decode, infer=ensemble.infer, encode=self._encode_ensemble)

    def _encode_ensemble(self, outputs: Dict[str, Tensor], request: Request) -> Answer:
        return self.json_answer({name: as_lists(tensor) for name, tensor in outputs.items()})

    def _tell_figure(self, figure: Dict[str, Any]) -> None:
        self.port.tell(wire.EVENT, {"type": "figure", **figure})

    def _complete(self, kind: Any) -> None:
        """Complete the configuration: by the class itself, then as Triton would."""
        group = {"name": self.package.name + "_0", "kind": "KIND_" + self._kind(), "count": 1, "gpus": []}
        about = {"name": self.package.name, "instance_group": [group], **configured.DEFAULTS}
        # Before the class completes it: models look at `input` and `output`, which Triton always has.
        for name, value in about.items():
            self.config.setdefault(name, copy.deepcopy(value))
        complete = getattr(kind, "auto_complete_config", None)
        if callable(complete):
            completed = complete(self.utils.ModelConfig(self.config))
            if hasattr(completed, "as_dict"):
                self.config = completed.as_dict()

    def _kind(self) -> str:
        return "GPU" if os.environ.get("PANGLOT_DEVICE", "").startswith("cuda") else "CPU"

    def _arguments(self) -> Dict[str, str]:
        options = self.package.options
        return {
            "model_config": json.dumps(self.config),
            "model_instance_kind": self._kind(),
            "model_instance_name": "%s_0_%d" % (self.package.name, self.package.worker),
            # Only one device is visible to this worker, whatever its number.
            "model_instance_device_id": "0",
            "model_repository": options["root"],
            "model_version": options["version"],
            "model_name": self.package.name,
        }

    def _stages(self) -> Stages:
        if self.configuration.decoupled:
            self.server = "panglot_worker.dialects.triton.decoupled:serve"
            # Two, so that the front gives it calls while others are open; the server says how many fit.
            self.slots = 2
            return Stages(decode=self.decode, infer=self.infer, encode=self.encode, postprocess=answers.checked)
        if self.sequences is not None:
            self.server, self.slots = "panglot_worker.dialects.triton.sequences:serve", MOST_OPEN
            return Stages(decode=self.decode, infer=self.infer, encode=self.encode)
        shares = self.configuration.shares
        if shares:
            self.max_batch = self.configuration.rows
        return Stages(
            decode=self.decode,
            infer=self.infer,
            infer_batch=self.infer_batch if shares else None,
            postprocess=answers.checked,
            encode=self.encode,
            decodes_ahead=True,
        )

    def warm_up(self, stages: Stages) -> Stages:
        """Run the requests of `model_warmup`. Raises WarmUpError."""
        if self.ensemble is None:
            warming.run(self, self.config.get("model_warmup") or [])
        return stages

    def describe(self) -> Description:
        kind = Ensemble if self.ensemble is not None else type(self.model)
        return describing.describe(self.package, self.configuration, kind)

    def called(self, call: Callable[[], Any]) -> Any:
        """What a call of the model gives, awaited where that is needed."""
        result = call()
        return self.loop.start(result).result() if inspect.iscoroutine(result) else result

    # The stages

    def decode(self, request: Request) -> ModelRequest:
        """Plain JSON: an object with an array for each input. Raises ClientError."""
        sent = self.read(request)
        if not isinstance(sent, dict):
            names = ", ".join(tensor.name for tensor in self.configuration.inputs)
            raise ClientError("send a JSON object with %s" % names)
        arrays = {name: configured.array_of(self.configuration.wanted(name), value) for name, value in sent.items()}
        return self._model_request(request, arrays, {"request_id": request.head.request_id.decode("latin-1")})

    def _model_request(self, visitor: Request, arrays: Dict[str, Any], more: Dict[str, Any]) -> ModelRequest:
        return self._received(visitor, self.new_request(arrays, more))

    def _received(self, visitor: Request, made: ModelRequest) -> ModelRequest:
        visitor.rows = made.rows
        made.request._is_cancelled = cancellation(self.port, visitor.id)
        return made

    def new_request(self, arrays: Dict[str, Any], more: Dict[str, Any]) -> ModelRequest:
        """A request for the model, with what is beside its inputs. Raises ClientError for inputs it does not take."""
        return self._checked_request(arrays, self.configuration.check(arrays), more)

    def _checked_request(
        self, arrays: Dict[str, Any], rows: int, more: Dict[str, Any], wanted: Optional[List[str]] = None
    ) -> ModelRequest:
        inputs = [self._tensor(name, array) for name, array in arrays.items()]
        if not wanted:
            wanted = [tensor.name for tensor in self.configuration.outputs]
        kind, version = self.utils.InferenceRequest, int(self.package.options["version"])
        request = kind._received(inputs, wanted, self.package.name, version, more)
        request._open = self._open_alone
        return ModelRequest(request, rows)

    def _tensor(self, name: str, array: Any) -> Any:
        tensor = self.configuration.wanted(name)
        array = self.configuration.for_model(tensor, array)
        if tensor.datatype == "BF16":
            return self.utils.bf16_tensor(name, self.utils.bf16_bits(array))
        return self.utils.Tensor(name, array)

    def _open_alone(self, request: Any) -> Any:
        """The way of the only response to a request, for a model that sends it instead of returning it."""
        return self.utils.Responses(Alone(request._is_cancelled), decoupled=False)

    def infer(self, item: ModelRequest) -> Any:
        return self.execute([item])[0]

    def infer_batch(self, items: List[ModelRequest]) -> Sequence[Any]:
        """Calls of at most max_batch_size rows."""
        results: List[Any] = []
        batch: List[ModelRequest] = []
        for item in items:
            if batch and sum(other.rows for other in batch) + item.rows > self.configuration.rows:
                results += self.execute(batch)
                batch = []
            batch.append(item)
        return [*results, *self.execute(batch)]

    def execute(self, batch: List[ModelRequest]) -> Sequence[Any]:
        """One call of the model: a response for each request, returned or sent."""
        requests = [item.request for item in batch]
        for request in requests:
            # The batch may have failed before: what was sent then is not the answer.
            request._responses = None
        results = self.called(lambda: self.model.execute(requests))
        if results is None:
            results = [None] * len(batch)
        return [
            response if response is not None else sent_alone(request, self.utils)
            for response, request in zip(one_each(results, len(batch)), requests)
        ]

    def encode(self, response: Any, request: Request) -> Answer:
        """The outputs as a JSON object by name."""
        return self.json_answer(answers.as_json(response, self.configuration))

    def encode_part(self, output: Any, content_type: str) -> bytes:
        if self.ensemble is not None:
            return super().encode_part({name: as_lists(tensor) for name, tensor in output.items()}, content_type)
        return super().encode_part(answers.as_json(output, self.configuration), content_type)

    # Tensors

    def tensors(self) -> TensorStages:
        """How the model takes tensors, by its configuration."""
        about = self.configuration
        decode: Any = self._decode_tensors
        encode: Any = self._encode_tensors
        parameters: Any = answers.parameters
        is_last: Any = answers.is_last
        if self.ensemble is not None:
            decode, encode, parameters = self.ensemble.decode_tensors, self.ensemble.encode_tensors, None
            is_last = None
        inputs, outputs = ([about.spec(tensor) for tensor in tensors] for tensors in (about.inputs, about.outputs))
        return TensorStages(
            decode, encode, inputs, outputs, platform="ensemble" if self.ensemble is not None else "python",
            rows=about.rows > 0, takes_bodies=False, parameters=parameters, is_last=is_last,
            needs_inputs=not all(tensor.optional for tensor in about.inputs),
            needs=[tensor.name for tensor in about.inputs if not tensor.optional],
        )  # fmt: skip

    def _decode_tensors(self, infer: Infer, request: Request) -> ModelRequest:
        # Names, types and shapes decide alone whether a request fits, and they recur.
        described = tuple([(tensor.name, tensor.datatype, tensor.shape) for tensor in infer.inputs.values()])
        rows = self._fitting.get(described)
        arrays = {name: tensor.array() for name, tensor in infer.inputs.items()}
        if rows is None:
            rows = self._check(infer.inputs, arrays)
            if len(self._fitting) >= MOST_FITTING:
                self._fitting.clear()
            self._fitting[described] = rows
        wanted = [output.name for output in infer.wishes.wanted]
        more = {"request_id": infer.wishes.id, **reserved.request_arguments(infer.parameters)}
        return self._received(request, self._checked_request(arrays, rows, more, wanted))

    def _check(self, inputs: Dict[str, Tensor], arrays: Dict[str, Any]) -> int:
        """The rows of a request with tensors. Raises ClientError for one that the model does not take."""
        for name, tensor in inputs.items():
            expected = self.configuration.wanted(name).datatype
            if tensor.datatype != expected:
                raise ClientError("the input '%s' is %s, not %s" % (name, expected, tensor.datatype))
        return self.configuration.check(arrays)

    def _encode_tensors(self, response: Any, request: Request) -> List[Tensor]:
        return answers.tensors(response, self.configuration, self.utils)

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """A response that is an error speaks for itself; so does an exception that is made for clients."""
        if isinstance(error, ModelRefusal):
            return Problem(error.answer_status, error.code, message_of(error))
        if self.utils is not None and isinstance(error, self.utils.TritonModelException):
            return Problem(500, "script_error", message_of(error))
        return super().failure(error, stage, request)

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        return isinstance(error, ModelRefusal) or super().blames_client(error, answer)

    def close(self) -> None:
        if callable(getattr(self.model, "finalize", None)):
            self.called(self.model.finalize)


DIALECT = Triton
