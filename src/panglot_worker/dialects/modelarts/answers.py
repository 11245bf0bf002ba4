"""The platform's answers: results by the plain json module, and its error bodies."""

from __future__ import annotations

import html
import json
from http import HTTPStatus
from math import isfinite
from typing import Any, Dict, Tuple

from panglot_worker.bodies import codec
from panglot_worker.bodies.jsondepth import too_deep
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.base import Answer
from panglot_worker.errors import EncodeError

JSON = "application/json"


class Encoder:
    """Results to JSON text, with blanks after `:` and `,` as the platform wrote it.

    Numpy values and tensors are written as numbers and lists; with `strict` they are a TypeError, as everything is
    that the json module does not know.
    """

    def __init__(self, limits: Limits, nan: str, strict: bool, ascii: bool) -> None:
        self.limits = limits
        self.nan = nan
        self.strict = strict
        default = None if strict else numbers
        self._json = json.JSONEncoder(ensure_ascii=ascii, allow_nan=nan == "platform", default=default)

    def encode(self, value: Any) -> Tuple[bytes, str]:
        """The text, and a warning when NaN became null. Raises what the json module raises, and EncodeError."""
        warning = ""
        try:
            text = self._json.encode(value)
        except ValueError:
            if self.nan != "null":
                raise
            plain, replaced = Plain(self.strict).without_nan(value)
            if not replaced:
                raise
            warning = "nan: %d values replaced by null" % replaced
            text = self._json.encode(plain)
        except TypeError:
            if self.strict:
                raise
            text = self._json.encode(Plain(False).keys(value))
        body = text.encode("utf-8")
        if len(body) > self.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.limits.output_bytes)
        if too_deep(body, self.limits.output_depth) >= 0:
            raise EncodeError("it is nested deeper than %d levels" % self.limits.output_depth)
        return body, warning


def numbers(value: Any) -> Any:
    """The numbers of numpy values and tensors. Raises TypeError for everything else."""
    if hasattr(value, "tolist") or (hasattr(value, "dtype") and hasattr(value, "numpy")):
        return codec.convert(value)
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


class Plain:
    """Copies of results that the json module takes. Raises TypeError as it would."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.replaced = 0

    def without_nan(self, value: Any) -> Tuple[Any, int]:
        """The value with null for NaN and Infinity, and how many there were."""
        self.replaced = 0
        return self._finite(value), self.replaced

    def _finite(self, value: Any) -> Any:
        if isinstance(value, float):
            self.replaced += not isfinite(value)
            return value if isfinite(value) else None
        if isinstance(value, dict):
            return {self._key(key): self._finite(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._finite(item) for item in value]
        if self.strict or isinstance(value, (str, int, type(None))):
            return value
        return self._finite(numbers(value))

    def keys(self, value: Any) -> Any:
        """The value with numpy numbers as keys made plain."""
        if isinstance(value, dict):
            return {self._key(key): self.keys(item) for key, item in value.items()}
        return [self.keys(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _key(self, key: Any) -> Any:
        return key.item() if not self.strict and hasattr(key, "item") else key


def page(status: int, sentence: str) -> Answer:
    """The page of the web framework."""
    phrase = HTTPStatus(status).phrase
    words = (status, phrase, phrase, html.escape(sentence))
    text = "<!doctype html>\n<title>%d %s</title>\n<h1>%s</h1>\n<p>%s</p>\n" % words
    return Answer("text/html", text.encode("utf-8"), status)


def parsed_error(code: str, status: int) -> Answer:
    """MR.0101 and MR.0105, of the engines whose requests are parsed for the script."""
    message = {"MR.0101": "The input parameter is invalid", "MR.0105": "Recognition failed"}[code]
    return _json({"erno": code, "msg": message, "words_result": {}}, status)


def raw_error(code: str, status: int, info: str) -> Answer:
    """PY.0101 and PY.0105, of the engines whose scripts get the body as bytes."""
    message = {"PY.0101": "The input data is invalid", "PY.0105": "Predict failed"}[code]
    return _json({"erno": code, "msg": message, "error_info": info}, status)


def _json(value: Dict[str, Any], status: int) -> Answer:
    return Answer(JSON, json.dumps(value).encode("ascii"), status)


def with_reason(answer: Answer, reason: str) -> Answer:
    """The answer with a header that says why, for development."""
    text = reason.encode("ascii", "backslashreplace").decode("ascii")
    shown = "".join(letter if letter.isprintable() else " " for letter in text).encode("ascii", "backslashreplace")
    return answer._replace(headers=("x-panglot-error: " + " ".join(shown.decode("ascii").split())[:1000],))
