"""JSON in and out, and failures, in the words of the platform's server."""

from __future__ import annotations

import codecs
import enum
import json
from typing import Any, Tuple

from panglot_worker import errors
from panglot_worker.bodies import codec, jsontext
from panglot_worker.bodies.codec import Body, Limits
from panglot_worker.dialects.base import Problem
from panglot_worker.errors import ClientError, EncodeError

JSON = "application/json"
PLAIN = "text/plain; charset=utf-8"
NO_DATA = b"no data provided"
INTERNAL = "inference internal error"
TOO_LARGE = "request body is too large"

ERRORS = {
    "DecodingError": (400, "decoding error"),
    "ClientError": (400, "bad request"),
    "ValidationError": (422, "request validation error"),
    "EncodingError": (500, "encoding error"),
    "ServerError": (500, "internal error"),
    "MosecError": (500, "mosec error"),
}
"""Status and text of the exceptions of `mosec.errors`, by class name."""


class NoData(ClientError):
    """The body is empty: answered without the script."""

    def __init__(self) -> None:
        super().__init__(NO_DATA.decode())


def decode(body: Body, limits: Limits) -> Any:
    """The JSON value of a body, in UTF-8, UTF-16 or UTF-32. Raises ClientError."""
    if len(body) > limits.json_bytes:
        raise ClientError(TOO_LARGE, 413)
    start = bytes(body[:4])
    # The platform's json module takes these encodings too; our parser takes UTF-8 without a mark alone.
    if start[:1] == b"\xef" or start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or b"\0" in start:
        body = _as_utf8(bytes(body))
    return jsontext.loads(body, limits.json_depth)


def _as_utf8(body: bytes) -> bytes:
    encoding = json.detect_encoding(body)
    try:
        return body.decode(encoding).encode("utf-8")
    except UnicodeError as error:
        raise ClientError("the body is not %s: %s" % (encoding, error)) from None


def encode(value: Any, limits: Limits, nan: str, strict: bool = True) -> Tuple[bytes, str]:
    """The JSON of a result, and a warning. Raises EncodeError for what the json module would not write.

    When not strict, arrays, tensors, bytes and more are written too, as in the plain dialect.
    """
    return jsontext.dumps(value, convert if strict else codec.convert, nan, limits.output_depth, limits.output_bytes)


def convert(value: Any) -> Any:
    """One step towards JSON for subclasses of what JSON has; arrays, tensors, bytes and sets are not among them."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, codec.JSON_HAS):
        return codec.as_json_has_it(value)
    if type(value).__name__ == "UUID":
        return str(value)
    raise TypeError("JSON cannot hold a value of type %s" % type(value).__name__)


def problem(error: BaseException, stage: str) -> Problem:
    """The status and the text that an exception of a script is answered with."""
    said = errors.message_of(error)
    # By their names: these classes are those of the real mosec, or of the one in `platform`.
    for kind in type(error).__mro__:
        if kind.__module__ == "mosec.errors" and kind.__name__ in ERRORS:
            status, words = ERRORS[kind.__name__]
            return Problem(status, "script_error", "%s: %s" % (getattr(error, "msg", words), said or words))
    if isinstance(error, EncodeError):
        return Problem(500, "bad_result", "encoding error: encoding error")
    own = getattr(error, "status", None)
    if type(own) is int and 400 <= own <= 499:
        words = "decoding error: " if stage == "decode" and own == 400 else ""
        return Problem(own, "bad_request", words + said)
    return Problem(500, "script_error", INTERNAL)
