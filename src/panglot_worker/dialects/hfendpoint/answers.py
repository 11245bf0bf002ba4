"""From a handler's result to the answer: JSON as orjson writes it, or a picture where Accept names one."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import io
import json
import sys
from typing import Any, Tuple

from panglot_worker.bodies import codec, jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.base import Answer, warned
from panglot_worker.dialects.hfendpoint.requests import PICTURES, SOUNDS
from panglot_worker.errors import ClientError, EncodeError

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

JSON = "application/json"
NEVER = ("text/csv", "text/plain", *SOUNDS)
"""Types that the platform knows and cannot write."""
FORMATS = {"JPG": "JPEG", "X-IMAGE": "PNG"}
"""Formats of Pillow for types whose own name is none."""


class Writer:
    """Writes answers. With `strict`, of the platform's types; else also of arrays of all frameworks, bytes and more."""

    def __init__(self, limits: Limits, nan: str, strict: bool) -> None:
        self.limits = limits
        self.nan = nan
        self.convert = convert if strict else codec.convert
        self.strict = strict

    def write(self, value: Any, accept: bytes) -> Answer:
        """The answer, in a type that Accept allows. Raises ClientError, EncodeError, and what Pillow raises."""
        if accept not in (b"", b"*/*", b"application/json"):
            kind, picture = _chosen(accept.decode("latin-1"))
            if picture:
                return Answer(kind, self._picture(value, kind))
        else:
            kind = JSON
        body, warning = self.json(value)
        return Answer(kind, body, 200, warned(warning))

    def json(self, value: Any) -> Tuple[bytes, str]:
        """The text of a value, and a warning. Raises EncodeError."""
        limits = self.limits
        return jsontext.dumps(value, self.convert, self.nan, limits.output_depth, limits.output_bytes, self.strict)

    def _picture(self, value: Any, kind: str) -> bytes:
        pillow = sys.modules.get("PIL.Image")
        if pillow is None or not isinstance(value, pillow.Image):
            raise ClientError("Can only serialize PIL.Image.Image, got %s" % type(value))
        name = kind.partition("/")[2].upper()
        body = _saved(value, FORMATS.get(name, name))
        if len(body) > self.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.limits.output_bytes)
        return body


def _chosen(accept: str) -> Tuple[str, bool]:
    """The content type of the answer, and whether that is a picture's. Raises ClientError.

    A client that accepts several types gets JSON, unless all of them are pictures.
    """
    kinds = [choice.partition(";")[0].strip().lower() for choice in accept.split(",")]
    if all(kind in PICTURES for kind in kinds):
        return kinds[0], True
    if len(kinds) == 1 and kinds[0] in NEVER:
        raise ClientError('Accept type "%s" not supported: answers are JSON or images' % kinds[0])
    return (accept if accept == "application/json; charset=UTF-8" else JSON), False


def _saved(image: Any, name: str) -> bytes:
    out = io.BytesIO()
    image.save(out, name)
    return out.getvalue()


def compact(value: Any) -> bytes:
    """Small JSON without blanks, such as an error."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# Values


def convert(value: Any) -> Any:
    """One step towards JSON, for the types that orjson writes; pictures are PNG in base64. Raises TypeError."""
    if isinstance(value, enum.Enum):
        return value.value
    if getattr(type(value), "__module__", "") == "numpy":
        return _from_numpy(value)
    if isinstance(value, (str, int, dict, list)):
        return codec.as_json_has_it(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return {name: getattr(value, name) for name in names}
    uuid = sys.modules.get("uuid")
    if uuid is not None and isinstance(value, uuid.UUID):
        return str(value)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        return base64.b64encode(_saved(value, "PNG")).decode("ascii")
    raise TypeError("Type is not JSON serializable: %s" % type(value).__name__)


def _from_numpy(value: Any) -> Any:
    """The values of an array or scalar; a float32 has the digits of its own precision, as orjson writes it."""
    dtype: Any = getattr(value, "dtype", None)
    kind = getattr(dtype, "kind", "")
    if kind in "biu" and kind:
        return value.tolist()
    if kind == "f":
        return value.tolist() if dtype.itemsize == 8 else _short(value)
    if kind == "M":
        return value.astype("M8[us]").tolist()
    raise TypeError("Type is not JSON serializable: numpy.%s" % type(value).__name__)


def _short(value: Any) -> Any:
    """Floats of less than double precision as the doubles that have the same shortest digits."""
    single: Any = value.astype("f4")
    if orjson is not None and single.ndim and single.flags.c_contiguous:
        text = orjson.dumps(single, option=orjson.OPT_SERIALIZE_NUMPY)
        # orjson writes NaN as null, which must reach the rule for NaN as a float.
        if b"null" not in text:
            return orjson.loads(text)
    return single.astype("U32").astype("f8").tolist()
