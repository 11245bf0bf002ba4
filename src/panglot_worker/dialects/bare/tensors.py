"""Tensors of the Open Inference Protocol for a model file: its own inputs and outputs, without a way around."""

from __future__ import annotations

from typing import Any, List, NamedTuple

from panglot_worker.bodies.magic import media_type
from panglot_worker.dialects.bare import numbers
from panglot_worker.dialects.bare.requests import InputReader, joined_pictures, same_rows
from panglot_worker.dialects.base import Request, TensorStages
from panglot_worker.errors import ClientError, EncodeError
from panglot_worker.runtimes.base import FREE, Arrays, ModelRuntime, ModelTensor
from panglot_worker.runtimes.onnx.session import upper_halves
from panglot_worker.runtimes.rows import Feed
from panglot_worker.tensors import outputs
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor, TensorSpec

LABELS = ".labels"
"""Added to the name of an output, it names the output with the labels of its columns."""


class TensorTaker(NamedTuple):
    """Reads tensors as the inputs of a model, and writes its outputs as tensors."""

    model: ModelRuntime
    reader: InputReader

    def stages(self, rows: bool) -> TensorStages:
        """What the tensor adapter needs; `rows`: whether requests share runs."""
        given = [_spec(spec) for spec in self.model.outputs]
        labels = [
            TensorSpec(name + LABELS, "BYTES", (len(self.model.labels(name)) or FREE,))
            for name in sorted(self.model.labelled)
        ]
        takes_others = self.model.casts or self.model.any_name
        return TensorStages(
            self.decode, self.encode, [_spec(spec) for spec in self.model.inputs], [*given, *labels],
            platform=self.model.platform, rows=rows, takes_bodies=False,
            needs=None if takes_others else [spec.name for spec in self.model.inputs],
        )  # fmt: skip

    def decode(self, infer: Infer, request: Request) -> Feed:
        """The inputs, and which outputs are to be computed. Raises ClientError."""
        return Feed(self._arrays(infer), self._wanted(infer))

    def _wanted(self, infer: Infer) -> Any:
        known = [spec.name for spec in self.model.outputs]
        names = [spec.name for spec in infer.wishes.wanted]
        sources = [name[: -len(LABELS)] if name.endswith(LABELS) else name for name in names]
        for name, source in zip(names, sources):
            if source not in known:
                raise ClientError("there is no output '%s'; there is %s" % (name[:80], ", ".join(known)))
        return tuple(dict.fromkeys(sources or known))

    def _arrays(self, infer: Infer) -> Arrays:
        sent, inputs = infer.inputs, self.reader.inputs
        if len(sent) == len(inputs) == 1:
            (tensor,) = sent.values()
            if tensor.name == inputs[0].name or self.model.any_name:
                return {inputs[0].name: self._array(inputs[0], tensor)}
            if tensor.datatype == "BYTES" and len(tensor.data) == 1:
                return self.reader.decode(media_type(tensor.data[0]), tensor.data[0])
        known = {spec.name: spec for spec in inputs}
        for name in sent:
            if name not in known:
                raise ClientError("there is no input '%s'; there is %s" % (name[:80], ", ".join(known)))
        for name in known:
            if name not in sent:
                raise ClientError("the input '%s' is missing" % name)
        return same_rows(inputs, {name: self._array(spec, sent[name]) for name, spec in known.items()})

    def _array(self, spec: ModelTensor, tensor: Tensor) -> Any:
        if spec.sequence:
            raise ClientError("the input '%s' is a sequence, which only JSON on the model's own route has" % spec.name)
        if tensor.datatype == "BYTES":
            return self._of_bytes(spec, tensor)
        if tensor.datatype != spec.datatype and not self.model.casts:
            raise ClientError("the input '%s' is %s, not %s" % (spec.name, spec.datatype, tensor.datatype))
        return numbers.fitted(spec, numbers.converted(spec, tensor.array()))

    def _of_bytes(self, spec: ModelTensor, tensor: Tensor) -> Any:
        """Text where the model takes it; encoded pictures where it takes those; else the whole native body."""
        picture = self.reader.pictures.get(spec.name)
        if spec.datatype == "BYTES":
            return numbers.fitted(spec, _texts(spec, tensor))
        if picture is not None and tensor.data:
            return joined_pictures([picture.array(content) for content in tensor.data], spec)
        if len(tensor.data) == 1 and len(self.reader.inputs) == 1:
            return self.reader.decode(media_type(tensor.data[0]), tensor.data[0])[spec.name]
        raise ClientError("the input '%s' is %s, not BYTES" % (spec.name, spec.datatype))

    def encode(self, output: Arrays, request: Request) -> List[Tensor]:
        """The outputs as tensors, and their labels. Raises EncodeError for what the protocol has no form for."""
        datatypes = {spec.name: spec.datatype for spec in self.model.outputs}
        made = [_tensor(name, value, datatypes.get(name, "")) for name, value in output.items()]
        return [*made, *(_labels(name, self.model.labels(name)) for name in output if name in self.model.labelled)]


def _spec(spec: ModelTensor) -> TensorSpec:
    return TensorSpec(spec.name, spec.datatype, list(spec.shape) if spec.shape is not None else [FREE])


def _texts(spec: ModelTensor, tensor: Tensor) -> Any:
    import numpy

    try:
        texts = [str(element, "utf-8") for element in tensor.data]
    except UnicodeDecodeError:
        raise ClientError("the input '%s' holds text that is not UTF-8" % spec.name) from None
    made: Any = numpy.empty(len(texts), object)
    made[:] = texts
    return made.reshape(tensor.shape)


def _tensor(name: str, value: Any, datatype: str) -> Tensor:
    import numpy

    if isinstance(value, list):
        if not value or len({(part.shape, str(part.dtype)) for part in value}) > 1:
            raise EncodeError("%s is a sequence of unequal arrays, which only JSON on the model's route has" % name)
        value = numpy.stack(value)
    if datatype == "BF16":
        halves = numpy.ascontiguousarray(upper_halves(value)).reshape(-1)
        data: Any = memoryview(halves.view("u1")) if halves.size else b""
        return Tensor(name, "BF16", tuple(value.shape), data)
    made = outputs.from_array(name, value)
    if made is None:
        raise EncodeError("%s is an array of %s, for which the protocol has no type" % (name, value.dtype))
    return made


def _labels(name: str, labels: List[str]) -> Tensor:
    return Tensor(name + LABELS, "BYTES", (len(labels),), [label.encode("utf-8", "replace") for label in labels])
