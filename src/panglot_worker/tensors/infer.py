"""One request with tensors, and how its client wants the answer."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from panglot_worker.errors import ClientError
from panglot_worker.tensors.tensors import Tensor

REST, GRPC, STREAM = b"rest", b"grpc", b"stream"
GENERATE, GENERATE_STREAM = b"generate", b"generate_stream"
"""The forms a request comes in, as `wire.Head.form` says them; STREAM is gRPC that takes answers in parts."""
SHARED_MEMORY = "shared_memory_region"


class WantedOutput(NamedTuple):
    """An output that a client names. `binary` is None where it does not say how it wants it."""

    name: str
    binary: Optional[bool] = None


class Wishes(NamedTuple):
    """How the client wants its answer. It travels with the item where stages run in several processes."""

    form: bytes
    model: str
    version: str
    id: str = ""
    wanted: Tuple[WantedOutput, ...] = ()
    binary: bool = False
    """Whether outputs come back as bytes, unless the request says otherwise for one."""
    coding: str = ""
    """How the answer is compressed."""
    end: bool = False
    """Whether the end of an answer in parts is an answer without outputs, where no part was marked as the last."""
    carried: Any = None
    """For a model in a chain: the data that its worker passes on, see `handing`."""


class Infer(NamedTuple):
    """A whole request."""

    wishes: Wishes
    inputs: Dict[str, Tensor]
    parameters: Dict[str, Any]


def gathered(inputs: List[Tensor]) -> Dict[str, Tensor]:
    """The inputs by name. Raises ClientError when there are two of a name."""
    by_name = {tensor.name: tensor for tensor in inputs}
    if len(inputs) == 1:
        return by_name
    if len(by_name) != len(inputs):
        twice = next(
            tensor.name for at, tensor in enumerate(inputs) if tensor.name in {two.name for two in inputs[:at]}
        )
        raise ClientError("the input '%s' is there twice" % twice)
    return by_name


def refuse_unsupported(parameters: Dict[str, Any], what: str) -> None:
    """Raises ClientError for parameters of a tensor that this server does not support."""
    if SHARED_MEMORY in parameters:
        raise ClientError("%s names shared memory, which this server does not use: send the tensor itself" % what)
    if "classification" in parameters:
        raise ClientError("%s asks for classification, which this server does not do: sort the output" % what)


def unfolded(tensor: Tensor, parameters: Dict[str, Any]) -> Tensor:
    """The tensor, with BYTES that are said to be in base64 decoded: how MLServer's clients put pictures into JSON."""
    if parameters.get("content_type") != "base64" or tensor.datatype != "BYTES":
        return tensor
    return tensor._replace(data=[_from_base64(element) for element in tensor.data])


def _from_base64(element: bytes) -> bytes:
    """The decoded element; one that is no base64 stays as it is, as in MLServer."""
    try:
        return base64.b64decode(element, validate=True)
    except binascii.Error:
        return element


def check_wanted(wanted: Sequence[WantedOutput]) -> Tuple[WantedOutput, ...]:
    """The outputs a client names. Raises ClientError when one is there twice."""
    if len({output.name for output in wanted}) != len(wanted):
        raise ClientError("an output is named twice")
    return tuple(wanted)


def chosen(outputs: List[Tensor], wanted: Sequence[WantedOutput]) -> List[Tensor]:
    """The requested outputs, in the order of the request; all where it names none. Raises ClientError."""
    if not wanted:
        return outputs
    there = {output.name: output for output in outputs}
    for output in wanted:
        if output.name not in there:
            raise ClientError("there is no output '%s'; there is %s" % (output.name[:80], ", ".join(there) or "none"))
    return [there[output.name] for output in wanted]
