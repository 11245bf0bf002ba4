"""HTTP, in process: whatever arrives, however it is cut, is answered below 500, and understood as h11 does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.config import Config

from panglot.engine.call import Call, Fault
from panglot.web import app
from panglot.web.front import Front
from panglot.web.http1.connection import Connections, HttpConnection
from panglot.web.http1.heads.request_head import RequestHead
from panglot_worker.line import wire
from support.still import StillEngine, still_front, still_model

LIMITS: dict[str, Any] = {
    "max_body": 64, "max_header": 200, "max_headers": 600, "max_header_count": 12, "max_request_line": 200,
    "max_chunks": 6, "max_requests_per_connection": 8,
}  # fmt: skip
TURNS = 200
"""Of the loop, within which every request is answered."""
REFUSALS = frozenset((501, 505))
TOO_LATE = 504

WORDS = [
    *rb"""GET POST HEAD OPTIONS PUT / /predict /v2/health/live /metrics /openapi.json http://localhost/predict""".split(),
    *rb"""* ? % %2e HTTP/1.1 HTTP/1.0 HTTP/2.0 chunked gzip identity close keep-alive upgrade h2c""".split(),
    *rb"""100-continue localhost 0 1 2 7 ff 0x1 +1 -1 1_0 18446744073709551616 evil.example 1e400 nan""".split(),
    *rb"""http://localhost http://evil.example cross-site""".split(),
    *[b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b"\xff", b":", b";", b",", b'a="b"', b"a" * 100],
    *[
        name.encode() + b": "
        for name in ("Host", "Content-Length", "Transfer-Encoding", "HttpConnection", "Upgrade", "Expect", "Origin",
                     "Content-Type", "Content-Encoding", "X-Request-Id", "X-Timeout-Ms", "Authorization", "Accept",
                     "Traceparent", "Sec-Fetch-Site", "Last-Event-Id", "Trailer", "X")
    ],
    b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n7",
    b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n7\r\n0\r\n\r\n",
    b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
]  # fmt: skip


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    loop = asyncio.new_event_loop()
    front = still_front(hosts=frozenset((b"localhost",)), **LIMITS)
    front.app = app.build(front)
    config = Config(front.app, log_config=None, access_log=False, ws="none", lifespan="off")
    config.load()
    try:
        yield lambda data: loop.run_until_complete(check(front, config, data))
    finally:
        loop.close()


async def check(front: Front, config: Config, data: bytes) -> None:
    whole = await talk(front, config, [data])
    size = 1 if len(data) <= 500 else 7
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert await talk(front, config, pieces) == whole
    check_against_h11(data, whole.bodies)


@dataclass(frozen=True)
class Talk:
    """What came of a connection: the statuses of its answers, and the bodies the script was given.

    Of several things that are wrong with a request any may be told, so a refusal that ends the connection is a 400.
    """

    statuses: list[int]
    bodies: list[bytes]
    closed: bool


class Echo(StillEngine):
    """Answers every call in the next turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    def submit(self, call: Call) -> Fault | None:
        call.id = len(self.bodies) + 1
        self.bodies.append(b"".join(call.pieces))
        assert call.size == len(self.bodies[-1])
        wire.Head.unpack(call.head)
        answer = wire.Reply(call.id, 200, 0, wire.NO_TIMES, b"application/json", b"{}")
        asyncio.get_running_loop().call_soon(self._answer, call, answer)
        return None

    def _answer(self, call: Call, answer: wire.Reply) -> None:
        call.release()
        call.reply(answer)


@dataclass
class Pipe(asyncio.Transport):
    """A transport that keeps what is written, and holds back what arrives while reading is paused."""

    written: bytearray = field(default_factory=bytearray)
    paused: bool = False
    closing: bool = False
    half: bool = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 80)}.get(name, default)

    def write(self, data: Any) -> None:
        assert not self.half, f"after the end: {bytes(data)!r}"
        self.written += data

    def writelines(self, data: Iterable[Any]) -> None:
        self.write(b"".join(data))

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.half = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close


async def talk(front: Front, config: Config, pieces: Iterable[bytes]) -> Talk:
    still_model(front).engine = engine = Echo()
    pipe, connection = Pipe(), HttpConnection(front, config, Connections(), asyncio.get_running_loop())
    connection.connection_made(pipe)
    for piece in pieces:
        if pipe.paused:
            await settled(connection, pipe)
        assert not pipe.paused or pipe.closing
        if not pipe.closing:
            connection.reader.feed(piece)
    await settled(connection, pipe)
    closed = pipe.half or pipe.closing
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert [value for name, _, _, value in front.gauges() if name == "panglot_request_memory_bytes"] == [0]
    found = statuses(bytes(pipe.written))
    if closed and found and 400 <= found[-1] < 500:
        found[-1] = 400
    return Talk(found, engine.bodies, closed)


async def settled(connection: HttpConnection, pipe: Pipe) -> None:
    """Wait until every request that came whole is answered, unless an answer said that it is the last."""
    for _ in range(TURNS):
        if connection.answers.current is None and (pipe.half or pipe.closing or not connection.answers.waiting):
            return
        await asyncio.sleep(0)
    raise AssertionError("a request is never answered")


def statuses(data: bytes, allowed: frozenset[int] = REFUSALS) -> list[int]:
    """Of all answers; each is well formed, as long as it says, or without a body, and below 500 or allowed."""
    found = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        line, *fields = head.decode("ascii").split("\r\n")
        version, status, _ = line.split(" ", 2)
        assert end
        assert version == "HTTP/1.1"
        assert int(status) < 500 or int(status) in allowed, head
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in fields)}
        length = int(headers.get("content-length", 0))
        if not data.startswith(b"HTTP/1.1 ") and data:
            assert len(data) >= length
            data = data[length:]
        found.append(int(status))
    return found


# The other implementation


def check_against_h11(data: bytes, ours: list[bytes]) -> None:
    """As far as both go on: nobody is stricter than the other in what a body is."""
    theirs = list(understood(data))
    common = min(len(ours), len(theirs))
    assert ours[:common] == theirs[:common]


def understood(data: bytes) -> Iterator[bytes]:
    """The bodies h11 finds in requests to the script."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    head, body = RequestHead(), b""
    with contextlib.suppress(h11.RemoteProtocolError):
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                head.url, is_post, body = event.target, event.method == b"POST", b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                if is_post and head.target()[0] == b"/predict":
                    yield body
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is h11.MUST_CLOSE:
                    return
                connection.start_next_cycle()
            else:
                return
