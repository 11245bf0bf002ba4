"""Where HTTP/1 messages begin and end in a stream of bytes, for a watcher that changes nothing.

A `MessageReader` gets the bytes of one direction as they come, and cuts them into pieces. The raw bytes of its pieces,
joined, are the bytes that it got. A stream that it cannot follow (malformed, ambiguous, HTTP/2, after an upgrade) is
opaque from there on: it is passed on, and not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

LARGEST_HEAD = 256 << 10
LONGEST_LINE = 16 << 10
HEADER = re.compile(r"^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*((?:[^\r\n\0]*[^\r\n\0 \t])?)[ \t]*\r?\n", re.MULTILINE)
TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
LENGTH = re.compile(rb"[0-9]{1,18}")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z", re.DOTALL)
STATUS = re.compile(rb"HTTP/1\.([01]) ([0-9]{3})(?: (.*))?\Z", re.DOTALL)
REQUEST = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) (\S+) HTTP/1\.([01])\Z")


class PieceKind(Enum):
    HEAD = auto()
    BODY = auto()
    END = auto()
    OPAQUE = auto()


@dataclass(frozen=True)
class MessageHead:
    """The first line and the headers of a message, as they came."""

    first: tuple[str, ...]
    """Method and target of a request; status and reason of an answer."""
    headers: list[tuple[str, str]]
    minor: int = 1
    """1 for HTTP/1.1, 0 for HTTP/1.0."""

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


class Piece(NamedTuple):
    """A piece of the stream. `payload` has its bytes of the body, without the framing of chunks."""

    kind: PieceKind
    raw: bytes = b""
    payload: bytes = b""
    head: MessageHead | None = None


@dataclass
class Framing:
    """The end of a body: after `length` bytes, by its last chunk, or, with neither, when the connection is closed."""

    length: int | None = None
    chunked: bool = False
    opaque: bool = False
    """Whether the stream is no HTTP/1 behind the head."""


class MalformedStream(ValueError):
    """The stream cannot be followed any further."""


def request_framing(head: MessageHead) -> Framing:
    """Raises MalformedStream for a body whose end is in doubt."""
    if head.first[0] == "CONNECT":
        return Framing(opaque=True)
    framing = _declared(head)
    if framing.length is None and not framing.chunked:
        framing.length = 0
    return framing


def answer_framing(head: MessageHead, method: str) -> Framing:
    """The framing of an answer to a request of this method. Raises MalformedStream."""
    status = int(head.first[0])
    if status == 101 or (method == "CONNECT" and status < 300):
        return Framing(opaque=True)
    if method == "HEAD" or status < 200 or status in (204, 304):
        return Framing(length=0)
    return _declared(head)


def _declared(head: MessageHead) -> Framing:
    codings = [word.strip().lower() for value in head.values("transfer-encoding") for word in value.split(",")]
    lengths = {value.strip() for value in head.values("content-length")}
    if codings:
        # Servers differ in which of the two they follow: a wrong guess would take a body for further messages.
        if lengths or codings != ["chunked"]:
            raise MalformedStream("the end of the body is in doubt")
        return Framing(chunked=True)
    if not lengths:
        return Framing()
    if len(lengths) > 1 or LENGTH.fullmatch(next(iter(lengths)).encode("latin-1")) is None:
        raise MalformedStream("the length of the body is in doubt")
    return Framing(length=int(lengths.pop()))


def parse_head(raw: bytes, is_request: bool) -> MessageHead:
    """The head in bytes that end with an empty line. Raises MalformedStream."""
    first, _, rest = (raw.rstrip(b"\r\n") + b"\n").partition(b"\n")
    parsed = (REQUEST if is_request else STATUS).match(first.rstrip(b"\r"))
    if parsed is None:
        raise MalformedStream("the first line is no HTTP/1")
    headers = HEADER.findall(rest.decode("latin-1"))
    # A head with a line that is no header cannot be followed: its framing may depend on that line.
    if len(headers) != rest.count(b"\n"):
        raise MalformedStream("a header has another form")
    groups = [(group or b"").decode("latin-1") for group in parsed.groups()]
    if is_request:
        return MessageHead((groups[0], groups[1]), headers, int(groups[2]))
    return MessageHead((groups[1], groups[2]), headers, int(groups[0]))


@dataclass
class MessageReader:
    """Follows one direction. `framing_of` tells the end of the body after a head, and may raise MalformedStream."""

    is_request: bool
    framing_of: Callable[[MessageHead], Framing]
    opaque: bool = False
    _held: bytes = b""
    """Bytes of a head, or of a line between chunks, that is not complete."""
    _left: int = 0
    """Bytes of the body, or of the chunk, that are still to come."""
    _state: Callable[[bytes], tuple[Piece | None, bytes]] = field(init=False)

    def __post_init__(self) -> None:
        self._state = self._head

    @property
    def between(self) -> bool:
        """Whether no message has begun that has not ended."""
        return self._state == self._head and not self._held

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that are complete with these bytes. Bytes of an incomplete head come with the rest of it."""
        # `_ended` gives its piece without further bytes.
        while data or self._state == self._ended:
            if self.opaque:
                yield Piece(PieceKind.OPAQUE, data)
                return
            try:
                piece, data = self._state(data)
            except MalformedStream:
                self.opaque = True
                data, self._held = self._held + data, b""
                continue
            if piece is not None:
                yield piece

    def finish(self) -> Iterator[Piece]:
        """The connection was closed: the bytes that were held back, or the end of a body without a length."""
        if self._state == self._head and self._held:
            held, self._held = self._held, b""
            yield Piece(PieceKind.OPAQUE, held)
        elif self._state == self._until_close:
            self._state = self._head
            yield Piece(PieceKind.END)

    # States. Each takes bytes. It returns a piece, or None if it needs more bytes, and the bytes behind the piece.

    def _head(self, data: bytes) -> tuple[Piece | None, bytes]:
        held = self._held + data
        # The end of the head may have begun in the bytes that were held back.
        start = max(0, len(self._held) - 3)
        end = _head_end(held, start)
        if end < 0:
            begun = held.lstrip(b"\r\n")[:7]
            is_begun = TOKEN.match(begun) if self.is_request else b"HTTP/1.".startswith(begun)
            if len(held) > LARGEST_HEAD or (begun and not is_begun):
                raise MalformedStream("no head")
            self._held = held
            return None, b""
        raw, rest = held[:end], held[end:]
        # Empty lines before the first line are no part of the head.
        head = parse_head(raw.lstrip(b"\r\n"), self.is_request)
        framing = self.framing_of(head)
        self._held = b""
        if framing.opaque:
            self.opaque = True
        elif framing.chunked:
            self._state = self._chunk_size
        elif framing.length is None:
            self._state = self._until_close
        else:
            self._left = framing.length
            self._state = self._sized if self._left else self._ended
        return Piece(PieceKind.HEAD, raw, head=head), rest

    def _sized(self, data: bytes) -> tuple[Piece | None, bytes]:
        taken, rest = data[: self._left], data[self._left :]
        self._left -= len(taken)
        if not self._left:
            self._state = self._ended
        return Piece(PieceKind.BODY, taken, taken), rest

    def _until_close(self, data: bytes) -> tuple[Piece | None, bytes]:
        return Piece(PieceKind.BODY, data, data), b""

    def _ended(self, data: bytes) -> tuple[Piece | None, bytes]:
        self._state = self._head
        return Piece(PieceKind.END), data

    def _line(self, data: bytes) -> tuple[bytes, bytes, bytes] | None:
        """The bytes of `data` up to a line's end, the whole line, and the bytes behind; None without an end."""
        end = data.find(b"\n") + 1
        held = self._held + (data[:end] if end else data)
        if len(held) > LONGEST_LINE:
            raise self._broken()
        self._held = b"" if end else held
        return (data[:end], held, data[end:]) if end else None

    def _broken(self) -> MalformedStream:
        # These bytes have been passed on as pieces already.
        self._held = b""
        return MalformedStream("no chunk")

    def _chunk_size(self, data: bytes) -> tuple[Piece | None, bytes]:
        parsed = self._line(data)
        if parsed is None:
            return Piece(PieceKind.BODY, data), b""
        raw, text, rest = parsed
        size = CHUNK.match(text.rstrip(b"\r\n"))
        if size is None:
            raise self._broken()
        self._left = int(size[1], 16)
        self._state = self._chunk if self._left else self._trailer
        return Piece(PieceKind.BODY, raw), rest

    def _chunk(self, data: bytes) -> tuple[Piece | None, bytes]:
        taken, rest = data[: self._left], data[self._left :]
        self._left -= len(taken)
        if not self._left:
            self._state = self._chunk_end
        return Piece(PieceKind.BODY, taken, taken), rest

    def _chunk_end(self, data: bytes) -> tuple[Piece | None, bytes]:
        parsed = self._line(data)
        if parsed is None:
            return Piece(PieceKind.BODY, data), b""
        raw, text, rest = parsed
        if text not in (b"\r\n", b"\n"):
            raise self._broken()
        self._state = self._chunk_size
        return Piece(PieceKind.BODY, raw), rest

    def _trailer(self, data: bytes) -> tuple[Piece | None, bytes]:
        parsed = self._line(data)
        if parsed is None:
            return Piece(PieceKind.BODY, data), b""
        raw, text, rest = parsed
        if text in (b"\r\n", b"\n"):
            self._state = self._ended
        return Piece(PieceKind.BODY, raw), rest


def _head_end(data: bytes, start: int) -> int:
    """The end of the head, behind its empty line; -1 if it is not there. Empty lines in front do not count."""
    first = 0
    while data[first : first + 1] in (b"\r", b"\n"):
        first += 1
    marks = ((mark, data.find(mark, max(start, first))) for mark in (b"\r\n\r\n", b"\n\n", b"\n\r\n"))
    return min((at + len(mark) for mark, at in marks if at >= 0), default=-1)
