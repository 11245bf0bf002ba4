"""The platform's answers: results as JSON or as raw bytes, codes as statuses."""

from __future__ import annotations

import json
import operator
from typing import Any, Dict, List, Sequence

from panglot_worker.bodies import codec, jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.base import Answer, warned
from panglot_worker.dialects.evals.failures import WrongShape
from panglot_worker.line import wire

JSON, OCTETS = "application/json", "application/octet-stream"
KNOWN = (0, 200, 400, 424, 500, 599)
"""The codes the original let through; every other one became 500."""
RETRY_AFTER = "retry-after: 1"


def known_code(code: int, strict: bool) -> int:
    """The code for clients; with `strict`, one of the codes that the original let through."""
    if strict:
        return code if code in KNOWN else 500
    return code if code == 0 or 200 <= code <= 299 or 400 <= code <= 599 else 500


def status_of(code: int) -> int:
    return 200 if code < 300 else code


def may_be_retried(code: int) -> bool:
    return 570 <= code <= 579


class Ret:
    """One result of a script, checked. Raises WrongShape."""

    def __init__(self, given: Any, strict_codes: bool) -> None:
        if not isinstance(given, dict):
            raise WrongShape("a result must be a dict, not %s" % type(given).__name__)
        self.code = known_code(_code(given.get("code", 0)), strict_codes)
        self.message = _text(given.get("message", ""))
        self.result = given.get("result", {})
        self.body = _bytes(given.get("body", b""))

    @property
    def good(self) -> bool:
        return self.code < 300

    def as_json(self) -> Dict[str, Any]:
        value = {"code": self.code, "message": self.message}
        return value if self.result is None else {**value, "result": self.result}


def _code(code: Any) -> int:
    try:
        if isinstance(code, bool):
            raise TypeError
        return operator.index(code)
    except TypeError:
        raise WrongShape("the code of a result must be a whole number, not %r" % (code,)) from None


def _text(message: Any) -> str:
    if isinstance(message, bytes):
        return message.decode("utf-8", "replace")
    if not isinstance(message, str):
        raise WrongShape("the message of a result must be text, not %r" % (message,))
    return message


def _bytes(body: Any) -> bytes:
    if isinstance(body, str):
        return body.encode("utf-8")
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    if body is None:
        return b""
    raise WrongShape("the body of a result must be bytes, not %s" % type(body).__name__)


class Encoder:
    """Writes results as JSON. With `strict`, types that the platform's json module did not know are errors here too."""

    def __init__(self, limits: Limits, nan: str, strict: bool) -> None:
        self.limits = limits
        self.nan = nan
        self.strict = strict

    def single(self, ret: Ret) -> Answer:
        if not ret.good:
            return error(ret.code, ret.message)
        if ret.body:
            return Answer(OCTETS, ret.body)
        return self._json(ret.as_json())

    def group(self, ret: Ret) -> Answer:
        """Always 200, whatever the code."""
        return self._json(ret.as_json())

    def batch(self, rets: Sequence[Ret]) -> Answer:
        values: List[Any] = [ret.as_json() for ret in rets]
        return self._json(values) if values else Answer("", b"")

    def _json(self, value: Any) -> Answer:
        limits = self.limits
        body, warning = jsontext.dumps(value, self._convert, self.nan, limits.output_depth, limits.output_bytes)
        return Answer(JSON, body, 200, warned(warning))

    def _convert(self, value: Any) -> Any:
        if isinstance(value, (bytes, bytearray)):
            # Text of Python 2 was bytes.
            try:
                return bytes(value).decode("utf-8")
            except UnicodeDecodeError as error:
                raise TypeError(str(error)) from None
        # The platform's json module wrote two types of numpy: float64 is a float, and in Python 2 int64 was an int.
        if self.strict and hasattr(value, "dtype") and not isinstance(value, float):
            if getattr(value, "shape", None) == () and str(value.dtype) == "int64":
                return int(value)
            raise TypeError("%r is not JSON serializable" % type(value).__name__)
        return codec.convert(value)


def error(code: int, message: str) -> Answer:
    """A failure: its code is the status."""
    body = json.dumps({"error": message}, ensure_ascii=False).encode("utf-8", "replace")
    if may_be_retried(code):
        return Answer(JSON, body, code, (RETRY_AFTER,), wire.RETRY)
    return Answer(JSON, body, status_of(code))
