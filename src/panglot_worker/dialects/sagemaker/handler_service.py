"""A `handler_service.py` of one's own: the model server calls its service, in place of the toolkit's."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable

from panglot_worker.compat.model_context import RequestHeaders, RequestProcessor, header_pairs
from panglot_worker.dialects.base import Answer, Request, Stages
from panglot_worker.dialects.sagemaker import answers, invocations
from panglot_worker.errors import ScriptError
from panglot_worker.scripts.loading import import_script

if TYPE_CHECKING:
    from panglot_worker.dialects.sagemaker import SageMaker

FAILED, MISMATCHED = "Prediction failed", "number of batch response mismatched"


class ServiceFailed(Exception):
    """The service raised, or returned what is no answer: its client gets the model server's error."""

    def __init__(self, message: str, status: int = 503) -> None:
        super().__init__(message)
        self.status = status


class HandlerService:
    """The service of a script, called with a list of one request, as the model server does."""

    def __init__(self, dialect: SageMaker, service: Any) -> None:
        self._dialect = dialect
        self._service = service

    def decode(self, request: Request) -> Request:
        """The request itself: the service gets its headers together with its body."""
        return request

    def infer(self, request: Request) -> Any:
        """Call the service. Raises ServiceFailed."""
        body, kind = invocations.read(request)
        headers = RequestHeaders(header_pairs(request.head.headers))
        headers["body"] = {"content-type": kind}
        request.context = processor = RequestProcessor(headers)
        context = self._dialect.context
        context.begin([(request.head.request_id.decode("latin-1"), processor)])
        try:
            returned = self._service.handle([{"body": bytearray(body)}], context)
        except Exception as error:
            if answers.is_kind(error, "PredictionException"):
                raise ServiceFailed(str(error.message), int(error.error_code)) from error  # type: ignore[attr-defined]
            raise ServiceFailed(FAILED) from error
        if not isinstance(returned, list) or len(returned) != 1:
            raise ServiceFailed(MISMATCHED)
        return returned[0]

    def encode(self, result: Any, request: Request) -> Answer:
        """The answer, with the status, the content type and the headers that the service has set."""
        processor: RequestProcessor = request.context
        kind = processor.get_response_header("content-type") or processor.get_response_header("Content-Type") or ""
        lines = answers.header_lines(processor.get_response_headers())
        return self._dialect.writer.write(result, kind, processor.get_response_status_code(), lines)


def load(dialect: SageMaker, progress: Callable[[str], None]) -> Stages:
    """Import the script, and have its service load its model. Raises ScriptError, and what the script raises."""
    file = dialect.package.script
    progress("importing handler_service.py")
    service = _service(import_script(file, "handler_service"), file)
    progress("running " + type(service).__name__ + ".initialize")
    service.initialize(dialect.context)
    serving = HandlerService(dialect, service)
    return Stages(decode=serving.decode, infer=serving.infer, encode=serving.encode)


def failure(error: ServiceFailed) -> Answer:
    return answers.as_model_server(error.status, str(error))


def _service(module: ModuleType, file: str) -> Any:
    """The service: an instance of the last class of the script that has `initialize` and `handle`."""
    kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    services = [kind for kind in kinds if hasattr(kind, "handle") and hasattr(kind, "initialize")]
    if not services:
        fix = "class HandlerService(DefaultHandlerService), with initialize(context) and handle(data, context)"
        raise ScriptError("handler_service.py has no service", file, fix=fix)
    return services[-1]()
