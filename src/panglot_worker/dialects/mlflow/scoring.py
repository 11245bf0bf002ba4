"""The mlflow of the script's interpreter: its loader of models, and the functions of its scoring server."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import os
import sys
import traceback
from typing import Any, Dict, List, NamedTuple, Optional

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.jsondepth import too_deep
from panglot_worker.bodies.jsontext import LongInteger
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.base import Package
from panglot_worker.errors import ClientError, EncodeError, ScriptError
from panglot_worker.line import wire

CSV, JSON, PARQUET = "text/csv", "application/json", "application/vnd.apache.parquet"
NO_TYPE = "the request has no Content-Type; application/json is one that this predictor takes"
UNEXPECTED = (
    "Encountered an unexpected error while evaluating the model. Verify that the serialized input Dataframe is "
    "compatible with the model for inference."
)
OLDEST = "this mlflow is %s, and its scoring server is older than the protocol of 2.0"


class Refused(Exception):
    """A request that the platform's server answers with a text instead of an exception of mlflow."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Call(NamedTuple):
    """The arguments for the model."""

    data: Any
    params: Optional[Dict[str, Any]] = None


class Scoring:
    """One model, and the functions of mlflow that read requests for it and write its answers."""

    def __init__(self, package: Package, limits: Limits, nan: str) -> None:
        self.limits = limits
        self.nan = nan
        self.shows_traceback = bool(package.settings.get("dev"))
        server = _import_server()
        self.server: Any = server
        self.version = str(server.VERSION)
        self.exception: Any = server.MlflowException
        self.model = self._load(package)
        metadata = self.model.metadata
        self.schema = metadata.get_input_schema() if metadata is not None else None
        self.takes_params = "params" in inspect.signature(self.model.predict).parameters

    @property
    def python_model(self) -> Any:
        """The model in Python that the package brings; None for models of libraries."""
        return getattr(getattr(self.model, "_model_impl", None), "python_model", None)

    def _load(self, package: Package) -> Any:
        """The model. Raises ScriptError where mlflow, or a module of the model, is at fault."""
        config = package.options.get("model_config")
        given = {"model_config": config} if config is not None else {}
        loader = str(package.options.get("loader", ""))
        try:
            return self.server.load_model(package.folder, **given)
        except ModuleNotFoundError as error:
            name = (error.name or "").partition(".")[0]
            problem = "%s needs the module %s, which is neither installed nor in the folder code" % (loader, error.name)
            fix = "pip install it (requirements.txt names its version), or save the model with code_paths"
            if name == "mlflow":
                fix = "pip install mlflow: mlflow-skinny lacks it"
            raise ScriptError(problem, package.script, fix=fix) from error
        except self.exception as error:
            file, line = _where(error, package)
            raise ScriptError("mlflow cannot load it: %s" % error, file, line) from error

    # Requests

    def read(self, content_type: str, body: wire.Buffer) -> "tuple[Call, bool]":
        """The call that a body asks for, and whether its answer has no key.

        Raises Refused, ClientError, and exceptions of mlflow.
        """
        kind = content_type if content_type == JSON else self._kind(content_type)
        if kind == JSON:
            return self.parsed(self.json(body))
        if kind == CSV:
            return Call(self._csv(bytes(body))), False
        # Versions before 3 take no Parquet, and say so.
        types = self.server.CONTENT_TYPES
        if kind == PARQUET and PARQUET in types:
            return Call(self.server.parse_parquet_input(io.BytesIO(body))), False
        problem = "This predictor only supports the following content types: Types: %s. Got '%s'."
        raise Refused(problem % (types, content_type), 415)

    def _kind(self, content_type: str) -> str:
        """The media type. Raises Refused for parameters that the platform does not know."""
        if not content_type:
            raise Refused(NO_TYPE, 415)
        kind, *parameters = map(str.strip, content_type.split(";"))
        values = dict(pair.partition("=")[::2] for pair in parameters)
        if values.get("charset", "utf-8").lower() != "utf-8":
            raise Refused("The scoring server only supports UTF-8", 415)
        others = ", ".join(name for name in values if name != "charset")
        if others or (parameters and set(values) != {"charset"}):
            change = self.server.SCORING_PROTOCOL_CHANGE_INFO
            raise Refused("Unrecognized content type parameters: %s. %s" % (others, change), 415)
        return kind

    def _csv(self, body: bytes) -> Any:
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            problem = "Invalid input. Ensure that input is a valid UTF-8 encoded string. Error: '%r'" % error
            raise self.exception(message=problem, error_code=self.server.BAD_REQUEST) from error
        return self.server.parse_csv_input(csv_input=io.StringIO(text), schema=self.schema)

    def json(self, body: wire.Buffer) -> Any:
        """The value of a JSON body. NaN and Infinity are taken, as the platform's clients write them."""
        if len(body) > self.limits.json_bytes:
            raise ClientError("the JSON body is larger than max_json, %d bytes" % self.limits.json_bytes, 413)
        try:
            return jsontext.loads(body, self.limits.json_depth)
        except LongInteger:
            raise
        except ClientError:
            text = bytes(body)
            # The json module, which takes NaN, has no limit of its own.
            if too_deep(text, self.limits.json_depth) >= 0:
                raise
        try:
            return json.loads(text, parse_int=_integer)
        except ValueError:
            # mlflow says what is wrong with it.
            return self.server._decode_json_input(text)

    def parsed(self, value: Any) -> "tuple[Call, bool]":
        """The call of a JSON value, and whether its answer has no key."""
        if not isinstance(value, dict):
            # Raises mlflow's own error for a value that is no object.
            self.server._decode_json_input(json.dumps(value))
        # Older versions of mlflow have no such function; theirs is in two steps.
        parse = getattr(self.server, "_parse_json_data", None)
        if parse is not None:
            parsed = parse(value, self.model.metadata, self.schema)
            return Call(parsed.data, parsed.params), parsed.is_unified_llm_input
        data, params = self.server._split_data_and_params(value)
        return Call(self.server.infer_and_parse_data(data, self.schema), params), False

    # The model

    def predict(self, call: Call) -> Any:
        """The model's output. An exception of mlflow, such as one about the schema, shows the data too."""
        try:
            if self.takes_params:
                return self.model.predict(call.data, params=call.params)
            return self.model.predict(call.data)
        except self.exception as error:
            error.message = "Failed to predict data '%s'. \nError: %s" % (call.data, error.message)
            raise

    # Answers

    def write(self, output: Any, bare: bool) -> "tuple[bytes, str]":
        """The JSON of an output, and a warning when NaN became null; `bare`: without the key `predictions`.

        Raises TypeError, ValueError and EncodeError.
        """
        value = self.server._get_jsonable_obj(output, pandas_orient="records")
        text, warning = self._text(value if bare else {"predictions": value})
        body = text.encode("utf-8")
        if len(body) > self.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.limits.output_bytes)
        return body, warning

    def _text(self, value: Any) -> "tuple[str, str]":
        encoder = self.server.NumpyEncoder
        try:
            return json.dumps(value, cls=encoder, allow_nan=self.nan == "platform"), ""
        except ValueError:
            if self.nan != "null":
                raise
        replaced: List[str] = []
        text = json.dumps(value, cls=encoder)
        # `append` notes each NaN and returns None, which takes its place.
        plain = json.loads(text, parse_constant=replaced.append)
        if not replaced:
            raise EncodeError("it cannot be written as JSON")
        return json.dumps(plain), "nan: %d values replaced by null" % len(replaced)

    def error(self, error: BaseException) -> "tuple[int, str]":
        """The status and the JSON of an exception; one from outside of mlflow is put into the platform's sentence."""
        if not isinstance(error, self.exception):
            about = {}
            if self.shows_traceback:
                lines = traceback.format_exception(type(error), error, error.__traceback__)
                about["stack_trace"] = "".join(lines)
            error = self.exception(message=UNEXPECTED, error_code=self.server.BAD_REQUEST, **about)
        answer: Any = error
        return int(answer.get_http_status_code()), str(answer.serialize_as_json())


def _where(error: BaseException, package: Package) -> "tuple[str, int]":
    """The line of the model's own code that an exception of mlflow was made from; without any, the package."""
    cause = error.__cause__ or error
    frames = traceback.extract_tb(cause.__traceback__)
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(package.folder + os.sep)]
    return (own[-1].filename, own[-1].lineno or 0) if own else (package.script, 0)


def _integer(digits: str) -> int:
    # A double has at most 309 digits, and older interpreters take quadratic time for each integer.
    if len(digits) > 400:
        raise ClientError("a number has more than 400 digits")
    return int(digits)


def _import_server() -> Any:
    """mlflow's scoring server. Raises ScriptError where it cannot be imported, or is too old."""
    try:
        server = importlib.import_module("mlflow.pyfunc.scoring_server")
    except ModuleNotFoundError as error:
        problem = "%s has no %s, which loads models of MLflow" % (sys.executable, error.name)
        fix = "pip install mlflow-skinny pandas, or name an interpreter that has them: --python"
        if error.name == "flask":
            # The scoring server of mlflow 2 is written for it, and mlflow-skinny leaves it out.
            fix = "pip install flask"
        raise ScriptError(problem, fix=fix) from None
    if not hasattr(server, "_parse_json_data") and not hasattr(server, "_split_data_and_params"):
        version = getattr(server, "VERSION", "old")
        raise ScriptError(OLDEST % version, fix="pip install 'mlflow-skinny>=2.8'")
    return server
