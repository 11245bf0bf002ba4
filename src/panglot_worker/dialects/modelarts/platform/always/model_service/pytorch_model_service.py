"""PyTorch: the script loads `self.model`; the base calls it."""

from __future__ import annotations

from typing import Any, Optional

from model_service.model_service import SingleNodeService
from model_service.onnx_model import OnnxModel, is_onnx


class PTServingBaseService(SingleNodeService):
    """`_inference` calls `self.model` on the value of every key.

    Where the script loads no model, and `self.model_path` is an .onnx file, that file is run on the whole dict.
    """

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        self.model_name = model_name
        self.model_path = model_path
        self.model: Any = None

    def _inference(self, data: Any) -> Any:
        if isinstance(self.model, OnnxModel):
            return self.model.run(data)
        return {key: self.model(value) for key, value in data.items()}

    def default_inference_model(self) -> Optional[OnnxModel]:
        """The model that the base class runs; None where that is the script's own."""
        if getattr(self, "model", None) is None and is_onnx(getattr(self, "model_path", "")):
            self.model = OnnxModel(self.model_path)
        own = getattr(self, "model", None)
        return own if isinstance(own, OnnxModel) else None

    def prepare_default_inference(self) -> None:
        """Load the .onnx file, where that is what the default `_inference` runs."""
        model = self.default_inference_model()
        if model is not None:
            model.load()
