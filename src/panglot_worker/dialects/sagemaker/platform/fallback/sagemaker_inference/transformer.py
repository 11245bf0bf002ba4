"""Calls the functions of an inference script for a request; those that it lacks are an inference handler's."""

import importlib
import importlib.util
import inspect
import logging
from typing import Any, Callable, Dict, List, Optional

from sagemaker_inference import content_types, environment, utils
from sagemaker_inference.default_inference_handler import DefaultInferenceHandler
from sagemaker_inference.errors import BaseInferenceToolkitError, GenericInferenceToolkitError

ARGUMENTS = {"model_fn": 1, "input_fn": 2, "predict_fn": 2, "output_fn": 2, "transform_fn": 4}
"""The functions, and how many arguments each has without the context."""
TOGETHER = (
    "Cannot use transform_fn implementation in conjunction with input_fn, predict_fn, and/or output_fn implementation"
)
log = logging.getLogger("sagemaker_inference")


class Transformer:
    """Loads a model once, and answers the requests of a list one by one."""

    def __init__(self, default_inference_handler: Optional[Any] = None) -> None:
        self._default_inference_handler = default_inference_handler or DefaultInferenceHandler()
        self._functions: Dict[str, Callable[..., Any]] = {}
        self._initialized = False
        self._environment: Any = None
        self._model: Any = None
        self._context: Any = None

    def validate_and_initialize(self, model_dir: str = environment.model_dir, context: Any = None) -> None:
        """Find the functions, and load the model. Raises ValueError for functions that exclude each other."""
        if self._initialized:
            return
        self._environment, self._context = environment.Environment(), context
        self._functions = self._found()
        self._model = self._run("model_fn", model_dir)
        self._initialized = True

    def _found(self) -> Dict[str, Callable[..., Any]]:
        handler, name = self._default_inference_handler, self._environment.module_name
        script = importlib.import_module(name) if importlib.util.find_spec(name) is not None else None
        own = {known: getattr(script, known) for known in ARGUMENTS if hasattr(script, known)}
        if "transform_fn" in own and {"input_fn", "predict_fn", "output_fn"} & set(own):
            raise ValueError(TOGETHER)
        defaults = {known: getattr(handler, "default_" + known) for known in ARGUMENTS if known != "transform_fn"}
        return {**defaults, "transform_fn": self._default_transform_fn, **own}

    def _run(self, name: str, *arguments: Any) -> Any:
        function, count = self._functions[name], ARGUMENTS[name]
        given = len(inspect.signature(function).parameters)
        if given == count:
            return function(*arguments)
        if given == count + 1:
            return function(*arguments, self._context)
        raise TypeError("%s takes %d arguments but %d were given." % (name, given, count))

    def transform(self, data: List[Any], context: Any) -> List[Any]:
        """The answers to a list of requests; their status and content type are set in the context."""
        self._context = context
        try:
            self.validate_and_initialize(context.system_properties.get("model_dir"), context)
            answers = [self._answer(index, row, context) for index, row in enumerate(data)]
        except BaseInferenceToolkitError as error:
            return self._told(context, error, len(data))
        except Exception as error:
            return self._told(context, GenericInferenceToolkitError(500, str(error)), len(data))
        return answers

    def _answer(self, index: int, row: Any, context: Any) -> Any:
        headers = context.get_all_request_header(index)
        kind = utils.retrieve_content_type_header(headers)
        accept = headers.get("Accept") or headers.get("accept")
        if not accept or accept == content_types.ANY:
            accept = self._environment.default_accept
        body = row.get("body")
        if kind in content_types.UTF8_TYPES:
            body = body.decode("utf-8")
        result = self._run("transform_fn", self._model, body, kind, accept)
        if isinstance(result, tuple):
            result, accept = result[0], result[1]
        context.set_response_content_type(index, accept)
        return result

    def _default_transform_fn(self, model: Any, input_data: Any, content_type: Any, accept: Any) -> Any:
        data = self._run("input_fn", input_data, content_type)
        return self._run("output_fn", self._run("predict_fn", data, model), accept)

    def _told(self, context: Any, error: BaseInferenceToolkitError, count: int) -> List[str]:
        """The error for each request. The traceback, which the original sends to clients, is in the log alone."""
        log.error("the transformer failed on a request", exc_info=True)
        for index in range(count):
            context.set_response_status(error.status_code, utils.remove_crlf(str(error.phrase)), index)
        return [str(error.message)] * count
