"""Results as the json module of Python writes them, blanks and escapes included, for platforms that used it.

`jsontext` writes compact text, faster; what is here is for clients that compare bytes with those of the platform.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Optional, Tuple

from panglot_worker.bodies import codec
from panglot_worker.bodies.jsondepth import too_deep
from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import EncodeError


class StandardJson:
    """Writes results with blanks after `:` and `,`, or with an indentation.

    Numpy values and tensors are written as numbers and lists; with `strict` they are a TypeError, as everything is
    that the json module does not know.
    """

    def __init__(
        self, limits: Limits, nan: str, strict: bool = False, ascii: bool = True, indent: Optional[int] = None
    ) -> None:
        self.limits = limits
        self.nan = nan
        self.strict = strict
        default = None if strict else numbers
        self._json = json.JSONEncoder(ensure_ascii=ascii, allow_nan=nan == "platform", default=default, indent=indent)

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
