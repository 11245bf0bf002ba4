"""The PyTorch container: a TorchScript model, called with a tensor."""

from __future__ import annotations

import os
from typing import Any, Tuple

from panglot_worker.dialects.sagemaker import bodies
from panglot_worker.dialects.sagemaker.containers.generic import Container
from panglot_worker.dialects.sagemaker.libraries import library
from panglot_worker.errors import ScriptError

MODEL = "model.pt"


class PyTorch(Container):
    name = "pytorch"

    def model_fn(self, model_dir: str) -> Any:
        """The TorchScript model of the folder. Raises ScriptError."""
        torch = library("torch")

        path = os.path.join(model_dir, MODEL)
        if not os.path.exists(path):
            files = [name for name in sorted(os.listdir(model_dir)) if name.endswith((".pt", ".pth"))]
            if len(files) != 1:
                problem = "Exactly one .pth or .pt file is required for PyTorch models: %s" % files
                raise ScriptError(problem, model_dir, fix="def model_fn(model_dir) in the script, or leave one file")
            path = os.path.join(model_dir, files[0])
        try:
            return torch.jit.load(path, map_location=self._device()).to(self._device())
        except RuntimeError as error:
            problem = "Failed to load %s. Please ensure model is saved using torchscript." % path
            raise ScriptError(problem, path, fix="def model_fn(model_dir) in the script") from error

    @staticmethod
    def _device() -> Any:
        torch = library("torch")

        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def input_fn(self, data: Any, content_type: Any) -> Any:
        torch = library("torch")

        array = bodies.decode(data, content_type)
        tensor = torch.FloatTensor(array) if content_type in bodies.UTF8_TYPES else torch.from_numpy(array)
        return tensor.to(self._device())

    def array(self, array: Any) -> Any:
        torch = library("torch")

        return torch.from_numpy(array).to(self._device())

    def predict_fn(self, data: Any, model: Any) -> Any:
        torch = library("torch")

        with torch.no_grad():
            model = model.to(self._device())
            model.eval()
            return model(data.to(self._device()))

    def output_fn(self, prediction: Any, accept: str) -> Tuple[Any, str]:
        """The body by the first type that is known; the content type is Accept as it came, as on the platform."""
        torch = library("torch")

        if type(prediction) is torch.Tensor:
            prediction = prediction.detach().cpu().numpy().tolist()
        body, _ = super().output_fn(prediction, accept)
        return body, accept
