"""The inference toolkit itself: defaults for bodies, none for the model."""

from __future__ import annotations

from typing import Any, Tuple, Union

from panglot_worker.dialects.base import Answer, Package, Problem
from panglot_worker.dialects.sagemaker import answers, bodies
from panglot_worker.dialects.sagemaker.answers import Refused
from panglot_worker.dialects.sagemaker.bodies import UnsupportedFormatError
from panglot_worker.errors import EncodeError, ScriptError, message_of


class Container:
    """The defaults of a container for functions that a script lacks, and its answers to failures."""

    name = "generic"
    takes_arrays = True
    """Whether `predict_fn` gets an array where the script has no `input_fn`."""
    default_type = ""
    """The content type of a body that comes without one."""
    octets: Any = bytearray
    """The type of a body that is no text."""
    utf8_errors = "strict"
    """How text that is no UTF-8 is read: see `errors` of `bytes.decode`."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.default_accept = str(package.options.get("accept") or bodies.JSON)

    # Defaults

    def model_fn(self, model_dir: str) -> Any:
        raise ScriptError(
            "Please provide a model_fn implementation.", self.package.script, fix="def model_fn(model_dir)"
        )

    def input_fn(self, data: Any, content_type: Any) -> Any:
        return bodies.decode(data, content_type)

    def predict_fn(self, data: Any, model: Any) -> Any:
        raise NotImplementedError("Please provide a predict_fn implementation.")

    def output_fn(self, prediction: Any, accept: str) -> Tuple[Any, str]:
        """The body and its content type, by the first type of Accept that is known."""
        for kind in bodies.parse_accept(accept):
            if kind in bodies.WRITERS:
                return bodies.encode(prediction, kind), kind
        raise UnsupportedFormatError(accept)

    def array(self, array: Any) -> Any:
        """The data for `predict_fn`, of an array that came as a tensor."""
        return array

    def typed(self, content_type: str) -> str:
        """The content type of an answer, as the server of the container sends it."""
        return content_type

    # Around them

    def read(self, data: Any, content_type: Any) -> Any:
        """The result of the default `input_fn`. Raises Refused where it fails: then the request is wrong."""
        try:
            return self.input_fn(data, content_type)
        except UnsupportedFormatError as error:
            raise Refused(error, is_format=True) from error
        except ImportError:
            # A library is missing here, and no request can help that.
            raise
        except Exception as error:
            raise Refused(error) from error

    def write(self, prediction: Any, accept: str) -> Tuple[Any, str]:
        """The result of the default `output_fn`. Raises Refused for an unknown type, and what the result raises."""
        try:
            return self.output_fn(prediction, accept)
        except UnsupportedFormatError as error:
            raise Refused(error, is_format=True) from error

    # Failures

    def failure(self, error: BaseException, stage: str) -> Union[Answer, Problem]:
        """The container's answer to a failure: 500 and the message, or the status that the script's error has."""
        status = 500
        if answers.is_kind(error, "BaseInferenceToolkitError"):
            status = _status(getattr(error, "status_code", 500))
            return answers.as_text(status, str(getattr(error, "message", "")))
        return answers.as_text(status, said(error))


def _status(code: Any) -> int:
    return code if type(code) is int and 200 <= code <= 599 else 500


def said(error: BaseException) -> str:
    return error.reason if isinstance(error, EncodeError) else message_of(error)
