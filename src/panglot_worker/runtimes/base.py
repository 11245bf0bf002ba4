"""The interface of all runtimes: the model's tensors, by name, type and shape, and a way to run it."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence

from panglot_worker.errors import ScriptError

FREE = -1
"""A dimension of any size, in a shape."""
NUMPY = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "BF16": "float32", "FP32": "float32", "FP64": "float64", "BYTES": "object",
}  # fmt: skip
"""The type of numpy that holds each datatype. It has none for BF16; every value of that is one of float32 too."""
DATATYPES = {name: datatype for datatype, name in NUMPY.items() if datatype != "BF16"}
PIP = {
    "joblib": "scikit-learn", "sklearn": "scikit-learn", "paddle": "paddlepaddle", "imblearn": "imbalanced-learn",
    "skimage": "scikit-image", "cv2": "opencv-python", "PIL": "pillow", "yaml": "pyyaml", "sksurv": "scikit-survival",
}  # fmt: skip
"""Packages by the modules that they install, where the names differ."""

Arrays = Dict[str, Any]
"""Arrays of numpy by name. An output that is a sequence is a list of them."""


class ModelTensor(NamedTuple):
    """An input or an output. `shape` is None where not even the number of dimensions is known."""

    name: str
    datatype: str
    shape: Optional[List[int]]
    sequence: bool = False
    """Whether it is a list of such tensors."""


class DeclaredInput(NamedTuple):
    """An input as `panglot.toml` declares it in its table `[[inputs]]`. An empty field is not declared."""

    name: str
    datatype: str = ""
    shape: Optional[List[int]] = None


class ModelFile(NamedTuple):
    """The file that a runtime opens, the device it runs on, and the inputs that the package declares."""

    path: str
    device: str = ""
    """`cpu`, `cuda:0`, or empty: any that there is."""
    threads: int = 1
    inputs: Sequence[DeclaredInput] = ()
    parameters: str = ""
    """A second file, of formats that have two."""
    outputs: Mapping[int, str] = {}
    """Names of outputs by their index, for formats without names of their own."""

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def wants_cuda(self) -> bool:
        return self.device.startswith("cuda")

    def error(self, problem: str, fix: str = "") -> ScriptError:
        return ScriptError(problem, self.path, fix=fix)

    def library(self, module: str) -> Any:
        """Import the library that runs the file. Raises a ScriptError that names the library if it is not installed."""
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module.partition(".")[0]:
                raise
            raise self.lacking(error.name, "%s runs this file, and is not installed for %s") from None

    def lacking(self, module: str, problem: str) -> ScriptError:
        """The error for a module that is not installed; `problem` has two %s, for package and interpreter."""
        top = module.partition(".")[0]
        package = PIP.get(top, top)
        return self.error(
            problem % (package, sys.executable), "pip install %s there, or name another --python" % package
        )

    def no_cuda(self, library: str) -> ScriptError:
        return self.error("--device %s: %s sees no CUDA device" % (self.device, library), "use --device cpu")


class ModelRuntime:
    """A loaded model. Everything runs on the worker's main thread."""

    platform = ""
    """The name of the platform, by the convention of the Open Inference Protocol: `<project>_<format>`."""
    casts = False
    """Whether numbers of any type are taken: the file does not say which."""
    any_name = False
    """Whether the only input may be called anything: the file does not name it."""
    labelled: FrozenSet[str] = frozenset()
    """Outputs that are answered together with the labels of their columns, which only the file has."""
    inputs: List[ModelTensor]
    outputs: List[ModelTensor]

    def __init__(self, file: ModelFile) -> None:
        self.file = file

    def run(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """The wanted outputs by name. Raises what the library raises."""
        raise NotImplementedError

    def labels(self, output: str) -> List[str]:
        """The labels of an output's columns; none where they are not known."""
        return []


def datatype_of(dtype: Any) -> str:
    """The datatype of a type of numpy; text and objects are BYTES. Empty for a type that has none."""
    return "BYTES" if dtype.kind in "OSU" else DATATYPES.get(dtype.name, "")


def shown(shape: Optional[Sequence[int]]) -> str:
    """A shape for people: `[N, 3, 224, 224]`."""
    if shape is None:
        return "[any shape]"
    return "[%s]" % ", ".join(str(size) if size >= 0 else "N" if not at else "?" for at, size in enumerate(shape))
