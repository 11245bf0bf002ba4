"""Handlers of TorchServe: `handle(data, context)` is called with a list of dicts, one for each request of a batch."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, Mapping, Sequence, Union, cast

from panglot_worker.compat import devices
from panglot_worker.compat.model_context import Context, RequestProcessor
from panglot_worker.compat.model_metrics import ModelMetrics
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.torchserve import answers, requests, script
from panglot_worker.dialects.torchserve.measuring import Measurements
from panglot_worker.dialects.torchserve.requests import Incoming
from panglot_worker.errors import ClientError, EncodeError, message_of
from panglot_worker.line import wire
from panglot_worker.line.description import Description

FAILED, OUT_OF_RESOURCES = "Prediction failed", "Out of resources"
UNSUPPORTED = "Unsupported model output data type."


class WrongOutput(Exception):
    """The handler returned no list with one element for each request; in the words of the platform."""


class TorchServe(Dialect):
    """Serves one handler. It is called on the main thread, with as many requests as the model's batch size allows."""

    streams = False
    status_blames_client = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        options, settings = package.options, package.settings
        self.reader = requests.Reader(self.limits, bool(options.get("decode_input_request", True)))
        self.writer = answers.Writer(self.limits, self.nan, bool(settings.get("strict_results", True)))
        self.measured = Measurements()
        self.batch_size = int(settings.get("max_batch", 1))
        # A folder of sources that does not look like the archive made of it is seen through links that do.
        self.folder = package.run_folder or package.folder
        self.context = Context(
            str(options["model_name"]),
            self.folder,
            options["manifest"],
            self.batch_size,
            script.gpu_id(package),
            limit_max_image_pixels=bool(options.get("limit_max_image_pixels", True)),
            metrics=ModelMetrics(str(options["model_name"]), self.measured.add),
            model_yaml_config=options["config"],
        )
        # `send_intermediate_predict_response` of the platform sends by this attribute.
        self.context.cl_socket = self
        self.handler: script.LoadedHandler
        self._calling: Sequence[Incoming] = ()
        self._hinted: List[str] = []

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the handler and have it load its model. Raises ScriptError, and whatever the script raises."""
        device = os.environ.get("PANGLOT_DEVICE", self.package.settings.get("device", ""))
        devices.prepare(device, self._say)
        if self.package.run_folder:
            sys.path.insert(1, self.folder)
        progress("importing " + os.path.basename(self.package.script))
        self.handler = script.load(self.package, str(self.package.options.get("envelope") or ""))
        progress("running " + self.handler.loader)
        self.handler.initialize(self.context)
        batch = self.infer_batch if self.batch_size > 1 else None
        return Stages(decode=self.reader.read, infer=self.infer, encode=self.encode, infer_batch=batch)

    def describe(self) -> Description:
        """The handler by its name and docstring, and the example of the package."""
        described: Dict[str, Any] = {
            "entry": self.handler.name, "summary": self.handler.summary, "any_status": True, "response_schema": {},
        }  # fmt: skip
        example = self.package.options.get("example")
        if example:
            described["example"] = example
        return cast(Description, described)

    def _say(self, text: str) -> None:
        """Warn once per server: every worker would say the same, so the first says it."""
        if self.package.worker == 0:
            self.warn(text)

    def result_function(self, request: Request) -> Any:
        return self.of_script(self.handler.handle)

    # A call

    def infer(self, incoming: Incoming) -> Any:
        # The batch failed after parts were sent: a second call would send them again.
        if incoming.sent:
            raise WrongOutput(FAILED)
        return self.infer_batch([incoming])[0]

    def infer_batch(self, batch: Sequence[Incoming]) -> List[Any]:
        """Call the handler. Raises WrongOutput, and what the handler raises."""
        # Anew for each call: a batch that failed is called again, one by one, and its rows may have been changed.
        for incoming in batch:
            incoming.processor = RequestProcessor(incoming.headers)
        self.context.begin([(incoming.id, incoming.processor) for incoming in batch])
        self._calling = batch
        try:
            outputs = self.handler.handle([dict(incoming.row) for incoming in batch], self.context)
        finally:
            self._calling = ()
            deltas = self.measured.taken()
            if deltas:
                self.port.tell(wire.METRIC, deltas)
        if not isinstance(outputs, list):
            raise WrongOutput("Invalid model predict output")
        if len(outputs) != len(batch):
            raise WrongOutput("number of batch response mismatched")
        return outputs

    def send_parts(self, outputs: Any, ids: Mapping[int, str]) -> None:
        """Send parts of answers while the handler runs: `send_intermediate_predict_response` calls it."""
        for index in ids:
            incoming = self._calling[index]
            # Between two parts is the only time to hear of a client that has left; its parts are not sent.
            self.port.poll()
            if incoming.request.id in self.port.cancelled:
                continue
            answer = self.encode(outputs[index], incoming.request)
            head = "\0".join((answer.content_type, *answer.headers)).encode("latin-1", "replace")
            reply = wire.Reply(incoming.request.id, answer.status, wire.MORE, wire.NO_TIMES, head, answer.body)
            incoming.sent = True
            self.port.reply(reply)

    def encode(self, output: Any, request: Request) -> Answer:
        return self.writer.answer(output, request.context.processor, request)

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """The platform's codes and words; what the exception says is in the log alone."""
        if isinstance(error, ClientError):
            return Problem(error.status, error.code, error.message)
        if isinstance(error, WrongOutput):
            return Problem(503, "script_error", message_of(error))
        if isinstance(error, EncodeError) or stage == "encode":
            return Problem(503, "script_error", UNSUPPORTED)
        known = getattr(sys.modules.get("ts.utils.util"), "PredictionException", None)
        if known is not None and isinstance(error, known):
            code = error.error_code
            status = code if type(code) is int and 200 <= code <= 599 else 500
            return Problem(status, "script_error", str(error.message))
        self._hint(devices.explain(error))
        # By the text, as the original decides it: clients of the platform know 507.
        if isinstance(error, MemoryError) or "CUDA" in message_of(error):
            return Problem(507, "script_error", OUT_OF_RESOURCES)
        return Problem(503, "script_error", FAILED)

    def _hint(self, text: str) -> None:
        """Warn once of what makes requests of this script fail, and how to mend it."""
        if text and text not in self._hinted:
            self._hinted.append(text)
            self.warn("%s: %s" % (text, devices.FIX))


DIALECT = TorchServe
