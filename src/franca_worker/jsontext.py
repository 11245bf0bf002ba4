"""JSON text to values and back, with a server's guards, at C speed.

Answers are the same with and without orjson: `loads` accepts and refuses the same texts and returns equal values,
`dumps` writes the same bytes, except that a float whose shortest form has an exponent may be spelled differently
(`1e+16` or `1e16`, `1e-05` or `0.00001`); it always reads back as the same float.
"""

from __future__ import annotations

import importlib
import json
import re
from itertools import accumulate, islice
from math import hypot, isfinite
from typing import Any, Callable, Iterator, Union

from franca_worker.errors import ClientError, EncodeError

orjson: Any
try:
    orjson = importlib.import_module("orjson")
except ImportError:
    orjson = None
_OPTIONS = 0 if orjson is None else orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME

Body = Union[bytes, bytearray, memoryview]

_SHALLOW = 4
_LOOK = 1024
_SAFE = 2.0**63
_WINDOW = 1 << 16
_LONGEST_INTEGER = 4000

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_BRACKET = re.compile(rb"[\[\]{}]")

_PLACES = bytes.maketrans(b"0123456789]} \t\r\n", b"0000000000,,,,,,")
_NINETEEN_DIGITS = b"0" * 19 + b","
_THREE_HUNDRED_DIGITS = b"0" * 300
_EXPONENT = re.compile(rb"[eE]\+?[0-9]{3}")
_NUMBER = re.compile(rb"[\[,:\s](-?[0-9]{19,}[0-9.eE+-]*|-?[0-9.]+[eE]\+?[0-9]{3,})")

_CONSTANT = re.compile(rb"-?Infinity|NaN")
_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|[c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]))"
)


class _Constant(Exception):
    """NaN or Infinity stands where a value should."""


def _refuse_constant(name: str) -> Any:
    raise _Constant(name)


_LARGE = 1 << 20
_SMALL_KINDS = frozenset([float, int, bool, type(None)])
_NUMBER_KINDS = frozenset([float, int, bool])

_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


def loads(body: Body, depth: int = 64) -> Any:
    """The value of a JSON text (RFC 8259, UTF-8). Of equal keys in an object the last wins.

    Raises ClientError 400, with the byte offset, for anything else and for: more than `depth` levels, integers outside
    -2^63 to 2^64-1, numbers beyond a double, NaN and Infinity, lone surrogates, a byte order mark.
    """
    text = body if type(body) is bytes else bytes(body)
    if orjson is None:
        return _standard_loads(text, depth)
    try:
        value = orjson.loads(text)
    except ValueError:
        return _standard_loads(text, depth)
    if depth < _SHALLOW or not _is_plainly_safe(value):
        _refuse_depth(text, depth)
        if type(value) is not list and type(value) is not dict or _NINETEEN_DIGITS in text.translate(_PLACES):
            _refuse_numbers(text)
    return value


def _is_plainly_safe(value: Any, level: int = _SHALLOW - 1) -> bool:
    """True when a short look proves at most `level + 1` levels and no number that could hide a long integer.

    orjson reads an integer beyond 64 bit as a float of at least 2^63. The norm of a list of numbers is never below
    the largest of them, so one call of hypot looks at all of them.
    """
    kind = type(value)
    if kind is list:
        first = type(value[0]) if value else None
        if first is float or first is int:
            try:
                return hypot(*value) < _SAFE
            except (TypeError, OverflowError):
                return False
        items = value
    elif kind is dict:
        items = value.values()
    elif kind is float or kind is int:
        return -_SAFE < value < _SAFE
    else:
        return True
    if level == 0 or len(items) > _LOOK:
        return not items
    return all(type(item) is str or _is_plainly_safe(item, level - 1) for item in items)


def _standard_loads(text: bytes, depth: int) -> Any:
    """`loads` by the standard library, which needs every guard and gives every message its offset."""
    string = _decode_utf8(text)
    _refuse_depth(text, depth)
    if b"\\" in text:
        _refuse_surrogates(text)
    # Before the parser: converting a very long integer takes quadratic time on older interpreters.
    if len(text) > _LONGEST_INTEGER:
        _look_for_numbers(text)
    try:
        value = _DECODER.decode(string)
    except _Constant as constant:
        match = _CONSTANT.search(_blank_strings(text))
        offset = match.start() if match else 0
        raise ClientError(f"{constant} is not a JSON value (byte {offset})") from None
    except json.JSONDecodeError as error:
        raise _syntax_error(text, string, error) from None
    except RecursionError:
        raise ClientError(f"the JSON text is nested deeper than {depth} levels") from None
    if len(text) <= _LONGEST_INTEGER and not _is_plainly_safe(value):
        _refuse_numbers(text)
    return value


def _syntax_error(text: bytes, string: str, error: json.JSONDecodeError) -> ClientError:
    if not text.strip(b" \t\r\n"):
        return ClientError("the request body is empty")
    offset = len(string[: error.pos].encode("utf-8"))
    reason = error.msg[:1].lower() + error.msg[1:]
    if offset >= len(text):
        reason = f"the text ends too early, {reason}"
    return ClientError(f"the JSON text is not valid: {reason} (byte {offset})")


def _decode_utf8(text: bytes) -> str:
    if text[:3] == b"\xef\xbb\xbf":
        raise ClientError("the JSON text starts with a byte order mark (byte 0); send UTF-8 without one")
    if text[:2] in (b"\xff\xfe", b"\xfe\xff") or 0 in text[:4]:
        raise ClientError("the JSON text looks like UTF-16 or UTF-32 (byte 0); send UTF-8")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ClientError(f"the JSON text is not valid UTF-8 (byte {error.start})") from None


def _blank_strings(text: bytes) -> bytes:
    """The text with the content of its strings zeroed; every other byte keeps its offset."""
    if b'"' not in text:
        return text
    if b"\\" in text:
        text = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    pieces = text.split(b'"')
    pieces[1::2] = map(bytes, map(len, pieces[1::2]))
    return b'"'.join(pieces)


def _refuse_surrogates(text: bytes) -> None:
    match = _LONE_SURROGATE.search(text.replace(b"\\\\", b"  "))
    if match:
        raise ClientError(f"a string holds a lone surrogate escape (byte {match.start()})")


def _refuse_depth(text: bytes, depth: int) -> None:
    offset = too_deep(text, depth)
    if offset >= 0:
        raise ClientError(f"the JSON text is nested deeper than {depth} levels (byte {offset})")


def _look_for_numbers(text: bytes) -> None:
    places = text.translate(_PLACES)
    if _NINETEEN_DIGITS in places or _THREE_HUNDRED_DIGITS in places or _EXPONENT.search(text):
        _refuse_numbers(text)


def _refuse_numbers(text: bytes) -> None:
    """Raises ClientError for the first number that 64 bit, or a double, cannot hold."""
    for match in _NUMBER.finditer(b" " + _blank_strings(text)):
        token = match.group(1)
        if token.lstrip(b"-").isdigit():
            if len(token) > 20 or not -(2**63) <= int(token) < 2**64:
                raise ClientError(f"an integer does not fit 64 bit (byte {match.start()})")
        elif _is_infinite(token):
            raise ClientError(f"a number is too large for a double (byte {match.start()})")


def _is_infinite(token: bytes) -> bool:
    try:
        return float(token) in (float("inf"), -float("inf"))
    except ValueError:
        return False


def too_deep(text: bytes, limit: int) -> int:
    """The offset of the first bracket that opens level `limit + 1` of a JSON text; -1 when there is none."""
    if _has_few_brackets(text, limit):
        return -1
    outside = _blank_strings(text)
    if _folds_away(outside.translate(_STEPS, _NOT_BRACKETS), limit):
        return -1
    level = 0
    for start in range(0, len(outside), _WINDOW):
        window = outside[start : start + _WINDOW]
        steps = memoryview(window.translate(_STEPS, _NOT_BRACKETS)).cast("b")
        levels = list(accumulate(steps, initial=level))
        if max(levels) > limit:
            nth = next(index for index, reached in enumerate(levels) if reached > limit)
            return start + next(islice(_BRACKET.finditer(window), nth - 1, None)).start()
        level = levels[-1]
    return -1


def _has_few_brackets(text: bytes, limit: int) -> bool:
    found = 0
    for bracket in (b"[", b"{"):
        at = text.find(bracket)
        while at >= 0:
            found += 1
            if found > 4 or found > limit:
                return text.count(b"[") + text.count(b"{") <= limit
            at = text.find(bracket, at + 1)
    return True


def _folds_away(steps: bytes, limit: int) -> bool:
    """True when taking out innermost pairs `limit` times leaves nothing; gives up when that is slow work."""
    for _ in range(limit):
        folded = steps.replace(b"\x01\xff", b"")
        if len(steps) > 256 and len(folded) * 2 > len(steps):
            return False
        if not folded:
            return True
        steps = folded
    return False


def dumps(
    value: Any, convert: Callable[[Any], Any], nan: str = "null", depth: int = 64, size: int = 64 << 20
) -> tuple[bytes, str]:
    """Compact UTF-8 JSON, and a warning ("" when there is none).

    `convert` takes one step from any other object towards JSON, or raises. `nan` says what NaN and Infinity become:
    "null" (with a warning), "platform" (bare NaN, as the json module writes it) or "error".
    Raises EncodeError, with the path of the culprit, for what JSON cannot hold and beyond `depth` or `size`.
    """
    if orjson is not None and _rough_size(value) < _LARGE:
        text = _fast_dumps(value, convert, depth)
        if text is not None and len(text) <= size:
            return text, ""
    writer = _Writer(convert, nan, depth, size)
    try:
        return writer.write(value), writer.warning()
    except _Refused as refused:
        raise EncodeError(refused.describe()) from refused.__cause__


def _fast_dumps(value: Any, convert: Callable[[Any], Any], depth: int) -> bytes | None:
    """What orjson writes, or None where that may differ from what `dumps` promises."""
    try:
        text: bytes = orjson.dumps(value, convert, _OPTIONS)
    except TypeError:
        return None
    return None if _has_null(text) or too_deep(text, depth) >= 0 else text


def _has_null(text: bytes) -> bool:
    """True where orjson may have written null for NaN. Looks at the letter u first: that is a memchr."""
    at = text.find(b"u")
    for _ in range(4):
        if at < 0:
            return False
        if text[at - 1 : at + 3] == b"null":
            return True
        at = text.find(b"u", at + 1)
    return b"null" in text


def _rough_size(value: Any, level: int = 4) -> int:
    """About how long the text will be, judged from first elements, in a microsecond."""
    kind = type(value)
    if kind in _SMALL_KINDS:
        return 8
    if kind is list or kind is tuple:
        return len(value) * (_rough_size(value[0], level - 1) if level > 0 else 8) if value else 2
    if kind is dict:
        sample = sum(_rough_size(item, level - 2) + 8 for item in islice(value.values(), 16)) if level > 0 else 8
        return sample * max(1, len(value) // 16)
    if kind is str or kind is bytes:
        return len(value)
    nbytes = getattr(value, "nbytes", 8)
    return 2 * nbytes if type(nbytes) is int else 8


class _Refused(Exception):
    """A value that cannot be written; gathers its path while it travels out of the containers around it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []
        self.containers: list[int] = []

    def leave(self, container: Any, key: Any) -> None:
        if isinstance(key, str):
            key = f".{key}" if key.isidentifier() else f"[{key[:40]!r}]"
        else:
            key = f"[{key}]"
        self.steps.insert(0, key)
        self.containers.append(id(container))

    def describe(self) -> str:
        steps = self.steps if len(self.steps) < 16 else [*self.steps[:8], "..."]
        cyclic = len(set(self.containers)) < len(self.containers)
        return f"${''.join(steps)} cannot be sent as JSON: {'it contains itself' if cyclic else self.reason}"


class _Writer:
    """The careful way to write one value: every container is looked at, and too much output stops early."""

    def __init__(self, convert: Callable[[Any], Any], nan: str, depth: int, size: int) -> None:
        self.convert = convert
        self.nan = nan
        self.depth = depth
        self.size = size
        self.not_finite = 0
        self.floor = 0

    def warning(self) -> str:
        if self.not_finite == 0 or self.nan != "null":
            return ""
        return f"nan: {self.not_finite} value{'s' if self.not_finite > 1 else ''} replaced by null"

    def write(self, value: Any) -> bytes:
        pieces = []
        left = self.size
        for piece in self.pieces(value, 0):
            left -= len(piece)
            if left < 0:
                raise self.too_large()
            pieces.append(piece)
        return b"".join(pieces)

    def too_large(self) -> EncodeError:
        return EncodeError(f"the result is larger than {self.size} bytes as JSON")

    def pieces(self, value: Any, level: int) -> Iterator[bytes]:
        """The text of a value in pieces of about `_LARGE` bytes, as far as its first elements tell."""
        rough = _rough_size(value)
        if rough < _LARGE or level > self.depth or not hasattr(value, "__len__") or len(value) == 0:
            yield self.piece(value, level)
            return
        if type(value) is dict:
            yield from self.object_pieces(value, level, len(value) * _LARGE // rough)
        elif type(value) in (list, tuple) or getattr(value, "ndim", 0) > 0:
            yield from self.array_pieces(value, level, len(value) * _LARGE // rough)
        else:
            yield self.piece(value, level)
