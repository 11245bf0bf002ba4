"""Results as the json module of Python writes them, blanks and escapes included, for platforms that used it.

`jsontext` writes compact text, faster. This module serves clients that compare bytes with those of the platform.
"""

from __future__ import annotations

import json
from math import hypot, isfinite
from typing import Any, Callable, Optional, Tuple

from panglot_worker.bodies import codec
from panglot_worker.bodies.jsondepth import too_deep
from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import EncodeError

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

NUMBERS = frozenset((int, float))
LISTS = frozenset((list,))
LARGE = 1e15
"""Floats from here on have an exponent sooner or later, and not the same."""
MANY_NUMBERS = 8
"""Lists of fewer numbers are written as quickly by the json module."""


Convert = Callable[[Any], Any]
"""One step towards JSON for a value that the json module does not know. Raises TypeError for one it does not take."""


class StandardJson:
    """Writes results with blanks after `:` and `,`, or with an indentation.

    Numpy values and tensors are written as numbers and lists; with `strict` they are a TypeError, as everything is
    that the json module does not know. `convert` takes other values than these, strict or not.
    """

    def __init__(
        self,
        limits: Limits,
        nan: str,
        strict: bool = False,
        ascii: bool = True,
        indent: Optional[int] = None,
        convert: Optional[Convert] = None,
    ) -> None:
        self.limits = limits
        self.nan = nan
        self.strict = strict
        self.convert = convert if convert is not None or strict else numbers
        self._json = json.JSONEncoder(
            ensure_ascii=ascii, allow_nan=nan == "platform", default=self.convert, indent=indent
        )
        self._quick = orjson is not None and indent is None

    def encode(self, value: Any) -> Tuple[bytes, str]:
        """The text, and a warning when NaN became null. Raises what the json module raises, and EncodeError."""
        body = _quick_text(value) if self._quick else b""
        warning = ""
        if not body:
            text, warning = self._careful(value)
            body = text.encode("utf-8")
        if len(body) > self.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.limits.output_bytes)
        if too_deep(body, self.limits.output_depth) >= 0:
            raise EncodeError("it is nested deeper than %d levels" % self.limits.output_depth)
        return body, warning

    def _careful(self, value: Any) -> Tuple[str, str]:
        """The text by the json module, and a warning."""
        try:
            return self._json.encode(value), ""
        except ValueError:
            if self.nan != "null":
                raise
            plain, replaced = Plain(self.convert, self.strict).without_nan(value)
            if not replaced:
                raise
            return self._json.encode(plain), "nan: %d values replaced by null" % replaced
        except TypeError:
            if self.strict:
                raise
            # The json module calls `default` for values and never for keys, so numpy keys are made plain here.
            return self._json.encode(Plain(self.convert, False).keys(value)), ""


def _quick_text(value: Any) -> bytes:
    """The text of lists of numbers, and of a dict of them, by orjson: what the json module writes, or empty."""
    if type(value) is list:
        return _numbers_text(value)
    if type(value) is not dict or not value or set(map(type, value)) != {str}:
        return b""
    parts = []
    for name, entry in value.items():
        text = _numbers_text(entry) if type(entry) is list else b""
        if not text or not name.isidentifier() or not name.isascii():
            return b""
        parts.append(b'"%s": %s' % (name.encode("ascii"), text))
    return b"{%s}" % b", ".join(parts)


def _numbers_text(value: Any) -> bytes:
    kinds = set(map(type, value))
    if kinds == LISTS:
        texts = list(map(_numbers_text, value))
        return b"[%s]" % b", ".join(texts) if all(texts) else b""
    if not kinds <= NUMBERS or len(value) < MANY_NUMBERS:
        return b""
    try:
        # One call proves all of them smaller; of infinity and NaN nothing is.
        if not hypot(*value) < LARGE:
            return b""
    except OverflowError:
        return b""
    text = orjson.dumps(value)
    # The json module writes exponents and very small numbers in another way.
    if b"e" in text or b"0.0000" in text:
        return b""
    return text.replace(b",", b", ")


def numbers(value: Any) -> Any:
    """The numbers of numpy values and tensors. Raises TypeError for everything else."""
    if hasattr(value, "tolist") or (hasattr(value, "dtype") and hasattr(value, "numpy")):
        return codec.convert(value)
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


class Plain:
    """Makes copies of results that the json module can write. Raises TypeError as that module would."""

    def __init__(self, convert: Optional[Convert], strict: bool) -> None:
        self.convert = convert
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
        if self.convert is None or isinstance(value, (str, int, type(None))):
            return value
        return self._finite(self.convert(value))

    def keys(self, value: Any) -> Any:
        """The value with numpy numbers as keys made plain."""
        if isinstance(value, dict):
            return {self._key(key): self.keys(item) for key, item in value.items()}
        return [self.keys(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _key(self, key: Any) -> Any:
        return key.item() if not self.strict and hasattr(key, "item") else key
