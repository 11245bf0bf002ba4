"""TensorFlow: the SavedModel is run in this process, by the signature that clients of TensorFlow Serving name."""

from __future__ import annotations

from typing import Any, Dict, Union

from model_service.model_service import SingleNodeService
from model_service.onnx_model import OnnxModel, is_onnx
from model_service.saved_model import SERVE, SavedModel


class TfServingBaseService(SingleNodeService):
    """`_inference` feeds the dict it gets, key by key, and returns a dict of Python lists.

    A script that sets `self.model_path` to an .onnx file gets that file run instead of a SavedModel.
    """

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        self.model_name = model_name
        self.model_path = model_path
        self.model_inputs: Dict[str, Any] = {}
        self.model_outputs: Dict[str, Any] = {}
        self.stub = None
        self.model = SavedModel(model_name, model_path)

    def _inference(self, data: Any) -> Any:
        return {key: listed(value) for key, value in self.default_inference_model().run(data).items()}

    def default_inference_model(self) -> Union[SavedModel, OnnxModel]:
        """The model that the base class runs, also for a script that never called the base constructor."""
        path = getattr(self, "model_path", "")
        own = getattr(self, "model", None)
        if isinstance(own, SavedModel) and not is_onnx(path):
            return own
        model: Union[SavedModel, OnnxModel, None] = self.__dict__.get("_panglot_model")
        if model is None or model.model_path != path:
            model = OnnxModel(path) if is_onnx(path) else SavedModel(getattr(self, "model_name", SERVE), path)
            self._panglot_model = model
        return model

    def prepare_default_inference(self) -> None:
        """Load what the default `_inference` needs. Raises when there is nothing it could run."""
        self.default_inference_model().load()


def listed(value: Any) -> Any:
    """An array as nested lists; text as text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [listed(item) for item in value] if _holds_bytes(value) else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _holds_bytes(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, bytes)
