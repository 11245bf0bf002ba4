"""From a request body to what a script gets, and from what it returns to a response body.

The text formats live in `jsontext` and `multipart`; this file knows media types and the objects of Python,
numpy, the frameworks and PIL. None of these is imported here: an object can only be there if its library is.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import io
import os
import re
import sys
import weakref
from typing import Any, Mapping, NamedTuple, Tuple
from urllib.parse import unquote_to_bytes

from panglot_worker.bodies import accepting, jsontext, multipart
from panglot_worker.bodies.jsontext import Body
from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import ClientError, EncodeError

__all__ = ["Body", "EncodeError", "Encoded", "File", "Limits", "convert", "decode", "encode"]

JSON = "application/json"
OCTETS = "application/octet-stream"

_bytes = bytes
JSON_HAS = (str, int, float, dict, list, tuple)
OPAQUE = frozenset((OCTETS, "image/jpeg", "image/png", "image/webp", "audio/wav", "video/mp4"))
"""Common types that need no further look: a body of them is a File."""
ALWAYS_JSON = frozenset((dict, list, str, int, float, bool, type(None)))
"""Types whose values are answered as JSON, whatever they hold."""
_DEFAULT = Limits()
_BLANK = b" \t\r\n"
_SCALAR_START = frozenset(b'"-0123456789tfn')
_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTENT_TYPE = re.compile(r"[!-~]+/[ -~]+")
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
_JPEG_MODES = ("L", "RGB", "CMYK")


class File:
    """An uploaded file, or a body that is neither JSON nor a form.

    `name` is the file name that the client sent, or "" for a body: never use it as a path. `type` is the media type
    without parameters.
    """

    __slots__ = ("__weakref__", "_body", "name", "type")

    def __init__(self, name: str, type: str, bytes: Body) -> None:
        self.name = name
        self.type = type
        self._body = bytes

    @property
    def bytes(self) -> bytes:
        """The bytes of the file. For a large body this is a copy, made at the first access."""
        body = self._body
        if not isinstance(body, _bytes):
            body = self._body = _bytes(body)
        return body

    @bytes.setter
    def bytes(self, value: Body) -> None:
        self._body = value

    @property
    def view(self) -> memoryview:
        """The same without a copy, to be read only: for `numpy.frombuffer` and the like."""
        return memoryview(self._body).toreadonly()

    def retain(self) -> None:
        """Copy the bytes of the file, because the memory behind them will be used again."""
        self._body = self.bytes

    def __len__(self) -> int:
        return len(self._body)

    # With `__len__` alone, an empty file would be false, and `if file:` would take it for a missing one.
    def __bool__(self) -> bool:
        return True

    def __bytes__(self) -> _bytes:
        return self.bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return File, (self.name, self.type, self.bytes)

    def __repr__(self) -> str:
        return f"File(name={self.name!r}, type={self.type!r}, {len(self._body)} bytes)"


class Encoded(NamedTuple):
    """A response body. `warning` is "" or says what was changed, for a response header."""

    content_type: str
    body: bytes
    warning: str = ""


def decode(content_type: str, body: Body, limits: Limits = _DEFAULT, views: list[Any] | None = None) -> Any:
    """What the script gets for a request body, by its Content-Type.

    - JSON (`application/json`, `*/*+json`): the value, see `jsontext.loads`. Without a Content-Type a body
      that looks like JSON is JSON.
    - `multipart/form-data`: a dict of str and File; a field sent more than once is a list, in order.
    - `application/x-www-form-urlencoded`: a dict of str, lists likewise. A body that starts with a brace or
      a bracket is JSON, because that is what `curl -d '{"a": 1}'` sends under this type.
    - anything else: a File without a name.

    `views` is given where the body stays in place during the call. A File then copies its bytes only when they are used
    first. It is noted in `views`, weakly, so that `Request.release` can copy it before the memory is used again.

    Raises ClientError 400 for malformed bodies, 413 beyond a limit, 415 for JSON that is not UTF-8.
    """
    if content_type == JSON:
        return _decode_json(body, limits)
    if content_type in OPAQUE:
        return _file("", content_type, body, views)
    return decode_noting_form(content_type, body, limits, views)[0]


def decode_noting_form(
    content_type: str, body: Body, limits: Limits = _DEFAULT, views: list[Any] | None = None
) -> Tuple[Any, bool]:
    """The value that `decode` gives, and whether it holds the fields of a form: texts and Files."""
    if content_type == JSON:
        return _decode_json(body, limits), False
    if not content_type:
        return _decode_untyped(body, limits, views), False
    media, parameters = multipart.parse_header(content_type)
    if "/" not in media:
        raise ClientError(f"the Content-Type {media[:80]!r} is not a media type")
    if media == JSON or media.endswith("+json"):
        charset = parameters.get("charset", "utf-8").lower()
        if charset not in ("utf-8", "utf8"):
            raise ClientError(f"JSON must be UTF-8, not {charset[:40]!r}", 415)
        return _decode_json(body, limits), False
    if media == "multipart/form-data":
        parts = multipart.parse(content_type, body, limits)
        return _gather([(part.name, _field(part, views)) for part in parts]), True
    if media == "application/x-www-form-urlencoded":
        if bytes(body[:64]).lstrip(_BLANK)[:1] in (b"{", b"["):
            return _decode_json(body, limits), False
        return query_fields(bytes(body), limits), True
    return _file("", media, body, views), False


def query_fields(text: bytes, limits: Limits = _DEFAULT) -> dict[str, Any]:
    """The fields of a query string, or of a form that is written like one; one that comes twice is a list."""
    return _gather(_urlencoded(text, limits))


def _file(name: str, media: str, body: Body, views: list[Any] | None) -> File:
    if views is None:
        return File(name, media, bytes(body))
    file = File(name, media, body)
    views.append(weakref.ref(file))
    return file


def _decode_json(body: Body, limits: Limits) -> Any:
    if len(body) > limits.json_bytes:
        raise ClientError(f"the JSON body is larger than max_json, {limits.json_bytes} bytes", 413)
    return jsontext.loads(body, limits.json_depth)


def _decode_untyped(body: Body, limits: Limits, views: list[Any] | None) -> Any:
    start = bytes(body[:64]).lstrip(_BLANK)[:1]
    if start in (b"", b"{", b"["):
        return _decode_json(body, limits)
    if start[0] in _SCALAR_START:
        try:
            return _decode_json(body, limits)
        except ClientError:
            pass  # it only looked like JSON
    return _file("", OCTETS, body, views)


def _field(part: multipart.FormPart, views: list[Any] | None) -> str | File:
    if part.filename is not None:
        media = multipart.parse_header(part.content_type)[0] if part.content_type else OCTETS
        return _file(part.filename, media, part.data, views)
    try:
        return str(part.data, "utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} of text field {part.name!r}"
        raise ClientError(f"{where} is not UTF-8; send it as a file, with a filename") from None


def _urlencoded(body: bytes, limits: Limits) -> list[tuple[str, str | File]]:
    if len(body) > limits.json_bytes:
        raise ClientError(f"the form is larger than max_json, {limits.json_bytes} bytes", 413)
    if body.count(b"&") >= limits.form_fields:
        raise ClientError(f"the form has more than {limits.form_fields} fields", 413)
    bad = _BAD_PERCENT.search(body)
    if bad:
        raise ClientError(f"the form has a % without two hexadecimal digits (byte {bad.start()})")
    pairs: list[tuple[str, str | File]] = []
    for field in body.replace(b"+", b" ").split(b"&"):
        name, _, value = map(unquote_to_bytes, field.partition(b"="))
        try:
            if field:
                pairs.append((name.decode("utf-8"), value.decode("utf-8")))
        except UnicodeDecodeError:
            hint = "for raw data, set the Content-Type to its type"
            raise ClientError(f"form field {len(pairs) + 1} is not UTF-8 text; {hint}") from None
    return pairs


def _gather(fields: list[tuple[str, str | File]]) -> dict[str, Any]:
    lists: dict[str, list[str | File]] = {}
    for name, value in fields:
        lists.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}


def encode(value: Any, accept: str = "", limits: Limits = _DEFAULT, nan: str = "null") -> Encoded:
    """The response body for what a script returned.

    Raw: bytes, `(bytes, content_type)`, a File, a PIL image (PNG, or JPEG where `accept` prefers it).
    Everything else is JSON: numpy arrays and scalars and tensors by their `tolist()` values (a float32 is
    written with the digits of the double it equals), dataclasses as objects, enums by value, dates in ISO
    form, paths and UUIDs as text, bytes and Files inside as base64, PIL images inside as `data:image/png;base64,...`.
    Sets are refused: they have no order.
    For `nan` see `jsontext.dumps`.

    Raises EncodeError for anything else, for cycles, and beyond the limits for output.
    """
    if type(value) not in ALWAYS_JSON:
        raw = _raw(value, accept)
        if raw is not None:
            if len(raw.body) > limits.output_bytes:
                raise EncodeError(f"it is larger than {limits.output_bytes} bytes")
            return raw
    body, warning = encode_json(value, limits, nan)
    return Encoded(JSON, body, warning)


def encode_json(value: Any, limits: Limits, nan: str) -> Tuple[bytes, str]:
    """The text that `encode` gives for what is no raw body, such as a value of the types ALWAYS_JSON; its warning."""
    return jsontext.dumps(value, convert, nan, limits.output_depth, limits.output_bytes)


def _raw(value: Any, accept: str) -> Encoded | None:
    """The body for a value that is sent as it is; None for one that becomes JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Encoded(OCTETS, bytes(value))
    if type(value) is tuple and len(value) == 2 and isinstance(value[1], str):
        body, content_type = value
        if isinstance(body, (bytes, bytearray, memoryview)):
            if not _CONTENT_TYPE.fullmatch(content_type):
                raise EncodeError(f"{content_type[:80]!r} is not a content type")
            return Encoded(content_type, bytes(body))
    if isinstance(value, File):
        return Encoded(value.type if _CONTENT_TYPE.fullmatch(value.type) else OCTETS, bytes(value.bytes))
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        return _picture(value, accept)
    return None


def _picture(image: Any, accept: str) -> Encoded:
    name, modes = ("JPEG", _JPEG_MODES) if _prefers_jpeg(accept) else ("PNG", _PNG_MODES)
    buffer = io.BytesIO()
    try:
        (image if image.mode in modes else image.convert("RGB")).save(buffer, name)
    except Exception as error:
        raise EncodeError(f"the image cannot be written as {name}: {error}") from error
    return Encoded(f"image/{name.lower()}", buffer.getvalue())


def _data_address(image: Any) -> str:
    """A picture inside of JSON: its media type, and its bytes in base64, as browsers take it."""
    try:
        encoded = _picture(image, "")
    except EncodeError as error:
        raise TypeError(error.reason) from error
    return f"data:{encoded.content_type};base64,{base64.b64encode(encoded.body).decode('ascii')}"


def _prefers_jpeg(accept: str) -> bool:
    wanted = accepting.weights(accept)
    other = wanted.get("image/*", wanted.get("*/*", 0.0))
    return wanted.get("image/jpeg", other) > wanted.get("image/png", other)


def convert(value: Any) -> Any:
    """One step from any object towards JSON. Raises TypeError that names the type where there is none."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if hasattr(value, "dtype") or hasattr(value, "tolist") or hasattr(value, "numpy"):
        return _from_array(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, JSON_HAS):
        return as_json_has_it(value)
    return dict(value) if isinstance(value, Mapping) else _convert_rare(value)


def as_json_has_it(value: Any) -> Any:
    """A value of a subclass of JSON_HAS as one of these themselves."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return dict(value) if isinstance(value, dict) else list(value)


def _convert_rare(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    uuid = sys.modules.get("uuid")
    if uuid is not None and isinstance(value, uuid.UUID):
        return str(value)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        return _data_address(value)
    if hasattr(type(value), "__bytes__"):
        return convert(bytes(value))
    raise TypeError(f"JSON cannot hold a value of type {_type_name(value)}")


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _from_array(value: Any) -> Any:
    """The numbers of an array, a tensor or a numpy scalar, as Python lists and scalars."""
    original = value
    try:
        for step in ("detach", "cpu"):
            value = getattr(value, step)() if hasattr(value, step) else value
        if not hasattr(value, "tolist"):
            value = value.numpy()
        value = _plain_numbers(value)
        value = value.tolist() if hasattr(value, "tolist") else value
    except Exception as error:
        raise TypeError(f"a value of type {_type_name(original)} cannot be made a list: {error}") from error
    if hasattr(value, "tolist"):
        raise TypeError(f"a value of type {_type_name(original)} does not become a list by tolist()")
    return value


def _plain_numbers(array: Any) -> Any:
    """An array whose `tolist()` gives built-in types, for the numpy types where it does not."""
    dtype: Any = getattr(array, "dtype", None)
    kind = getattr(dtype, "kind", "")
    if not kind:
        return array
    if dtype.names or kind in "cm":
        raise TypeError(f"JSON has no form for an array of {dtype}")
    if kind == "M":
        return array.astype(str)
    return array.astype("f8") if kind == "V" or (kind == "f" and dtype.itemsize > 8) else array
