"""The file of a recording, version 1: gzip over JSON lines, each followed by the bodies it announces.

    {"panglot_recording": 1, "began": 1794855600.1, "service": "http://10.0.0.5:8080"}
    {"pair": 1, "at": ..., "took": ..., "request": {...}, "answer": {...}, "bodies": [17, 230]}
    <17 bytes of the request's body><230 bytes of the answer's body>
    {"end": {"pairs": 1, "dropped": 0, "skipped": 0}}

A line without `bodies` is followed by the next line; after bodies comes one newline. Readers pass over lines and fields
that they do not know. The file consists of whole gzip members of about a second each: if its process was killed, the
recording is readable up to its last second. `zcat` reads all of it. The format is gzip because every Python has it,
every machine can read it, and at level 1 it costs less than the JSON beside it; zstd is in the standard library only
from Python 3.14.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from panglot.errors import StartError

VERSION = 1
MARK = "panglot_recording"
LEVEL = 1
LONGEST_LINE = 4 << 20
LARGEST_BODY = 1 << 30
PIECE = 1 << 20
OF_CONNECTION = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "content-length", "host", "expect", "te", "upgrade")
)
"""Headers that belong to the connection. Another connection gets headers of its own."""
FIX = "record it with: panglot record --to URL -o FILE"


@dataclass
class RecordedMessage:
    """A request or an answer. `size` is the length of its body. `body` may be shorter; then `why` tells the reason."""

    headers: list[tuple[str, str]] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    """Names of headers, and of places in the body or the address, that were not written."""
    size: int = 0
    why: str = ""
    """Why the body is not the whole body that passed; empty if it is."""
    body: bytes = b""

    def header(self, name: str) -> str:
        """The value of a header; empty without one."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def content_type(self) -> str:
        return self.header("content-type").partition(";")[0].strip().lower()


@dataclass
class RecordedRequest(RecordedMessage):
    method: str = "GET"
    target: str = "/"


@dataclass
class RecordedAnswer(RecordedMessage):
    status: int = 0
    """0: there was no answer."""
    reason: str = ""


@dataclass
class Pair:
    """A request and its answer. `at` is the begin of the request, in seconds since the begin of the recording."""

    request: RecordedRequest
    answer: RecordedAnswer
    number: int = 0
    at: float = 0.0
    first_byte: float = 0.0
    """Seconds from the first byte of the request to the first of the answer."""
    took: float = 0.0
    """Seconds from the first byte of the request to the last of the answer."""
    problem: str = ""
    """Why the exchange did not come to its end; empty if it did."""

    @property
    def failed(self) -> bool:
        return bool(self.problem) or not 0 < self.answer.status < 400


# Sending again


def why_not_sent(pair: Pair) -> str:
    """Why a pair cannot be replayed; empty where it can."""
    if not pair.answer.status or pair.problem:
        return "they have no whole answer"
    if pair.request.why:
        return "their requests were redacted" if pair.request.why == "redacted" else "their requests are not whole"
    return ""


def request_bytes(pair: Pair, host: str, more: Mapping[str, str]) -> bytes:
    """The request of a pair for a server of this name, with further headers instead of recorded ones."""
    request = pair.request
    left_out = OF_CONNECTION | {name.lower() for name in more}
    headers = [(name, value) for name, value in request.headers if name.lower() not in left_out]
    headers += [("Host", host), *more.items()]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers.append(("Content-Length", str(len(request.body))))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"{request.method} {request.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1", "replace") + request.body


# Writing


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def encoded(pair: Pair) -> bytes:
    """A pair as it stands in the file."""
    return b"".join((line(head_of(pair)), pair.request.body, pair.answer.body, b"\n"))


def head_of(pair: Pair) -> dict[str, Any]:
    """The line of JSON for a pair. Its bodies follow in the file."""
    request, answer = pair.request, pair.answer
    return {
        "pair": pair.number,
        "at": round(pair.at, 6),
        "first_byte": round(pair.first_byte, 6),
        "took": round(pair.took, 6),
        **({"problem": pair.problem} if pair.problem else {}),
        "request": {"method": request.method, "target": request.target, **_described(request)},
        "answer": {"status": answer.status, "reason": answer.reason, **_described(answer)},
        "bodies": [len(request.body), len(answer.body)],
    }


def _described(message: RecordedMessage) -> dict[str, Any]:
    optional = {"withheld": message.withheld, "why": message.why}
    return {
        "headers": message.headers,
        "size": message.size,
        **{name: value for name, value in optional.items() if value},
    }


def member(content: bytes) -> bytes:
    """A whole gzip member."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, 31)
    return packer.compress(content) + packer.flush()


# Reading


class Recording:
    """A recording that is read from its beginning, one pair in memory at a time. A context manager.

    Raises StartError, one line, for a file that is no recording or is damaged. If its process was killed, the file ends
    in the middle of a member: the recording then ends after its last whole pair, and `truncated` is set.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.truncated = False
        self.end: dict[str, Any] = {}
        """The counts of the last line; empty where there is none."""
        try:
            self._raw = path.open("rb")
        except OSError as error:
            raise StartError(f"{path} cannot be read: {error.strerror or error}", fix=FIX) from None
        self._file = gzip.GzipFile(fileobj=self._raw)
        self._line = 0
        try:
            self.head = self._first_line()
        except BaseException:
            self._raw.close()
            raise

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()

    def pairs(self) -> Iterator[Pair]:
        """Every pair, in the order in which the exchanges ended."""
        while True:
            try:
                parsed = self._next_line()
                if parsed is None:
                    return
                bodies = self._bodies(parsed.get("bodies"))
            except EOFError:
                self.truncated = True
                return
            if "pair" in parsed:
                yield self._pair(parsed, bodies)
            elif isinstance(parsed.get("end"), dict):
                self.end = parsed["end"]

    def _first_line(self) -> dict[str, Any]:
        try:
            parsed = self._next_line()
        except (EOFError, StartError):
            parsed = None
        if parsed is None or MARK not in parsed:
            raise StartError(f"{self.path} is no recording", fix=FIX)
        if parsed[MARK] != VERSION:
            fix = "use the version of Panglot that recorded it, or a newer one"
            raise StartError(f"{self.path} has version {parsed[MARK]!r:.20} of the format, not {VERSION}", fix=fix)
        return parsed

    def _next_line(self) -> dict[str, Any] | None:
        text = self._read_line()
        if not text:
            return None
        self._line += 1
        if not text.endswith(b"\n"):
            if len(text) >= LONGEST_LINE:
                raise self._damaged("a line is too long")
            raise EOFError
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise self._damaged("a line is not JSON") from None
        if not isinstance(value, dict):
            raise self._damaged("a line is no object")
        return value

    def _read_line(self) -> bytes:
        try:
            return self._file.readline(LONGEST_LINE)
        except (OSError, zlib.error):
            if self._ends_with_half_a_mark():
                raise EOFError from None
            raise self._damaged("it is not gzip") from None

    def _ends_with_half_a_mark(self) -> bool:
        """Whether the file was cut after the first byte of a member, which gzip takes for the begin of another file."""
        self._raw.seek(-1, os.SEEK_END)
        return self._raw.read(1) == b"\x1f"

    def _bodies(self, sizes: Any) -> list[bytes]:
        if sizes is None:
            return []
        is_list = isinstance(sizes, list) and len(sizes) <= 16
        if not is_list or not all(type(size) is int and 0 <= size <= LARGEST_BODY for size in sizes):
            raise self._damaged("the sizes of bodies make no sense")
        bodies = [self._exactly(size) for size in sizes]
        if self._exactly(1) != b"\n":
            raise self._damaged("a body is longer than its size")
        return bodies

    def _exactly(self, size: int) -> bytes:
        """So many bytes, read in pieces: memory is used for bytes that are there, and not for a size that is wrong."""
        pieces = []
        while size:
            try:
                piece = self._file.read(min(size, PIECE))
            except (OSError, zlib.error):
                raise self._damaged("it is not gzip") from None
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _pair(self, parsed: dict[str, Any], bodies: list[bytes]) -> Pair:
        try:
            return pair_of(parsed, bodies)
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, why: str) -> StartError:
        return StartError(f"{self.path} is damaged at line {self._line}: {why}", fix=FIX)


def pair_of(head: dict[str, Any], bodies: Sequence[bytes]) -> Pair:
    """The pair from the result of `head_of`, with its bodies. Raises ValueError."""
    try:
        request, answer = head["request"], head["answer"]
        return Pair(
            RecordedRequest(
                **_parts(request, bodies[0]), method=_text(request["method"]), target=_text(request["target"])
            ),
            RecordedAnswer(
                **_parts(answer, bodies[1]), status=_count(answer["status"]), reason=_text(answer.get("reason", ""))
            ),
            _count(head["pair"]),
            _seconds(head["at"]),
            _seconds(head.get("first_byte", 0)),
            _seconds(head["took"]),
            _text(head.get("problem", "")),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise ValueError("a pair lacks something, or has it in another form") from None


def _parts(message: dict[str, Any], body: bytes) -> dict[str, Any]:
    return {
        "headers": [(_text(name), _text(value)) for name, value in message["headers"]],
        "withheld": [_text(name) for name in message.get("withheld", [])],
        "size": _count(message["size"]),
        "why": _text(message.get("why", "")),
        "body": body,
    }


def _text(value: Any) -> str:
    """A text that may stand in a request's head: a line break in it would begin a header of its own."""
    if not isinstance(value, str) or any(mark in value for mark in "\r\n\0"):
        raise ValueError("no text")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError("no count")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not -1e9 < value < 1e12:
        raise ValueError("no time")
    return float(value)
