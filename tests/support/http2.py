"""HTTP/2 by hand: frames over a socket, right or wrong."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

from panglot.web.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    entry,
    frame,
)  # fmt: skip
from panglot.web.http2.headers.hpack import HpackDecoder
from panglot_worker.tensors import protobuf
from support.rpc import SERVICE, address
from support.server import Server

INFER, LIVE = f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ServerLive"
STREAM_INFER = f"/{SERVICE}/ModelStreamInfer"
PATIENCE = 30.0


def literal(name: bytes, value: bytes) -> bytes:
    """A field that nobody remembers; texts of less than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def block(path: str = LIVE, method: bytes = b"POST", **more: bytes) -> bytes:
    """The headers of a call; `more` by name, with _ for -."""
    fields = {b":method": method, b":scheme": b"http", b":path": path.encode(), b":authority": b"localhost"}
    fields |= {b"content-type": b"application/grpc", b"te": b"trailers"}
    fields |= {name.replace("_", "-").encode(): value for name, value in more.items()}
    return b"".join(literal(name, value) for name, value in fields.items())


def message(body: bytes = b"", packed: int = 0) -> bytes:
    return struct.pack(">BI", packed, len(body)) + body


def infer(model: str = "tensors", name: str = "x", values: tuple[float, ...] = (4.0,)) -> bytes:
    """A ModelInferRequest with one tensor of FP32."""
    inside = protobuf.text(1, name) + protobuf.text(2, "FP32") + protobuf.packed(3, (len(values),))
    raw = struct.pack(f"<{len(values)}f", *values)
    return protobuf.text(1, model) + protobuf.message(5, inside) + protobuf.message(7, raw)


class Frame(NamedTuple):
    """A frame as it came."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def code(self) -> int:
        """The error of a RST_STREAM or GOAWAY."""
        return int.from_bytes(self.payload[4:8] if self.kind == GOAWAY else self.payload, "big")

    @property
    def ends(self) -> bool:
        return bool(self.kind in (DATA, HEADERS) and self.flags & END_STREAM)


class Client:
    """One connection. It opens its windows wide unless told not to."""

    def __init__(self, server: Server, greet: bool = True, settings: bytes = b"", window: int = 1 << 30) -> None:
        port = int(address(server).rpartition(":")[2])
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.decoder = HpackDecoder(1 << 20)
        self.next = 1
        self._rest = b""
        if greet:
            wide = entry(INITIAL_WINDOW, window) if window else b""
            self.send(PREFACE, frame(SETTINGS, 0, 0, wide + settings))
            if window:
                self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", window)))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.sock.close()

    def send(self, *parts: bytes) -> None:
        self.sock.sendall(b"".join(parts))

    def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            more = self.sock.recv(1 << 18)
            if not more:
                raise EOFError
            self._rest += more
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def read(self) -> Frame:
        """The next frame. Raises EOFError at the end."""
        head = self._exactly(9)
        size = int.from_bytes(head[:3], "big")
        return Frame(head[3], head[4], int.from_bytes(head[5:], "big"), self._exactly(size))

    def until(self, fits: Callable[[Frame], bool]) -> Frame:
        """The next frame of this sort; those before it are read and dropped."""
        while True:
            came = self.read()
            if fits(came):
                return came

    def goes_away(self) -> int:
        """The error with which the server ends the connection; that it then does end is awaited too."""
        code = self.until(lambda came: came.kind == GOAWAY).code
        self.ends()
        return code

    def ends(self) -> None:
        """Read to the end of the connection."""
        try:
            while True:
                self.read()
        except (EOFError, ConnectionError):
            pass

    def reset_of(self, stream: int) -> int:
        return self.until(lambda came: came.kind == RST_STREAM and came.stream == stream).code

    def open(self, path: str = LIVE, ended: bool = False, **more: bytes) -> int:
        """Begin a call; its number."""
        number, self.next = self.next, self.next + 2
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if ended else 0), number, block(path, **more)))
        return number

    def data(self, stream: int, data: bytes, ended: bool = False) -> None:
        self.send(frame(DATA, END_STREAM if ended else 0, stream, data))

    def call(self, path: str = LIVE, body: bytes = b"", **more: bytes) -> tuple[dict[bytes, bytes], list[bytes]]:
        """Make a call, and read its answer."""
        number = self.open(path, **more)
        self.data(number, message(body), ended=True)
        return self.answer(number)

    def answer(self, stream: int) -> tuple[dict[bytes, bytes], list[bytes]]:
        """All headers of an answer, and its messages."""
        fields: dict[bytes, bytes] = {}
        data = b""
        while True:
            came = self.until(lambda frame: frame.kind in (HEADERS, DATA))
            if came.kind == HEADERS:
                decoded = self.decoder.decode(came.payload)
                if came.stream == stream:
                    fields |= dict(decoded or ())
            elif came.stream == stream:
                data += came.payload
            if came.stream == stream and came.ends:
                break
        messages = []
        while data:
            size = int.from_bytes(data[1:5], "big")
            messages.append(data[5 : 5 + size])
            data = data[5 + size :]
        return fields, messages

    def is_well(self) -> bool:
        """Whether the connection still answers."""
        fields, messages = self.call()
        return fields[b"grpc-status"] == b"0" and messages == [b"\x08\x01"]

    def ping(self) -> None:
        """Send a PING, and wait until it is answered: everything before it has been acted on."""
        self.send(frame(PING, 0, 0, b"12345678"))
        self.until(lambda came: came.kind == PING and came.flags == ACK)


__all__ = ["CONTINUATION", "Client", "Frame", "block", "infer", "literal", "message"]
