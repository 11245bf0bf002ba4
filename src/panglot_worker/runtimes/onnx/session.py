"""ONNX files, by onnxruntime."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence

from panglot_worker.errors import ClientError
from panglot_worker.runtimes import probing
from panglot_worker.runtimes.base import FREE, NUMPY, Arrays, ModelFile, ModelRuntime, ModelTensor
from panglot_worker.runtimes.onnx import faults

TYPES = {
    "float": "FP32", "double": "FP64", "float16": "FP16", "bfloat16": "BF16", "bool": "BOOL", "string": "BYTES",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
}  # fmt: skip
TENSOR = re.compile(r"tensor\((\w+)\)")
SEQUENCE = re.compile(r"seq\(tensor\((\w+)\)\)")
ZIPMAP = re.compile(r"seq\(map\((\w+),tensor\((\w+)\)\)\)")
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
BFLOAT16 = 16
"""ONNX's own number for that type."""
ONLY_ERRORS = 3


class OnnxSession(ModelRuntime):
    """One session, with as many threads as this worker has cores for."""

    platform = "onnxruntime_onnx"

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        self.runtime = file.library("onnxruntime")
        self.invalid = self.runtime.capi.onnxruntime_pybind11_state.InvalidArgument
        self.session = self._load()
        self._labels: Dict[str, List[Any]] = {}
        self.labelled = frozenset(node.name for node in self.session.get_outputs() if ZIPMAP.fullmatch(node.type))
        self.inputs = [self._described(node) for node in self.session.get_inputs()]
        self.outputs = [self._described(node) for node in self.session.get_outputs()]
        self.options = self.runtime.RunOptions()
        shrunk = "cpu:0;gpu:0" if CUDA in self.session.get_providers() else "cpu:0"
        # The memory of one large run is given back; otherwise this worker would keep it.
        self.options.add_run_config_entry("memory.enable_memory_arena_shrinkage", shrunk)
        if self.labelled:
            self.outputs = self._with_columns()

    # Loading

    def _load(self) -> Any:
        try:
            session = self._session(self.file.path)
        except Exception as error:
            about = faults.wrong(self.file.path, self._session)
            if not about.problem:
                said = " ".join(str(error).split())[:300]
                about = faults.Wrong("onnxruntime cannot load it: %s" % said, "")
            raise self.file.error(*about) from None
        if self.file.wants_cuda and CUDA not in session.get_providers():
            raise self.file.no_cuda("onnxruntime")
        return session

    def _session(self, model: Any) -> Any:
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = self.file.threads
        options.inter_op_num_threads = 1
        # Threads that spin while they wait take the cores of the other workers.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.log_severity_level = ONLY_ERRORS + 1
        return self.runtime.InferenceSession(model, options, providers=self._providers())

    def _providers(self) -> List[Any]:
        """By --device; without it, what onnxruntime was built for."""
        available = self.runtime.get_available_providers()
        if self.file.device == "cpu" or CUDA not in available:
            return [CPU]
        # Only one device is visible to this worker, whatever its number.
        return [(CUDA, {"device_id": 0}), CPU]

    def _described(self, node: Any) -> ModelTensor:
        tensor, sequence, zipmap = (form.fullmatch(node.type) for form in (TENSOR, SEQUENCE, ZIPMAP))
        if zipmap:
            return ModelTensor(node.name, TYPES.get(zipmap[2], ""), [FREE, FREE])
        known = tensor or sequence
        if known is None or known[1] not in TYPES:
            raise self.file.error("%s has the type %s, which cannot be sent" % (node.name, node.type),
                                  "export the model with tensors")  # fmt: skip
        if sequence:
            return ModelTensor(node.name, TYPES[known[1]], None, sequence=True)
        return ModelTensor(node.name, TYPES[known[1]], _shape(node.shape))

    def _with_columns(self) -> List[ModelTensor]:
        """The outputs, with the number of columns of those that have labels: only a run shows the labels."""
        probing.first_that_runs(self)
        known = {name: [FREE, len(labels)] for name, labels in self._labels.items()}
        return [spec._replace(shape=known[spec.name]) if spec.name in known else spec for spec in self.outputs]

    # Running

    def run(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """The wanted outputs. Raises what onnxruntime raises."""
        if self._has_bfloat16:
            return self._run_bfloat16(arrays, wanted)
        try:
            outputs = dict(zip(wanted, self.session.run(list(wanted), arrays, self.options)))
        except self.invalid as error:
            # The client is to blame: shapes and types are checked, so a value is wrong, as an index beyond a table.
            raise ClientError("the model cannot take this input: %s" % " ".join(str(error).split())[:300]) from error
        for name in self.labelled.intersection(outputs):
            outputs[name] = self._table(name, outputs[name])
        return outputs

    def _table(self, name: str, rows: List[Dict[Any, float]]) -> Any:
        """The array from which `ZipMap` has made dicts, with the columns in the order of the labels."""
        import numpy

        # Remembered, because a run without rows shows no labels.
        if rows:
            self._labels[name] = list(rows[0])
        columns = self._labels.get(name, [])
        return numpy.array([[row[label] for label in columns] for row in rows], "float32").reshape(-1, len(columns))

    def labels(self, output: str) -> List[str]:
        return [str(label) for label in self._labels.get(output, ())]

    @property
    def _has_bfloat16(self) -> bool:
        return any(node.datatype == "BF16" for node in (*self.inputs, *self.outputs))

    def _run_bfloat16(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """A run with onnxruntime's own values: numpy has no such type, and onnxruntime does not convert it."""
        make = self.runtime.OrtValue
        values = {}
        for node in self.inputs:
            array = arrays[node.name]
            if node.datatype == "BF16":
                values[node.name] = make.ortvalue_from_numpy_with_onnx_type(upper_halves(array), BFLOAT16)
            else:
                values[node.name] = make.ortvalue_from_numpy(array)
        outputs = self.session.run_with_ort_values(list(wanted), values, self.options)
        return {name: _from_value(value) for name, value in zip(wanted, outputs)}


def _shape(declared: Any) -> Optional[List[int]]:
    """The shape of a tensor; onnxruntime shows both a single value and an unknown rank as an empty one."""
    if not declared:
        return None
    return [size if isinstance(size, int) and size >= 0 else FREE for size in declared]


def upper_halves(array: Any) -> Any:
    """Numbers of float32 as those of bfloat16 next to them: the upper two bytes, rounded to even."""
    import numpy

    bits = numpy.ascontiguousarray(array, "float32").view("uint32")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # Rounding would carry the bits of some NaNs over into infinity, or into the sign.
    return numpy.where(numpy.isnan(array), 0x7FC0, rounded).astype("uint16")


def _from_value(value: Any) -> Any:
    import numpy

    if value.element_type() != BFLOAT16:
        return value.numpy()
    size = int(numpy.prod(value.shape()))
    if not size:
        return numpy.zeros(value.shape(), NUMPY["BF16"])
    import ctypes

    # The memory belongs to `value`: the shift below makes a copy while that is still alive.
    raw = (ctypes.c_uint16 * size).from_address(value.data_ptr())
    bits = numpy.frombuffer(raw, "uint16").astype("uint32") << 16
    return bits.view("float32").reshape(value.shape())
