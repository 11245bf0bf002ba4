"""Just enough of HTTP/1.1 to see where an answer ends, and to read its status and times."""

from __future__ import annotations

LENGTH = b"content-length:"
TIMING = b"server-timing:"
MOST_HEAD = 65536


class AnswerParser:
    """Parses the answers that arrive on one connection, one after the other.

    After `feed` returned True: `status`, `timing` (the Server-Timing header), `closing`, and the body by `body`.
    """

    __slots__ = (
        "_buffer", "_chunked", "_complete", "_head_end", "_whole", "closing", "status", "timing", "until_close",
    )  # fmt: skip

    def __init__(self) -> None:
        self._buffer = b""
        self._head_end = -1
        self._whole = -1
        self._chunked = False
        self._complete = False
        self.status = 0
        self.timing = b""
        self.closing = False
        self.until_close = False

    def feed(self, data: bytes) -> bool:
        """Take bytes; True when an answer is complete. Raises ValueError for bytes that are no HTTP."""
        # The bytes of the last answer stay until the next one begins, so that `body` can give them.
        if self._complete:
            self._buffer, self._head_end, self._complete = data, -1, False
        else:
            self._buffer = self._buffer + data if self._buffer else data
        if self._head_end < 0 and not self._head():
            return False
        if self._chunked:
            self._complete = self._chunks()
        else:
            self._complete = not self.until_close and len(self._buffer) >= self._whole
        return self._complete

    def _head(self) -> bool:
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > MOST_HEAD or (buffer and not b"HTTP/1.".startswith(buffer[:7])):
                raise ValueError(repr(buffer[:40]))
            return False
        if not buffer.startswith(b"HTTP/1."):
            raise ValueError(repr(buffer[:40]))
        head = buffer[:end].lower()
        self.status = int(head[9:12])
        self._head_end = end + 4
        self._chunked = self.until_close = False
        self.closing = b"\nconnection: close" in head
        self.timing = _value(buffer, head, TIMING)
        length = _value(head, head, LENGTH)
        if length:
            self._whole = self._head_end + int(length)
        elif b"transfer-encoding: chunked" in head:
            self._chunked, self._whole = True, self._head_end
        elif self.status in (204, 304):
            self._whole = self._head_end
        else:
            self.until_close, self.closing, self._whole = True, True, -1
        return True

    def _chunks(self) -> bool:
        """Walk over the chunks so far; True at the last chunk. Trailers are expected to be empty."""
        at = self._whole
        while True:
            line = self._buffer.find(b"\r\n", at)
            if line < 0:
                self._whole = at
                return False
            size = int(self._buffer[at:line].partition(b";")[0], 16)
            after = line + 2 + size + 2
            if len(self._buffer) < after:
                self._whole = at
                return False
            at = after
            if size == 0:
                self._whole = at
                return True

    def close(self) -> None:
        """The connection ended, and with it an answer of unknown length."""
        self.until_close = False
        self._complete = True
        self._whole = len(self._buffer)

    def body(self) -> bytes:
        """The body of the complete answer, without the framing of chunks."""
        if not self._chunked:
            return self._buffer[self._head_end : self._whole]
        chunks, at = [], self._head_end
        while at < self._whole:
            line = self._buffer.index(b"\r\n", at)
            size = int(self._buffer[at:line].partition(b";")[0], 16)
            chunks.append(self._buffer[line + 2 : line + 2 + size])
            at = line + 2 + size + 2
        return b"".join(chunks)

    def is_answer(self, expected: bytes) -> bool:
        """Whether the answer is a success with exactly this body."""
        if self._chunked:
            return self.status < 400 and self.body() == expected
        return self.status < 400 and self._buffer.endswith(expected) and self._whole - self._head_end == len(expected)


def _value(text: bytes, head: bytes, name: bytes) -> bytes:
    at = head.find(b"\n" + name)
    if at < 0:
        return b""
    at += len(name) + 1
    end = head.find(b"\r\n", at)
    return text[at : end if end >= 0 else len(head)].strip()
