"""An .onnx file, run by onnxruntime."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from model_service.model_inputs import Input, refuse_incomplete, refuse_strange

TYPES = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(bool)": "bool",
    "tensor(int8)": "int8", "tensor(int16)": "int16", "tensor(int32)": "int32", "tensor(int64)": "int64",
    "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32", "tensor(uint64)": "uint64",
    "tensor(string)": "object",
}  # fmt: skip
"""onnxruntime's types in numpy's words."""
PROVIDERS = ("CUDAExecutionProvider", "CANNExecutionProvider", "ROCMExecutionProvider", "CPUExecutionProvider")
"""The devices to run on, the best first. TensorRT is not among them: it builds its engine for minutes."""


def is_onnx(path: Any) -> bool:
    """Whether a path leads to a model for onnxruntime."""
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).lower().endswith(".onnx")


class OnnxModel:
    """The model in a file. Nothing is read before it is needed."""

    def __init__(self, model_path: str) -> None:
        self.model_path = model_path
        self._session: Optional[Any] = None

    def described_inputs(self) -> Dict[str, Input]:
        """The inputs the file declares. Raises what `load` raises."""
        inputs = {}
        for about in self.load().get_inputs():
            sizes = [size if isinstance(size, int) else None for size in about.shape]
            inputs[about.name] = Input(TYPES.get(about.type, "object"), sizes)
        return inputs

    def load(self) -> Any:
        """onnxruntime's session. Raises FileNotFoundError, and what onnxruntime raises for a file that is no model."""
        if self._session is None:
            path = os.fspath(self.model_path)
            if not os.path.isfile(path):
                raise FileNotFoundError("there is no %s, and the script has no _inference of its own" % path)
            import onnxruntime

            self._session = onnxruntime.InferenceSession(path, providers=_providers(onnxruntime))
        return self._session

    def run(self, data: Any) -> Dict[str, Any]:
        """One forward pass, arrays by output. Raises ValueError for keys that are not the inputs' names."""
        import numpy

        session = self.load()
        types = {about.name: TYPES.get(about.type, "object") for about in session.get_inputs()}
        refuse_strange(data, types)
        refuse_incomplete(data, types)
        inputs = {name: numpy.asarray(value, types[name]) for name, value in data.items()}
        names = [about.name for about in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs)))


def _providers(onnxruntime: Any) -> List[str]:
    """The devices onnxruntime was built for, unless the server's --device is cpu."""
    if os.environ.get("PANGLOT_DEVICE") == "cpu":
        return ["CPUExecutionProvider"]
    available = onnxruntime.get_available_providers()
    return [name for name in PROVIDERS if name in available]
