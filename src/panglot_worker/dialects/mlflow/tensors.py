"""Tensors of models with a signature: columns of a table, or the arrays that the signature names."""

from __future__ import annotations

import importlib
from typing import Any, Dict, List, Mapping, Sequence

from panglot_worker.tensors.outputs import OUTPUT, by_name
from panglot_worker.tensors.tensors import Tensor, TensorSpec

COLUMNS = {
    "boolean": "BOOL", "integer": "INT32", "long": "INT64", "float": "FP32", "double": "FP64",
}  # fmt: skip
NUMPY = {
    "bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "uint8": "UINT8",
    "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip
INPUT = "input"
"""The name of an only input that has none in the signature."""


def specs(entries: Sequence[Mapping[str, Any]], unnamed: str) -> List[TensorSpec]:
    """The inputs or outputs of a signature; texts, dates and objects travel as BYTES."""
    return [_spec(entry, str(entry.get("name", unnamed))) for entry in entries]


def _spec(entry: Mapping[str, Any], name: str) -> TensorSpec:
    spec = entry.get("tensor-spec")
    if isinstance(spec, dict):
        sizes = [size if isinstance(size, int) else -1 for size in spec.get("shape") or ()]
        return TensorSpec(name, NUMPY.get(str(spec.get("dtype")), "BYTES"), sizes or [1])
    return TensorSpec(name, COLUMNS.get(str(entry.get("type")), "BYTES"), [-1])


def data_of(tensors: Dict[str, Tensor], entries: Sequence[Mapping[str, Any]]) -> Any:
    """The data for the model: a table where its signature has columns, else an array, or arrays by name."""
    arrays = by_name(tensors, arrays=True, texts=True)
    if entries and all("name" in entry for entry in entries) and not any("tensor-spec" in entry for entry in entries):
        pandas: Any = importlib.import_module("pandas")
        # A column is a list: clients of other servers send it with a second size of 1.
        columns = {name: _column(array) for name, array in arrays.items()}
        return pandas.DataFrame(columns)
    is_named = any("name" in entry for entry in entries)
    return next(iter(arrays.values())) if len(arrays) == 1 and not is_named else arrays


def _column(array: Any) -> Any:
    if array.ndim > 1 and array.shape[-1] == 1:
        array = array.reshape(array.shape[:-1])
    return list(array) if array.ndim > 1 else array


def value_of(output: Any) -> Any:
    """An output as `panglot_worker.tensors.outputs` takes it: of tables, the columns by name."""
    if hasattr(output, "columns") and hasattr(output, "to_dict"):
        return {str(name): output[name].to_numpy() for name in output.columns}
    if hasattr(output, "to_numpy"):
        return {OUTPUT: output.to_numpy()}
    return output
