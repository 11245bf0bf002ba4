"""From what a processor returns to an answer: a body, and a status, where 0 and 200 mean success."""

from __future__ import annotations

import importlib
import json
from typing import Any, Optional, Tuple

from panglot_worker.bodies import codec
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.base import Answer, warned
from panglot_worker.errors import EncodeError

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

JSON, OCTETS = "application/json", "application/octet-stream"
LARGEST_LOOKED_AT = 1 << 20
"""Bytes of an answer that are parsed to see whether they are JSON; of larger ones both ends are looked at."""
ENDS = {b"{": b"}", b"[": b"]", b'"': b'"'}


def platform() -> Any:
    """The settings of the `allspark` that scripts import."""
    return importlib.import_module("allspark").settings


def processes(processor: Any) -> Optional[int]:
    """How many processes a processor asks for, where that is more than one."""
    wanted = getattr(processor, "worker_processes", 1)
    return wanted if type(wanted) is int and wanted > 1 else None


def header(lines: bytes, name: bytes) -> bytes:
    """A header of a request, of its lines `name:value`; empty where it has none."""
    # With a line break in front, a break is found where its header begins in `lines`, also for the first header.
    start = (b"\n" + lines).find(b"\n" + name + b":")
    return lines[start + len(name) + 1 :].partition(b"\n")[0].strip() if start >= 0 else b""


def written(output: Any, limits: Limits, nan: str) -> Answer:
    """The answer for `(body, status)`; a body alone is a success. Raises EncodeError."""
    body, status = output if type(output) is tuple and len(output) == 2 else (output, 200)
    text, warning = _bytes(body, limits, nan)
    if len(text) > limits.output_bytes:
        raise EncodeError("it is larger than %d bytes" % limits.output_bytes)
    return Answer(JSON if _is_json(text) else OCTETS, text, _status(status), warned(warning))


def _bytes(body: Any, limits: Limits, nan: str) -> Tuple[bytes, str]:
    """The bytes of a body: texts in UTF-8, numbers as Python writes them, dicts and lists as JSON."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body), ""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass"), ""
    if body is None:
        return b"", ""
    if isinstance(body, (int, float)) or (getattr(body, "shape", None) == () and hasattr(body, "item")):
        return str(body).encode(), ""
    return codec.encode_json(body, limits, nan)


def _status(status: Any) -> int:
    """The status for HTTP: 0 is a success, and a number outside of 200 to 599 a failure. Raises EncodeError."""
    try:
        number = int(status)
    except (TypeError, ValueError):
        raise EncodeError("its status is %r, not a number" % (status,)) from None
    if number == 0:
        return 200
    return number if 200 <= number <= 599 else 500


def _is_json(text: bytes) -> bool:
    start = text[:64].lstrip()[:1]
    if not start or start not in b'{["-0123456789tfn':
        return False
    if len(text) > LARGEST_LOOKED_AT:
        return ENDS.get(start) == text[-64:].rstrip()[-1:]
    if orjson is not None:
        try:
            orjson.loads(text)
        except ValueError:
            pass  # it may hold NaN, which the json module writes, and reads below
        else:
            return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
