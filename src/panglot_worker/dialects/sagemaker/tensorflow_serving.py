"""Scripts of the TensorFlow Serving container: `handler`, or `input_handler` and `output_handler`.

Between the two handlers the container calls TensorFlow Serving. Here the SavedModel of the package answers, in this
process; a `handler` calls it itself, at an address of this machine.
"""

from __future__ import annotations

import http.server
import io
import json
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple, Optional, Union

from panglot_worker.compat.model_context import header_pairs
from panglot_worker.dialects.base import Answer, Problem, Request, Stages
from panglot_worker.dialects.sagemaker import bodies, invocations
from panglot_worker.dialects.sagemaker.libraries import library
from panglot_worker.errors import ScriptError, message_of
from panglot_worker.scripts.loading import import_script

if TYPE_CHECKING:
    from panglot_worker.dialects.sagemaker import SageMaker

ATTRIBUTES = "X-Amzn-Sagemaker-Custom-Attributes"
FILE = "saved_model.pb"


class ServingContext(NamedTuple):
    """What handlers know of a request, by the names of the platform."""

    model_name: str
    model_version: str
    method: str
    rest_uri: str
    grpc_port: Any
    channel: Any
    custom_attributes: Optional[str]
    request_content_type: Optional[str]
    accept_header: str
    content_length: int


class ServingResponse:
    """An answer of TensorFlow Serving as the library `requests` returns it, as far as handlers use it."""

    def __init__(self, content: bytes, status_code: int) -> None:
        self.content = content
        self.status_code = status_code
        self.headers: Dict[str, str] = {"Content-Type": "application/json"}
        self.ok = status_code < 400

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.content)


class SavedModel:
    """The SavedModel of a package, which answers as TensorFlow Serving's `:predict` does."""

    def __init__(self, model_dir: str, script: str) -> None:
        folders = sorted((folder for folder, _, files in os.walk(model_dir) if FILE in files), key=_version)
        if not folders:
            problem = "the model's folder has no %s for the handlers to call" % FILE
            raise ScriptError(problem, script, fix="export the model there, as VERSION/%s" % FILE)
        try:
            tensorflow = library("tensorflow")
        except ImportError:
            problem = "the handlers call a SavedModel, which needs TensorFlow for this interpreter"
            raise ScriptError(problem, script, fix="pip install tensorflow") from None
        self.tensorflow = tensorflow
        self.version = os.path.basename(folders[-1])
        self.loaded: Any = tensorflow.saved_model.load(folders[-1])

    def answer(self, body: bytes) -> ServingResponse:
        """The predictions for the rows of a request, or its error."""
        try:
            return ServingResponse(json.dumps(self.predictions(json.loads(body)), indent=4).encode(), 200)
        except Exception as error:
            return ServingResponse(json.dumps({"error": message_of(error)}).encode(), 400)

    def predictions(self, request: Any) -> Dict[str, Any]:
        """As the REST API has it: `instances` give `predictions`, `inputs` give `outputs`. Raises ValueError."""
        if not isinstance(request, dict) or not ({"instances", "inputs"} & set(request)):
            raise ValueError("Missing 'inputs' or 'instances' key")
        name = str(request.get("signature_name", "serving_default"))
        signatures = dict(self.loaded.signatures)
        if name not in signatures:
            raise ValueError('Serving signature name: "%s" not found in signature def' % name)
        signature = signatures[name]
        specs = signature.structured_input_signature[1]
        rows = "instances" in request
        given = request["instances"] if rows else request["inputs"]
        if rows and given and isinstance(given[0], dict):
            given = {key: [row[key] for row in given] for key in given[0]}
        if not isinstance(given, dict):
            given = {next(iter(specs)): given}
        inputs = {key: self.tensorflow.constant(value, specs[key].dtype) for key, value in given.items()}
        outputs = {key: _plain(value.numpy().tolist()) for key, value in signature(**inputs).items()}
        if not rows:
            return {"outputs": next(iter(outputs.values())) if len(outputs) == 1 else outputs}
        if len(outputs) == 1:
            return {"predictions": next(iter(outputs.values()))}
        return {"predictions": [dict(zip(outputs, row)) for row in zip(*outputs.values())]}


def _version(folder: str) -> int:
    name = os.path.basename(folder)
    return int(name) if name.isdigit() else 0


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


class Serving(NamedTuple):
    """The stages of a script with handlers."""

    dialect: "SageMaker"
    module: Any
    saved: SavedModel
    uri: str

    def decode(self, request: Request) -> Any:
        """The body as a stream, and the context."""
        headers = dict(header_pairs(request.head.headers))
        body, kind = invocations.read(request)
        context = ServingContext(
            self.dialect.package.name, self.saved.version, "predict", self.uri, None, None,
            headers.get(ATTRIBUTES), kind or None, self.dialect.accept(request), len(body),
        )  # fmt: skip
        return io.BytesIO(bytes(body)), context

    def infer(self, value: Any) -> Any:
        data, context = value
        if hasattr(self.module, "input_handler"):
            sent = self.module.input_handler(data, context)
            body = sent.encode("utf-8") if isinstance(sent, str) else bytes(sent)
            return self.module.output_handler(self.saved.answer(body), context)
        return self.module.handler(data, context)

    def encode(self, output: Any, request: Request) -> Answer:
        return self.dialect.writer.write(output, bodies.JSON)


def failure(error: BaseException) -> Union[Answer, Problem]:
    return Answer(bodies.JSON, json.dumps({"error": message_of(error)}).encode(), 500)


def load(dialect: "SageMaker", progress: Callable[[str], None]) -> Stages:
    """Import the script and load the SavedModel. Raises ScriptError."""
    package = dialect.package
    progress("importing " + os.path.basename(package.script))
    module = import_script(package.script)
    progress("loading the SavedModel")
    saved = SavedModel(package.options["model_dir"], package.script)
    path = "/v1/models/%s:predict" % package.name
    # The platform's address. Nothing listens there: between the two handlers, the model is called in this process.
    uri = "http://localhost:8501" + path
    if not hasattr(module, "input_handler"):
        uri = "http://127.0.0.1:%d%s" % (serve(saved), path)
    serving = Serving(dialect, module, saved, uri)
    return Stages(decode=serving.decode, infer=serving.infer, encode=serving.encode)


def serve(saved: SavedModel) -> int:
    """Answer requests of this process at a port of this machine, which is returned."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = saved.answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing: the server's log has the request already."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    # On a thread: the main thread runs the handler, which waits for this very answer.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])
