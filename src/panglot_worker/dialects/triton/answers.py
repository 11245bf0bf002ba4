"""Responses of a model as answers: tensors by name, JSON, or the error that one of them is."""

from __future__ import annotations

import base64
import json
from typing import Any, Dict, List

from panglot_worker.dialects.triton.configured import Configuration
from panglot_worker.errors import EncodeError
from panglot_worker.tensors import outputs
from panglot_worker.tensors.tensors import Tensor

STATUSES = {1: 500, 2: 404, 3: 400, 4: 503, 5: 501}
"""By the code of a TritonError; any other is 400, as Triton has it."""
CODES = {0: "unknown", 6: "already_exists", 7: "cancelled"}
"""By the code of a TritonError: errors that gRPC has a status for, and HTTP has not."""
SIGNED = 1 << 63
"""Integers of parameters go from -SIGNED, as int64, to 2 * SIGNED - 1, as uint64."""


class ModelRefusal(Exception):
    """A response that is an error: the model's own words for its client."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.answer_status = STATUSES.get(code, 400)
        self.code = CODES.get(code, "script_error")


class WrongResponse(Exception):
    """A model answered with something else than responses."""


def checked(response: Any) -> Any:
    """The response, if it has outputs. Raises ModelRefusal for an error, WrongResponse for what is no response."""
    if isinstance(response, Exception):
        raise response
    if not hasattr(response, "output_tensors"):
        raise WrongResponse(
            "execute must return an InferenceResponse for each request, not %s" % type(response).__name__
        )
    if response.has_error():
        raise ModelRefusal(response.error().message(), response.error().code())
    return response


def tensors(response: Any, about: Configuration, module: Any) -> List[Tensor]:
    """The outputs of a response as tensors. Raises EncodeError for what the protocol has no type for."""
    return [_tensor(output, about, module) for output in response.output_tensors()]


def parameters(response: Any) -> Dict[str, Any]:
    """The parameters of a response. Raises EncodeError for what the protocol has no form for."""
    if not response._parameters:
        return {}
    given: Dict[str, Any] = json.loads(response.parameters())
    for name, value in given.items():
        if not isinstance(value, (bool, int, float, str)) or (type(value) is int and not -SIGNED <= value < 2 * SIGNED):
            raise EncodeError("the parameter %s is %.40r; they are true or false, numbers and texts" % (name, value))
    return given


def is_last(response: Any) -> bool:
    """Whether a decoupled model said that it sends no more."""
    last: bool = response._last
    return last


def _tensor(output: Any, about: Configuration, module: Any) -> Tensor:
    name = output.name()
    array = about.for_client(name, output.as_numpy())
    return tensor_of(name, array, name in about.bf16_outputs or output._is_bf16, module)


def tensor_of(name: str, array: Any, is_bf16: bool, module: Any) -> Tensor:
    """An array as a tensor. Raises EncodeError for what the protocol has no type for."""
    if is_bf16:
        bits = module.bf16_bits(array)
        return Tensor(name, "BF16", bits.shape, memoryview(bits.ravel().view("u1")) if bits.size else b"")
    tensor = outputs.from_array(name, array)
    if tensor is None and array.dtype == object:
        # As Triton does: an element that is no text is sent as its text.
        texts = [item if isinstance(item, bytes) else str(item).encode("utf-8", "replace") for item in array.ravel()]
        return Tensor(name, "BYTES", array.shape, texts)
    if tensor is None:
        raise EncodeError("%s is an array of %s, for which there is no type" % (name, array.dtype))
    return tensor


def as_json(response: Any, about: Configuration) -> Dict[str, Any]:
    """The outputs of a response as JSON has them: text as text, other bytes in base64. Raises EncodeError."""
    outputs = response.output_tensors()
    return {output.name(): _plain(about.for_client(output.name(), output.as_numpy())) for output in outputs}


def _plain(array: Any) -> Any:
    return array if array.dtype.kind not in "OS" else text_of(array.tolist())


def text_of(value: Any) -> Any:
    """Bytes as text, or in base64; also in lists."""
    if isinstance(value, list):
        return [text_of(part) for part in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")
