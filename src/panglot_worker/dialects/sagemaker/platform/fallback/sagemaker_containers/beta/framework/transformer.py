"""What calls the functions of a script, in the older containers."""

from typing import Any, Callable, Optional

from sagemaker_containers.beta.framework import encoders, worker


def default_input_fn(input_data: Any, content_type: Any) -> Any:
    return encoders.decode(input_data, content_type)


def default_output_fn(prediction: Any, accept: Any) -> Any:
    return worker.Response(response=encoders.encode(prediction, accept), mimetype=accept)


def _missing(name: str) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        raise NotImplementedError("Please provide a %s implementation." % name)

    return function


class Transformer:
    """Loads a model, and answers a request with it by three functions."""

    def __init__(
        self,
        model_fn: Optional[Callable[..., Any]] = None,
        input_fn: Optional[Callable[..., Any]] = None,
        predict_fn: Optional[Callable[..., Any]] = None,
        output_fn: Optional[Callable[..., Any]] = None,
        error_class: Any = None,
    ) -> None:
        self._model: Any = None
        self._model_fn = model_fn or _missing("model_fn")
        self._input_fn = input_fn or default_input_fn
        self._predict_fn = predict_fn or _missing("predict_fn")
        self._output_fn = output_fn or default_output_fn

    def initialize(self, model_dir: str) -> None:
        self._model = self._model_fn(model_dir)

    def transform(self, content: Any, content_type: Any, accept: Any) -> Any:
        data = self._input_fn(content, content_type)
        result = self._output_fn(self._predict_fn(data, self._model), accept)
        if isinstance(result, tuple):
            return worker.Response(response=result[0], mimetype=result[1])
        return result
