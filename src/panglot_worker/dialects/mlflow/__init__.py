"""Models that MLflow has saved, loaded and called by the mlflow of the script's interpreter.

mlflow's own functions read requests and write answers (`scoring`): a model that works with `mlflow models serve` gets
the same here, whichever version of mlflow it needs.
"""

from __future__ import annotations

import json
from typing import Any, Callable, List, Optional, Union, cast

from panglot_worker.dialects.base import Answer, Dialect, Problem, Request, Stages, TensorStages, warned
from panglot_worker.dialects.mlflow import azure, tensors
from panglot_worker.dialects.mlflow.scoring import JSON, Call, Refused, Scoring
from panglot_worker.errors import ClientError, EncodeError, message_of
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.tensors import outputs
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor

TEXT = "text/plain; charset=utf-8"
SCORE = b"/score"


class Mlflow(Dialect):
    """Serves one model. It is called on the main thread, one request at a time."""

    status_blames_client = False
    streams = False
    scoring: Scoring

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Have mlflow load the model. Raises ScriptError, and what the model's own code raises."""
        progress("importing mlflow and loading the model")
        self.scoring = Scoring(self.package, self.limits, self.nan)
        return Stages(decode=self.decode, infer=self.scoring.predict, encode=self.encode)

    def describe(self) -> Description:
        described = cast(Description, dict(self.package.options.get("api", {})))
        described["entry"] = "%s, loaded by %s" % ("predict", self.package.options.get("loader"))
        described["platform"] = {"version": self.scoring.version}
        return described

    def warm_up(self, stages: Stages) -> Stages:
        """Run the input example that was saved with the model."""
        example = self.package.options.get("api", {}).get("example")
        if example is not None and self.package.options.get("has_example"):
            head = wire.Head(b"example", b"/invocations", content_type=JSON.encode())
            request = Request(wire.Item(0, 60.0, head.pack(), json.dumps(example["value"]).encode()))
            stages.encode(stages.infer(stages.decode(request)), request)
        return stages

    # Requests with tensors

    def tensors(self) -> Optional[TensorStages]:
        """The signature's columns or tensors; a model without one takes arrays by whatever name."""
        options = self.package.options
        inputs = tensors.specs(options.get("inputs", ()), tensors.INPUT)
        answered = tensors.specs(options.get("outputs", ()), outputs.OUTPUT)
        return TensorStages(
            self.decode_tensors, self.encode_tensors, inputs, answered, "panglot_mlflow", takes_bodies=not inputs
        )

    def decode_tensors(self, infer: Infer, request: Request) -> Call:
        data = tensors.data_of(infer.inputs, self.package.options.get("inputs", ()))
        return Call(data, dict(infer.parameters) or None)

    def encode_tensors(self, output: Any, request: Request) -> List[Tensor]:
        return outputs.tensors_of(tensors.value_of(output), lambda value: self.scoring.write(value, bare=True)[0])

    def result_function(self, request: Request) -> Any:
        """The method of a model in Python; models of libraries have none in the package."""
        return self.of_script(getattr(self.scoring.python_model, "predict", None))

    # Requests of the platform

    def decode(self, request: Request) -> Call:
        """The arguments for the model. Raises Refused, ClientError, and exceptions of mlflow."""
        if request.head.route == SCORE:
            # Answers of Azure have no key around the predictions.
            request.context = True
            return self.scoring.parsed(azure.rewritten(self.scoring.json(request.body)))[0]
        call, request.context = self.scoring.read(request.content_type, request.body)
        return call

    def encode(self, output: Any, request: Request) -> Answer:
        body, warning = self.scoring.write(output, bool(request.context))
        return Answer(JSON, body, 200, warned(warning))

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """An exception as the platform tells it: its own by their code, those of the model as 400 and a traceback."""
        if isinstance(error, Refused):
            return Answer(TEXT, message_of(error).encode("utf-8", "replace"), error.status)
        if isinstance(error, ClientError):
            return Problem(error.status, error.code, error.message)
        if stage == "encode" and not isinstance(error, self.scoring.exception):
            reason = error.reason if isinstance(error, EncodeError) else message_of(error)
            return Problem(500, "bad_result", "the model's output cannot be sent: %s" % reason)
        status, body = self.scoring.error(error)
        return Answer(JSON, body.encode("utf-8", "replace"), status)

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """Exceptions of mlflow with such a status are about the request: its form, its columns, its types."""
        if isinstance(error, (Refused, self.scoring.exception)):
            return 400 <= answer.status <= 499
        return super().blames_client(error, answer)


DIALECT = Mlflow
