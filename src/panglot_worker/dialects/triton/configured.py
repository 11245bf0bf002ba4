"""The tensors in a model's configuration, and requests checked against them."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional

from panglot_worker.errors import ClientError, EncodeError, ScriptError
from panglot_worker.tensors.datatypes import DATATYPES
from panglot_worker.tensors.tensors import TensorSpec

FREE = -1
DEFAULTS: Dict[str, Any] = {
    "platform": "",
    "backend": "python",
    "runtime": "",
    "version_policy": {"latest": {"num_versions": 1}},
    "max_batch_size": 0,
    "input": [],
    "output": [],
    "batch_input": [],
    "batch_output": [],
    "optimization": {
        "priority": "PRIORITY_DEFAULT",
        "input_pinned_memory": {"enable": True},
        "output_pinned_memory": {"enable": True},
        "gather_kernel_buffer_threshold": 0,
        "eager_batching": False,
    },
    "default_model_filename": "model.py",
    "cc_model_filenames": {},
    "metric_tags": {},
    "parameters": {},
    "model_warmup": [],
}
"""What Triton fills in before a model sees its configuration; it adds the name and the instances."""
KINDS = {"b": "true or false", "i": "whole numbers", "u": "whole numbers", "f": "numbers"}


class ConfiguredTensor(NamedTuple):
    """An input or an output. `dims` are without the dimension of rows."""

    name: str
    datatype: str
    dims: List[int]
    optional: bool = False
    reshape: Optional[List[int]] = None
    """The dims that the model has where those differ."""


class Configuration(NamedTuple):
    """A model's configuration, complete."""

    inputs: List[ConfiguredTensor]
    outputs: List[ConfiguredTensor]
    rows: int
    """max_batch_size: the most rows of a call; 0: tensors have no dimension of rows."""
    shares: bool
    """Whether a call may hold several requests."""
    decoupled: bool
    delay: float = 0.0
    """Seconds a call waits for company; the front does the waiting for models that are not decoupled."""
    bf16_outputs: FrozenSet[str] = frozenset()
    reshaped_outputs: Dict[str, ConfiguredTensor] = {}

    def spec(self, tensor: ConfiguredTensor) -> TensorSpec:
        return TensorSpec(tensor.name, tensor.datatype, [FREE, *tensor.dims] if self.rows else tensor.dims)

    def wanted(self, name: str) -> ConfiguredTensor:
        """The input of a name. Raises ClientError."""
        for tensor in self.inputs:
            if tensor.name == name:
                return tensor
        names = ", ".join(tensor.name for tensor in self.inputs) or "none"
        raise ClientError("there is no input '%s'; there is %s" % (name[:80], names))

    def for_model(self, tensor: ConfiguredTensor, array: Any) -> Any:
        """An input that was checked, in the shape that the model takes."""
        return array if tensor.reshape is None else self._reshaped(array, tensor.dims, tensor.reshape)

    def for_client(self, name: str, array: Any) -> Any:
        """An output of the model in the shape that clients get. Raises EncodeError where that cannot be."""
        tensor = self.reshaped_outputs.get(name)
        if tensor is None or tensor.reshape is None:
            return array
        try:
            return self._reshaped(array, tensor.reshape, tensor.dims)
        except (ValueError, StopIteration):
            shapes = (name, list(array.shape), tensor.reshape)
            raise EncodeError("the output '%s' has the shape %s, and its reshape is %s" % shapes) from None

    def _reshaped(self, array: Any, before: List[int], after: List[int]) -> Any:
        """An array with other dims; sizes that the configuration leaves free stand in the same order in both."""
        rows = list(array.shape[: 1 if self.rows else 0])
        free = (size for size, dim in zip(array.shape[len(rows) :], before) if dim == FREE)
        return array.reshape([*rows, *[next(free) if dim == FREE else dim for dim in after]])

    def check(self, arrays: Dict[str, Any]) -> int:
        """The number of rows of a request, 1 where they are not counted. Raises ClientError for what does not fit."""
        for tensor in self.inputs:
            if tensor.name not in arrays and not tensor.optional:
                raise ClientError("the input '%s' is missing" % tensor.name)
        counts = {self._rows(self.wanted(name), array) for name, array in arrays.items()}
        if len(counts) > 1:
            raise ClientError("the inputs differ in their rows: %s" % ", ".join(map(str, sorted(counts))))
        rows = counts.pop() if counts else 1
        if self.rows and rows > self.rows:
            raise ClientError("%d rows are more than the model takes in a call, max_batch_size %d" % (rows, self.rows))
        return rows

    def _rows(self, tensor: ConfiguredTensor, array: Any) -> int:
        shape = list(array.shape)
        expected = list(self.spec(tensor).shape)
        fits = len(shape) == len(expected) and all(want in (FREE, size) for want, size in zip(expected, shape))
        if not fits:
            raise ClientError(
                "the input '%s' has the shape %s, and the model takes %s" % (tensor.name, shape, expected)
            )
        return shape[0] if self.rows else 1


def configuration(config: Dict[str, Any], script: str) -> Configuration:
    """What a configuration means, with Triton's names. Raises ScriptError."""
    if not config.get("output"):
        fix = "write input and output into config.pbtxt, or auto_complete_config into the class"
        raise ScriptError("nothing says what the model takes and gives", script, fix=fix)
    rows = int(config.get("max_batch_size", 0))
    outputs = [_tensor(entry, script) for entry in config["output"]]
    return Configuration(
        [_tensor(entry, script) for entry in config.get("input", ())],
        outputs,
        rows,
        shares=rows > 1 and "dynamic_batching" in config,
        decoupled=bool(config.get("model_transaction_policy", {}).get("decoupled")),
        delay=int((config.get("dynamic_batching") or {}).get("max_queue_delay_microseconds", 0)) / 1e6,
        bf16_outputs=frozenset(tensor.name for tensor in outputs if tensor.datatype == "BF16"),
        reshaped_outputs={tensor.name: tensor for tensor in outputs if tensor.reshape is not None},
    )


def _tensor(entry: Dict[str, Any], script: str) -> ConfiguredTensor:
    kind = str(entry.get("data_type", "")).replace("TYPE_", "", 1)
    datatype = "BYTES" if kind == "STRING" else kind
    if datatype not in DATATYPES:
        about = (entry.get("name"), entry.get("data_type"))
        raise ScriptError("the tensor %s has the data_type %s, which is none" % about, script, fix="use TYPE_FP32, say")
    reshape = entry.get("reshape")
    return ConfiguredTensor(
        str(entry["name"]),
        datatype,
        [int(dim) for dim in entry.get("dims", ())],
        bool(entry.get("optional")),
        [int(dim) for dim in reshape.get("shape", ())] if reshape is not None else None,
    )


def array_of(tensor: ConfiguredTensor, value: Any) -> Any:
    """A JSON value as an array of a tensor's type, checked for kind and range. Raises ClientError."""
    import numpy

    if tensor.datatype == "BYTES":
        texts = numpy.array(value, dtype=object)
        if not all(isinstance(text, str) for text in texts.ravel()):
            raise ClientError("the input '%s' takes text, in lists of one length" % tensor.name)
        # Filled by hand: numpy makes bytes of one length of a list of bytes, and cuts off zeros at their ends.
        encoded: Any = numpy.empty(texts.size, object)
        encoded[:] = [text.encode("utf-8") for text in texts.ravel()]
        return encoded.reshape(texts.shape)
    try:
        array = numpy.asarray(value)
    except (ValueError, OverflowError):
        raise ClientError("the input '%s' is no whole array of numbers" % tensor.name) from None
    wanted = numpy.dtype(DATATYPES[tensor.datatype].numpy or "float32")
    if array.size and array.dtype.kind not in {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}[wanted.kind]:
        raise ClientError("the input '%s' takes %s (%s)" % (tensor.name, KINDS[wanted.kind], tensor.datatype))
    return _within(tensor, array, wanted)


def _within(tensor: ConfiguredTensor, array: Any, wanted: Any) -> Any:
    import numpy

    beyond: Optional[bool] = None
    if wanted.kind in "iu" and array.size:
        # Before the cast, which lets integers wrap around without a word.
        limits = numpy.iinfo(wanted)
        beyond = int(array.min()) < limits.min or int(array.max()) > limits.max
    with numpy.errstate(over="ignore"):
        result = array.astype(wanted)
    if wanted.kind == "f" and array.dtype.kind == "f":
        beyond = not numpy.array_equal(numpy.isinf(result), numpy.isinf(array))
    if beyond:
        raise ClientError("the input '%s' holds a number beyond %s" % (tensor.name, tensor.datatype))
    return result
