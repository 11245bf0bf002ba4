"""PyTorch without a script: works for TorchScript and .onnx files, which bring their own code."""

from __future__ import annotations

from typing import Any

from model_service.onnx_model import is_onnx
from model_service.pytorch_model_service import PTServingBaseService


class PTServingVisionService(PTServingBaseService):
    """Every form key becomes one float tensor, files x 3 x height x width, with values from 0 to 255."""

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        if is_onnx(model_path):
            return
        import torch

        try:
            self.model = torch.jit.load(model_path, map_location="cpu").eval()
        except RuntimeError as error:
            raise ValueError(
                "%s is no TorchScript file: without a customize_service.py nothing says how to build its model"
                % model_path
            ) from error

    def _preprocess(self, data: Any) -> Any:
        return {key: self._tensor(files) for key, files in data.items()}

    def _tensor(self, files: Any) -> Any:
        import numpy
        import torch
        from PIL import Image

        pictures = [numpy.asarray(Image.open(file).convert("RGB"), dtype=numpy.float32) for file in files.values()]
        return torch.from_numpy(numpy.stack(pictures)).permute(0, 3, 1, 2).contiguous()

    def _inference(self, data: Any) -> Any:
        import torch

        with torch.no_grad():
            return super()._inference(data)

    def _postprocess(self, data: Any) -> Any:
        return {key: value.tolist() for key, value in data.items()}
