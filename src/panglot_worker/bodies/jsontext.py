"""JSON text to values and back, with a server's guards, at C speed.

Answers are the same with and without orjson: `loads` accepts and refuses the same texts and gives equal
values, `dumps` writes the same bytes, except that a float whose shortest form has an exponent may be spelled
in two ways (`1e+16` or `1e16`, `1e-05` or `0.00001`). It reads back as the same float.

Numbers must fit 64 bit, or a double. Neither parser ensures it alone: orjson reads longer integers as floats, the
standard library reads integers of any length, and 1e999 as infinity. So there are three checks, the cheapest first:

1. `_is_plainly_safe` looks at the value. A number smaller than 2^63 was read exactly; one call of `hypot` proves it for
   a whole list. Nearly all bodies end here.
2. `_has_long_number` (and, for the standard library, `_has_long_exponent`) looks at the text, for a number long enough
   to be too large. It may see one inside a string; it never misses one.
3. `_refuse_numbers` reads the few numbers of such a text, outside of strings, and names the first that is too large.
"""

from __future__ import annotations

import gc
import json
import re
from contextlib import contextmanager
from itertools import islice
from math import hypot, inf, isfinite
from typing import Any, Callable, Iterator, Union

from panglot_worker.bodies.jsondepth import SHALLOW, blank_strings, is_flat, too_deep
from panglot_worker.errors import ClientError, EncodeError

try:
    import orjson

    _OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
# An orjson too old for these options is as good as none.
except (ImportError, AttributeError):
    orjson = None  # type: ignore[assignment]

Body = Union[bytes, bytearray, memoryview]

_SAFE = 2.0**63
_LARGE = 1 << 20
_FEW, _SHORT = 8, 1 << 13
_NUMBERS = frozenset([float, int, bool])
_SCALARS = frozenset([float, int, bool, type(None)])
FIX = "return dicts, lists, texts, numbers, arrays, images or bytes"
"""The advice to a script's author for a result that JSON cannot hold."""
_DIGITS_AND_COMMAS = bytes.maketrans(b"0123456789[:- \t\r\nE", b"0000000000,,,,,,,e")
_NINETEEN_DIGITS = b"," + b"0" * 19
_NUMBER = re.compile(rb"[\[,:\s](-?(?:\d{19,}(?:\.\d+)?(?:[eE][+-]?\d+)?|\d+(?:\.\d+)?[eE]\+?\d{3,}))")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONSTANT = re.compile(rb"-?Infinity|NaN")
_UNPAIRED = re.compile(rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F](?<!\\u[dD][89abAB]..\\u[dD].))")


class LongInteger(ClientError):
    """An integer that 64 bit cannot hold. All else about its text is right: a dialect may read it in another way."""


def _refuse_constant(name: str) -> Any:
    raise FloatingPointError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


def loads(body: Body, depth: int = 64) -> Any:
    """The value of a JSON text (RFC 8259, UTF-8). Of equal keys in an object the last wins.

    Raises ClientError 400, with the byte offset, for anything else and for more than `depth` levels, integers
    outside -2^63 to 2^64-1, numbers beyond a double, NaN and Infinity, lone surrogates, a byte order mark.
    """
    if len(body) > _LARGE:
        with _uncollected():
            return _loads(body, depth)
    return _loads(body, depth)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage meanwhile: a parser makes none, and its millions of lists would be visited over and over."""
    # A script may have turned collection off itself; it must stay off then.
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _loads(body: Body, depth: int) -> Any:
    if orjson is None:
        return _standard_loads(bytes(body), depth)
    try:
        value = orjson.loads(body)
    # Read again by the slow way, which knows the offset of what is wrong.
    except ValueError:
        return _standard_loads(bytes(body), depth)
    if depth < SHALLOW or not _is_plainly_safe(value, len(body)):
        text = bytes(body)
        if too_deep(text, depth) >= 0:
            return _standard_loads(text, depth)
        if _has_long_number(text):
            _refuse_numbers(text)
    return value


def _is_plainly_safe(value: Any, size: int, level: int = SHALLOW - 1) -> bool:
    """True when a short look at a value, whose text has `size` bytes, proves that it needs no long check.

    It has at most `level + 1` levels, only built-in types, and every number is smaller than 2^63. orjson reads an
    integer beyond 64 bit as a float that is not smaller; and NaN is smaller than nothing.
    """
    kind = type(value)
    items = value
    if kind is list:
        first = type(value[0]) if value else None
        if first is float or first is int:
            return _norm(value) < _SAFE
    elif kind is dict:
        items = value.values()
    else:
        return -_SAFE < value < _SAFE if kind is float or kind is int else kind in _SCALARS or kind is str
    # Containers with many small entries: looking at each would take longer than a look at the text.
    if level == 0 or (len(value) > 8 and len(value) * 128 > size):
        return not value
    for item in items:
        if type(item) is not str and not _is_plainly_safe(item, size // len(value), level - 1):
            return False
    return True


def _norm(numbers: Any) -> float:
    """An upper bound of the absolute values in a list, found in one call; infinite where it is not known."""
    try:
        return hypot(*numbers)
    except Exception:  # noqa: BLE001  numbers of scripts raise anything
        return inf


def _standard_loads(text: bytes, depth: int) -> Any:
    """`loads` by the standard library: it needs every guard, and every message tells its offset."""
    string = _decode_utf8(text)
    offset = too_deep(text, depth)
    if offset >= 0:
        raise ClientError(f"the JSON text is nested deeper than {depth} levels (byte {offset})")
    lone = _UNPAIRED.search(text.replace(b"\\\\", b"  ")) if b"\\" in text else None
    if lone:
        raise ClientError(f"a string holds a lone surrogate escape (byte {lone.start()})")
    # Before the parser, which takes quadratic time for a very long integer on older interpreters. Every 500th byte is
    # looked at: seven of these are digits in a row only where an integer may have thousands.
    if b"0" * 7 in text[::500].translate(_DIGITS_AND_COMMAS) and _has_long_number(text):
        _refuse_numbers(text)
    try:
        value = _DECODER.decode(string)
    except FloatingPointError as constant:
        match = _CONSTANT.search(blank_strings(text))
        raise ClientError(f"{constant} is not a JSON value (byte {match.start() if match else 0})") from None
    except json.JSONDecodeError as error:
        raise _syntax_error(text, string, error) from None
    # The depth limit may be set higher than the interpreter's own.
    except RecursionError:
        raise ClientError(f"the JSON text is nested deeper than {depth} levels") from None
    if not _is_plainly_safe(value, len(text)) and (_has_long_number(text) or _has_long_exponent(text)):
        _refuse_numbers(text)
    return value


def _syntax_error(text: bytes, string: str, error: json.JSONDecodeError) -> ClientError:
    if not text.strip(b" \t\r\n"):
        return ClientError("the request body is empty")
    offset = len(string[: error.pos].encode("utf-8"))
    problem = "ends too early" if offset >= len(text) else "is not valid"
    return ClientError(f"the JSON text {problem}: {error.msg} (byte {offset})")


def _decode_utf8(text: bytes) -> str:
    if text[:3] == b"\xef\xbb\xbf" or text[:2] in (b"\xff\xfe", b"\xfe\xff") or 0 in text[:4]:
        raise ClientError("the JSON text must be UTF-8 without a byte order mark (byte 0)")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ClientError(f"the JSON text is not valid UTF-8 (byte {error.start})") from None


def _has_long_number(text: bytes) -> bool:
    """Whether nineteen digits in a row follow what may stand before a number; also true inside of strings."""
    return (b" " + text).translate(_DIGITS_AND_COMMAS).rfind(_NINETEEN_DIGITS) >= 0  # rfind compares the comma first


def _has_long_exponent(text: bytes) -> bool:
    """Whether three digits follow an `e`; also true inside of strings. Finding is faster than a regular expression."""
    digits = text.translate(_DIGITS_AND_COMMAS)
    return digits.find(b"e000") >= 0 or digits.find(b"e+000") >= 0


def _refuse_numbers(text: bytes) -> None:
    """Raises ClientError for the first number that 64 bit or a double cannot hold."""
    for match in _NUMBER.finditer(b" " + blank_strings(text)):
        token = match.group(1)
        if token.lstrip(b"-").isdigit():
            if len(token) > 20 or not -(2**63) <= int(token) < 2**64:
                raise LongInteger(f"an integer does not fit 64 bit (byte {match.start()})")
        elif not isfinite(float(token)):
            raise ClientError(f"a number is too large for a double (byte {match.start()})")


def dumps(
    value: Any, convert: Callable[[Any], Any], nan: str, depth: int, size: int, text_keys: bool = False
) -> tuple[bytes, str]:
    """Compact UTF-8 JSON, and a warning ("" when there is none).

    `convert` takes one step from any other object towards JSON, or raises TypeError. `nan` says what NaN and
    Infinity become: "null" (with a warning), "platform" (bare NaN, as the json module writes it) or "error".
    With `text_keys` the keys of objects must be text; else numbers are spelled as the json module does.
    Raises EncodeError, with the path of the culprit, for what JSON cannot hold and beyond `depth` or `size`.
    """
    if orjson is not None and (_is_small(value) or _rough_size(value) < _LARGE):
        text = _fast_dumps(value, convert, depth)
        if text is not None and len(text) <= size:
            return text, ""
    writer = _Writer(convert, nan, depth, size, text_keys)
    text = writer.write(value)
    replaced = writer.not_finite if nan == "null" else 0
    return text, f"nan: {replaced} values replaced by null" if replaced else ""


def unguarded(value: Any) -> bytes:
    """The text of a value known to need no guard: finite numbers, whole texts. Nothing where there is no orjson."""
    return orjson.dumps(value) if orjson is not None else b""


def _fast_dumps(value: Any, convert: Callable[[Any], Any], depth: int) -> bytes | None:
    """What orjson writes, or None where that may differ from what `dumps` promises."""
    try:
        text = orjson.dumps(value, convert, _OPTIONS)
    except TypeError:
        return None
    if depth >= SHALLOW:
        # 117 is the letter u: a text without it holds no null.
        is_plain = 117 not in text or not _may_hold_null(text)
        if (is_plain and (len(text) < 2 * depth or is_flat(text))) or _is_plainly_safe(value, len(text)):
            return text
    return None if b"null" in text or too_deep(text, depth) >= 0 else text


def _may_hold_null(text: bytes) -> bool:
    """False when there is no null, which orjson writes for NaN too. Looks at the first few letters u."""
    at = -1
    for _ in range(4):
        at = text.find(b"u", at + 1)
        if at < 0 or text[at - 1 : at + 3] == b"null":
            return at >= 0
    return True


def _is_small(value: Any) -> bool:
    """Whether one look tells what `_rough_size` would: few numbers and texts, or lists that begin with a number."""
    for item in value.values() if type(value) is dict and len(value) <= _FEW else (value,):
        kind = type(item)
        if kind is list or kind is str:
            if len(item) > _SHORT or (item and kind is list and type(item[0]) not in _SCALARS):
                return False
        elif kind not in _SCALARS:
            return False
    return True


def _rough_size(value: Any) -> int:
    """About how long the text will be, judged from first elements and at most 64 looks."""
    total, times, left = 0, 1, []
    for _ in range(64):
        kind = type(value)
        if (kind is list or kind is tuple) and value:
            times *= len(value)
            if type(value[0]) in _SCALARS:
                total += 8 * times
            else:
                left.append((times, value[0]))
        elif kind is dict:
            total += 8 * times * len(value)
            for item in value.values() if len(value) < 64 else islice(value.values(), 64):
                if type(item) not in _SCALARS:
                    left.append((times, item))  # noqa: PERF401  a generator for each dictionary costs more
        elif kind is str or kind is bytes:
            total += times * len(value)
        else:
            try:
                total += times * (8 if kind in _SCALARS else 2 * int(value.nbytes))
            except Exception:  # noqa: BLE001  values of scripts raise anything
                total += 8 * times
        if not left:
            return total
        times, value = left.pop()
    return total + times


class _Writer:
    """The careful way to write one value: looks into every container and stops soon after `size` bytes."""

    def __init__(self, convert: Callable[[Any], Any], nan: str, depth: int, size: int, text_keys: bool) -> None:
        self.convert, self.nan, self.depth, self.size, self.text_keys = convert, nan, depth, size, text_keys
        self.floor = self.not_finite = 0  # the text is at least this long; how many NaN were met

    def write(self, value: Any) -> bytes:
        text = bytearray()
        try:
            for piece in self.pieces(value, 0):
                text += piece
                self.refuse_size(len(text))
        except RecursionError:
            raise EncodeError("it is nested deeper than the interpreter's recursion limit") from None
        return bytes(text)

    def refuse_size(self, size: int) -> None:
        if size > self.size:
            raise EncodeError(f"it is larger than {self.size} bytes")

    def pieces(self, value: Any, level: int) -> Iterator[bytes]:
        """The text of a value in pieces of about `_LARGE` bytes, as far as first elements tell."""
        rough = _rough_size(value)
        is_object = type(value) is dict and len(value) <= 1024
        is_array = type(value) in (list, tuple) or getattr(value, "ndim", 0) > 0
        if rough < _LARGE or level >= self.depth or not (is_array or is_object):
            yield self.piece(value, level)
            return
        step = 1 if is_object else max(1, len(value) * _LARGE // rough)
        mark = b"{" if is_object else b"["
        for key in value if is_object else range(0, len(value), step):
            try:
                yield mark + (self.text(self.key(key)) + b":" if is_object else b"")
                if step > 1:
                    yield self.piece(value[key : key + step], level)[1:-1]
                else:
                    yield from self.pieces(value[key], level + 1)
            except EncodeError as error:
                error.leave(value, key) if step == 1 else error.shift(key)
                raise
            mark = b","
        yield b"}" if is_object else b"]"

    def piece(self, value: Any, level: int) -> bytes:
        text = _fast_dumps(value, self.convert, self.depth - level) if orjson else None
        return self.text(self.plain(value, level)) if text is None else text

    def text(self, plain: Any) -> bytes:
        if orjson is not None and not (self.not_finite and self.nan == "platform"):
            try:
                return orjson.dumps(plain)
            except TypeError:
                pass  # an integer beyond 64 bit
        try:
            return _ENCODER.encode(plain).encode("utf-8")
        except ValueError as error:
            raise EncodeError(str(error)) from error

    def plain(self, value: Any, level: int) -> Any:
        """An equal value of exact built-in types, free of what JSON cannot hold."""
        kind = type(value)
        if kind is str:
            return self.string(value)
        if kind is list or kind is tuple or kind is dict:
            return self.container(value, level + 1)
        if kind in _SCALARS:
            return value if kind is not float or isfinite(value) else self.replacement(value)
        try:
            converted = self.convert(value)
        except TypeError as error:
            raise EncodeError(str(error), FIX) from error
        return self.plain(converted, level)

    def container(self, value: Any, level: int) -> Any:
        if level > self.depth:
            raise EncodeError(f"it is nested deeper than {self.depth} levels")
        self.floor += 2 * len(value)
        self.refuse_size(self.floor)
        is_object = type(value) is dict
        if not is_object and set(map(type, value)) <= _NUMBERS and _norm(value) < inf:
            return value
        plain: dict[Any, Any] = {}
        for key, item in value.items() if is_object else enumerate(value):
            try:
                plain[self.key(key) if is_object else key] = self.plain(item, level)
            except EncodeError as error:
                error.leave(value, key)
                raise
        return plain if is_object else list(plain.values())

    def key(self, key: Any) -> str:
        """A key as the json module spells it."""
        if self.text_keys and not isinstance(key, str):
            raise EncodeError("Dict key must be str")
        if not isinstance(key, (str, int, float, type(None))) and not hasattr(key, "dtype"):
            raise EncodeError(f"its key is neither text nor a number, but a {type(key).__name__}")
        plain = key if type(key) is float else self.plain(key, self.depth)
        return plain if type(plain) is str else json.dumps(plain)

    def string(self, value: str) -> str:
        self.floor += len(value)
        self.refuse_size(self.floor)
        if not value.isascii() and _SURROGATE.search(value):
            raise EncodeError("its text holds a lone surrogate")
        return value

    def replacement(self, value: float) -> float | None:
        if self.nan == "error":
            raise EncodeError(f"it is {value}")
        self.not_finite += 1
        return value if self.nan == "platform" else None
