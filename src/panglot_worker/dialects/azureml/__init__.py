"""Scoring scripts of Azure Machine Learning: `init()` once, then `run()` for every request.

The names that scripts import are in `platform/fallback`: where the real packages are installed, those are used.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Union

from panglot_worker.bodies.standard_json import StandardJson
from panglot_worker.dialects.azureml import answers, inputs, raw, script
from panglot_worker.dialects.azureml.answers import Ran
from panglot_worker.dialects.azureml.examples import example_of
from panglot_worker.dialects.azureml.incoming import Heads, Refused, Seen
from panglot_worker.dialects.azureml.logs import configure_logging
from panglot_worker.dialects.azureml.tensors import specs, values_of
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages, TensorStages, warned
from panglot_worker.errors import message_of
from panglot_worker.line.description import Description
from panglot_worker.scripts import current
from panglot_worker.tensors import outputs
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor

FORM_WARNING = (
    "a client sent a form, of which run() gets an empty text, as on the platform; "
    "it should send Content-Type: application/json"
)
now = time.perf_counter


class Call(NamedTuple):
    """The arguments of one call of `run()`, and the context it runs in, where the script takes the request itself."""

    arguments: Dict[str, Any]
    context: Optional[ContextManager[Any]] = None


class AzureMl(Dialect):
    def __init__(self, package: Package) -> None:
        super().__init__(package)
        strict = bool(package.settings.get("strict_results", True))
        self.json = StandardJson(self.limits, self.nan, strict)
        version = str(package.options.get("server_version", ""))
        self.lines = ["x-ms-server-version: " + version] if version else []
        self.heads = Heads()
        self.script: script.Script
        self.first = ""
        """The parameter that takes the body, or the request."""
        self.requests: Any = None
        """Makes the request objects, for a script that takes them."""
        self._has_warned = False

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script and run its `init()`. Raises ScriptError, and what the script raises."""
        if self.package.run_folder:
            os.chdir(os.path.join(self.package.run_folder, "app"))
        sys.path += self.package.options.get("import_folders", [])
        configure_logging(self.package)
        progress("importing " + os.path.basename(self.package.script))
        self.script = script.load(self.package)
        self.first = self.script.parameters[0].name
        decode, infer = self.decode_text, self.infer
        if self.script.mode == script.RAW:
            self.requests = raw.requests_for(self.limits)
            decode, infer = self.decode_raw, self.infer_raw
        elif self.script.mode == script.SCHEMA:
            decode = self.decode_values
        progress("running init()")
        self.script.init()
        return Stages(decode=decode, infer=infer, encode=self.encode)

    def describe(self) -> Description:
        """The script's interface; only the decorators of a script give schemas for requests and answers."""
        mode, schemas = self.script.mode, self.script.schemas
        decorated = mode == script.SCHEMA
        described: Description = {
            "entry": "run",
            "summary": (self.script.module.__doc__ or "").strip(),
            "example": example_of(self.package.folder, schemas["input"] if decorated else None),
            "request_schema": _without_example(schemas["input"]) if decorated else {},
            "response_schema": _without_example(schemas["output"]) if decorated else {},
            "any_status": mode == script.RAW,
            "platform": {"swagger": schemas},
        }
        if mode != script.RAW:
            described["request_types"] = [inputs.JSON]
        return described

    def tensors(self) -> Optional[TensorStages]:
        """The parameters of a decorated script are the tensors; other scripts take tensors as bodies."""
        if self.script.mode != script.SCHEMA:
            return None
        inputs_, outputs_ = specs(self.script.schemas)
        return TensorStages(self.decode_tensors, self.encode_tensors, inputs_, outputs_, "panglot_azureml")

    def decode_tensors(self, infer: Infer, request: Request) -> Call:
        seen = self._begin(request)
        values = values_of(infer.inputs, self.script.schemas["input"])
        return Call(self._with_headers(inputs.arguments_of(values, self.script.parameters), seen))

    def encode_tensors(self, output: Ran, request: Request) -> List[Tensor]:
        result = output.output
        if output.is_response:
            return [outputs.of_bytes(outputs.OUTPUT, answers.body_of(result))]
        return outputs.tensors_of(result, lambda value: self.json.encode(value)[0])

    def result_function(self, request: Request) -> Any:
        return self.script.run

    # A request

    def decode_text(self, request: Request) -> Call:
        """The text of the body, or the values of the query as JSON."""
        seen = self._begin(request)
        if seen.head.method == b"POST":
            text = inputs.text_of(seen.content_type, request.body)
            if not text and len(request.body) and not self._has_warned:
                self._has_warned = True
                self.warn(FORM_WARNING)
        else:
            text = json.dumps(inputs.query_values(seen.head.query))
        return Call(self._with_headers({self.first: text}, seen))

    def decode_values(self, request: Request) -> Call:
        """One value for each parameter of `run`."""
        seen = self._begin(request)
        if seen.head.method == b"POST":
            values = inputs.object_of(seen.content_type, request.body, self.limits)
        else:
            values = inputs.query_values(seen.head.query)
        return Call(self._with_headers(inputs.arguments_of(values, self.script.parameters), seen))

    def decode_raw(self, request: Request) -> Call:
        seen = self._begin(request)
        made = self.requests.make(seen, request.body)
        return Call(self._with_headers({self.first: made.request}, seen), made.context)

    def _begin(self, request: Request) -> Seen:
        """Read the head. The context becomes the header lines of the answer. Raises Refused."""
        seen, lines = self.heads.of(request)
        request.context = lines + self.lines
        return seen

    def _with_headers(self, arguments: Dict[str, Any], seen: Seen) -> Dict[str, Any]:
        if self.script.takes_headers:
            arguments[script.HEADERS] = seen.headers
        return arguments

    def infer(self, value: Call) -> Any:
        started = now()
        output = self.script.run(**value.arguments)
        return self._ran(output, started)

    def infer_raw(self, value: Call) -> Any:
        assert value.context is not None
        with value.context:
            return self.infer(value)

    def _ran(self, output: Any, started: float) -> Any:
        request = current.running[0]
        ran = Ran(output, answers.is_response(output))
        # A request with tensors has another context, and no headers for it; its answer is sent whole.
        if type(request.context) is list:
            # Not with the output, which `panglot check` compares: no two runs take the same time.
            request.context.insert(0, answers.took((now() - started) * 1000))
            if ran.is_response and output.is_streamed and output.status_code == 200:
                return self._parts(output, request)
        return ran

    # Answers

    def encode(self, output: Ran, request: Request) -> Answer:
        """The platform's answer to a result. Raises TypeError and EncodeError for what JSON cannot hold."""
        result = output.output
        headers = request.context
        if output.is_response:
            status, content_type, lines = answers.head_of(result, headers)
            return Answer(content_type, answers.body_of(result), status, lines)
        if result is None:
            return Answer(answers.JSON, b"{}", 200, (answers.SUCCEEDED, *headers))
        body, warning = self.json.encode(result)
        return Answer(answers.JSON, body, 200, (answers.SUCCEEDED, *headers, *(warned(warning) if warning else ())))

    def _parts(self, response: Any, request: Request) -> Iterator[bytes]:
        """A response that comes in parts. Its head goes with the request, to `stream_type`."""
        _, content_type, lines = answers.head_of(response, request.context)
        request.context = "\0".join((content_type, *lines))
        return answers.parts_of(response)

    def stream_type(self, request: Request) -> str:
        """The head of an answer in parts: its content type, and the further header lines behind it."""
        return str(request.context)

    def encode_part(self, output: Any, content_type: str) -> bytes:
        return bytes(output)

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """The platform's answer to a failure: its own refusals, `run()` that raised, a result that cannot be sent."""
        # No list where the head was refused, where a stream has begun, and where tensors came.
        headers = request.context if type(request.context) is list else self.lines
        if isinstance(error, Refused):
            return answers.message(error.status, error.message, headers)
        if stage == "inference":
            if self.script.mode == script.SCHEMA and script.converts(error):
                return answers.message(400, message_of(error), headers)
            return answers.message(500, answers.SCRIPT_FAILED, headers, failed=True)
        return answers.message(500, answers.INTERNAL, [line for line in headers if not line.startswith(answers.TOOK)])


def _without_example(schema: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "example"}


DIALECT = AzureMl
