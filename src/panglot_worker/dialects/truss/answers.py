"""From what a method gives to the platform's answer: JSON, msgpack, a response of starlette's, or an error."""

from __future__ import annotations

import json
import sys
from typing import Any, AsyncIterator, Dict, List, Tuple

from panglot_worker.bodies.codec import ALWAYS_JSON
from panglot_worker.bodies.standard_json import StandardJson, numbers
from panglot_worker.dialects.base import Answer, warned
from panglot_worker.dialects.truss import binary, schema
from panglot_worker.errors import EncodeError

JSON, OCTETS = "application/json", "application/octet-stream"
MODEL, CLIENT, SERVER = 600, 700, 500
"""The platform's codes: who is to blame."""
FAILED = "Internal Server Error (in model/chainlet)."
OURS = frozenset((
    b"connection", b"content-length", b"content-type", b"date", b"keep-alive", b"proxy-connection", b"server-timing",
    b"te", b"trailer", b"transfer-encoding", b"upgrade", b"x-request-id", b"x-baseten-request-id",
))  # fmt: skip
"""Headers of a response that are not sent as they are: the server has its own."""
BODILESS = (204, 304)


def error_lines(code: int) -> Tuple[str, str]:
    return ("x-baseten-error-source: 04", "x-baseten-error-code: %03d" % code)


def error(status: int, message: Any, code: int) -> Answer:
    """An error as the platform's server words it."""
    try:
        text = json.dumps({"error": message}, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        text = json.dumps({"error": str(message)}, ensure_ascii=False, separators=(",", ":"))
    return Answer(JSON, text.encode("utf-8", "replace"), status, error_lines(code))


def of_numpy(value: Any) -> Any:
    """Arrays and numbers of numpy. Raises TypeError for everything else, in the json module's words."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.integer):
            return int(value)
        if isinstance(value, numpy.floating):
            return float(value)
        if isinstance(value, numpy.ndarray):
            return value.tolist()
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


class Writer:
    """Writes results. Strict, JSON takes numpy alone beside its own values, as on the platform; else tensors too."""

    def __init__(self, limits: Any, nan: str, strict: bool) -> None:
        self.limits = limits
        self.json = StandardJson(limits, nan, strict, convert=of_numpy if strict else numbers)

    def write(self, value: Any) -> Answer:
        """A result as JSON. Raises TypeError and EncodeError."""
        if type(value) not in ALWAYS_JSON and schema.is_object(value):
            return Answer(JSON, self._limited(schema.written(value).encode("utf-8")))
        body, warning = self.json.encode(value)
        return Answer(JSON, body, 200, warned(warning)) if warning else Answer(JSON, body)

    def write_binary(self, value: Any) -> Answer:
        """A result as msgpack, bytes as they are. Raises TypeError and EncodeError."""
        if schema.is_object(value):
            value = schema.as_dict(value)
        return Answer(OCTETS, self._limited(value if isinstance(value, bytes) else binary.dumps(value)))

    def _limited(self, body: bytes) -> bytes:
        if len(body) > self.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.limits.output_bytes)
        return body


# Responses


def is_response(value: Any) -> bool:
    """Whether a method answers with a response of starlette's, which are FastAPI's too."""
    kind = getattr(sys.modules.get("starlette.responses"), "Response", None)
    return kind is not None and isinstance(value, kind)


def head_of(status: int, pairs: List[Tuple[bytes, bytes]]) -> Tuple[str, List[str]]:
    """The content type of a response, and its further header lines."""
    kinds = [value for name, value in pairs if name.lower() == b"content-type"]
    lines = [(name + b": " + value).decode("latin-1") for name, value in pairs if name.lower() not in OURS]
    if status >= 300:
        lines += error_lines(CLIENT)
    return kinds[0].decode("latin-1") if kinds else "", lines


def of_response(response: Any) -> Answer:
    """A response whose body is known, and that does nothing after it."""
    kind, lines = head_of(response.status_code, response.raw_headers)
    body = b"" if response.status_code in BODILESS else bytes(response.body)
    return Answer(kind, body, response.status_code, lines)


def is_known(response: Any) -> bool:
    """Whether the body of a response is there already."""
    return hasattr(response, "body") and getattr(response, "background", None) is None


async def messages(response: Any, scope: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
    """What a response sends, when it does: its start, then parts of its body."""
    import asyncio

    # One place: the response waits while the client reads slowly.
    sent: "asyncio.Queue[Any]" = asyncio.Queue(1)

    async def run() -> None:
        try:
            await response(scope, _never, sent.put)
        finally:
            await sent.put(None)

    task = asyncio.ensure_future(run())
    try:
        while True:
            message = await sent.get()
            if message is None:
                break
            yield message
        await task
    finally:
        task.cancel()


async def _never() -> Any:
    """Nothing more comes from the client."""
    import asyncio

    await asyncio.get_running_loop().create_future()


def part(chunk: Any) -> bytes:
    """A part of a stream as it is sent. Raises TypeError for what is neither text nor bytes."""
    if isinstance(chunk, str):
        return chunk.encode("utf-8")
    if isinstance(chunk, (bytes, bytearray, memoryview)):
        return bytes(chunk)
    raise TypeError("a stream is made of str and bytes, not of %s" % type(chunk).__name__)


def gathered(chunks: List[Any]) -> str:
    """All parts of a stream as one text."""
    return b"".join(bytes(c) if isinstance(c, (bytes, bytearray)) else str(c).encode() for c in chunks).decode()
