"""`panglot record` in front of services that behave, and of services that do not: the bytes are those without it."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.recording.recording import Pair, Recording
from support import certificates
from support.server import panglot, wait_until
from support.upstream import RecordingProxy, Upstream, reading_request, received, recorded

BODY = os.urandom(3_000_000)


def pairs_of(path: Path) -> list[Pair]:
    with Recording(path) as recording:
        return list(recording.pairs())


class Watched(Upstream):
    """Remembers the heads and bodies of requests."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, bytes]] = []
        super().__init__(self._answer)

    def _answer(self, sock: socket.socket) -> None:
        head, body = reading_request(sock)
        self.seen.append((head, body))
        answer = ANSWERS[head.split(b" ")[1].partition(b"?")[0]]
        for piece in answer:
            sock.sendall(piece)
        if head.split(b" ")[1] == b"/reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


ANSWERS = {
    b"/json": [
        b"HTTP/1.1 200 OK\r\ncontent-TYPE: application/json\r\nX-Odd:  a\tb \r\nContent-Length: 8\r\n\r\n",
        b'{"a": 1}',
    ],
    b"/large": [b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n", BODY],
    b"/chunks": [
        b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4;name=value\r\nabc", b"d\r\n",
        b"A\r\n0123456789\r", b"\n0\r\nX-Sum: 5\r\n\r\n",
    ],
    b"/events": [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        b"data: 1\n\n", b"data: 2\n\n",
    ],
    b"/old": [b"HTTP/1.0 200 OK\n\nuntil the end"],
    b"/redirect": [
        b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/x?token=hunter2\r\n", b"Content-Length: 0\r\n\r\n",
    ],
    b"/cookie": [b"HTTP/1.1 204 No Content\r\nSet-Cookie: session=hunter2\r\n\r\n"],
    b"/failed": [b"HTTP/1.1 500 Oh no\r\nContent-Length: 4\r\n\r\noops"],
    b"/interim": [
        b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
    b"/short": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"],
    b"/cut": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nonly this"],
    b"/nothing": [],
    b"/reset": [],
    b"/nonsense": [b"220 mail.example ESMTP\r\n"],
    b"/doubtful": [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"],
}  # fmt: skip
BROKEN = {b"/short", b"/cut", b"/nothing", b"/reset"}


@pytest.fixture(scope="module")
def service() -> Iterator[Watched]:
    upstream = Watched()
    yield upstream
    upstream.close()


@pytest.fixture(scope="module")
def proxy(service: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingProxy]:
    with recorded(f"http://127.0.0.1:{service.port}", tmp_path_factory.mktemp("record") / "old.rec") as running:
        yield running


def exchanged(port: int, *pieces: bytes) -> bytes:
    with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as sock:
        sock.settimeout(30)
        for piece in pieces:
            sock.sendall(piece)
        return received(sock)


def request(path: bytes, port: int, body: bytes = b"") -> bytes:
    lines = (
        b"POST %s?api_key=hunter2 HTTP/1.1" % path, b"hOST:  127.0.0.1:%d" % port, b"Authorization: Bearer hunter2",
        b"Cookie: a=hunter2", b"X-Twice: 1", b"x-twice: 2", b"Content-Length: %d" % len(body),
    )  # fmt: skip
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.mark.parametrize("path", ANSWERS)
def test_bytes_are_those_without_the_proxy(service: Watched, proxy: RecordingProxy, path: bytes) -> None:
    service.seen.clear()
    direct = exchanged(service.port, request(path, service.port, BODY))
    through = exchanged(proxy.port, request(path, proxy.port, BODY))
    assert through == direct
    (first, second) = service.seen
    assert second == first


def test_what_was_recorded(service: Watched, tmp_path: Path) -> None:
    with recorded(f"http://127.0.0.1:{service.port}", tmp_path / "old.rec") as proxy:
        for path in ANSWERS:
            exchanged(proxy.port, request(path, proxy.port, b'{"in": 1}'))
        said = proxy.stop()
    found = {pair.request.target.partition("?")[0].encode(): pair for pair in pairs_of(tmp_path / "old.rec")}
    assert set(found) == set(ANSWERS) - {b"/nonsense", b"/doubtful"}
    assert f"{len(found)} pairs in" in said
    assert b"hunter2" not in b"".join(str(pair).encode() for pair in found.values())
    assert found[b"/chunks"].answer.body == b"abcd0123456789"
    assert found[b"/chunks"].answer.reason == "Fine"
    assert found[b"/old"].answer.body == b"until the end"
    assert found[b"/events"].answer.body == b"data: 1\n\ndata: 2\n\n"
    assert found[b"/interim"].answer.status == 200
    assert found[b"/large"].answer.body == BODY
    assert all(pair.request.body == b'{"in": 1}' for pair in found.values())
    assert {path for path, pair in found.items() if pair.problem} == BROKEN
    assert {path for path, pair in found.items() if pair.answer.status == 0} == {b"/nothing", b"/reset"}


def test_one_connection_carries_many_requests_in_any_pieces(tmp_path: Path) -> None:
    def answers(sock: socket.socket) -> None:
        data = b""
        count = 0
        while piece := sock.recv(65536):
            data += piece
            while b"last\r\n0\r\n\r\n" in data:
                _, _, data = data.partition(b"last\r\n0\r\n\r\n")
                count += 1
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % count)

    one = b"POST /%d HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4\r\nlast\r\n0\r\n\r\n"
    stream = b"".join(one % number for number in range(5))
    service = Upstream(answers)
    try:
        with recorded(f"http://127.0.0.1:{service.port}", tmp_path / "old.rec") as proxy:
            with contextlib.closing(proxy.connect()) as sock:
                for start in range(0, len(stream), 3):
                    sock.sendall(stream[start : start + 3])
                sock.shutdown(socket.SHUT_WR)
                assert received(sock).count(b"200 OK") == 5
            proxy.stop()
    finally:
        service.close()
    found = pairs_of(tmp_path / "old.rec")
    assert [(pair.request.target, pair.request.body, pair.answer.body) for pair in found] == [
        (f"/{number}", b"onelast", b"%d" % (number + 1)) for number in range(5)
    ]
    assert service.connections == 1


def test_parts_of_a_stream_pass_as_they_come(tmp_path: Path) -> None:
    go_on = threading.Event()

    def stream(sock: socket.socket) -> None:
        reading_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\none"[:-1])
        assert go_on.wait(30)
        sock.sendall(b"\r\n0\r\n\r\n")

    service = Upstream(stream)
    try:
        with recorded(f"http://127.0.0.1:{service.port}", tmp_path / "old.rec") as proxy:
            with contextlib.closing(proxy.connect()) as sock:
                sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                data = b""
                while not data.endswith(b"on"):
                    data += sock.recv(100)
                go_on.set()
                assert received(sock) == b"\r\n0\r\n\r\n"
            proxy.stop()
    finally:
        service.close()


def test_a_client_that_disconnects_is_not_waited_for_by_the_service(tmp_path: Path) -> None:
    ended = threading.Event()

    def endless(sock: socket.socket) -> None:
        reading_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                sock.sendall(b"3\r\none\r\n")
        except OSError:
            ended.set()

    service = Upstream(endless)
    try:
        with recorded(f"http://127.0.0.1:{service.port}", tmp_path / "old.rec") as proxy:
            with contextlib.closing(proxy.connect()) as sock:
                sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                sock.recv(10)
            assert ended.wait(30)
            proxy.stop()
    finally:
        service.close()
    (found,) = pairs_of(tmp_path / "old.rec")
    assert found.problem == "the client disconnected"


def test_an_answer_before_the_end_of_the_request_reaches_the_client(tmp_path: Path) -> None:
    def refuses(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        received(sock)

    service = Upstream(refuses)
    try:
        with recorded(f"http://127.0.0.1:{service.port}", tmp_path / "old.rec") as proxy:
            with contextlib.closing(proxy.connect()) as sock:
                sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000\r\n\r\n" + bytes(100_000))
                assert sock.recv(1000).startswith(b"HTTP/1.1 413")
            proxy.stop()
    finally:
        service.close()
    (found,) = pairs_of(tmp_path / "old.rec")
    assert (found.answer.status, found.problem) == (413, "")
    assert found.request.why


def test_a_service_that_is_not_there_is_a_502(tmp_path: Path) -> None:
    service = Upstream(lambda sock: None)
    service.close()
    with recorded(f"http://127.0.0.1:{service.port}", tmp_path / "old.rec") as proxy:
        answer = exchanged(proxy.port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 502")
        assert b"service_unreachable" in answer
        proxy.stop()
    (found,) = pairs_of(tmp_path / "old.rec")
    assert (found.answer.status, found.problem) == (0, "the service does not answer")


def test_tls_to_the_service_with_its_own_host(tmp_path: Path) -> None:
    cert, key = certificates.make(tmp_path, "localhost", "DNS:localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    seen: list[bytes] = []

    def answer(sock: socket.socket) -> None:
        seen.append(reading_request(sock)[0])
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    service = Upstream(answer, context)
    url = f"https://localhost:{service.port}"
    try:
        with recorded(url, tmp_path / "old.rec", "--ca", str(cert)) as proxy:
            assert exchanged(proxy.port, b"GET /a HTTP/1.1\r\nHost: here\r\n\r\n").endswith(b"\r\n\r\nok")
            proxy.stop()
        with recorded(url, tmp_path / "old.rec") as proxy:
            assert exchanged(proxy.port, b"GET /a HTTP/1.1\r\nHost: here\r\n\r\n").startswith(b"HTTP/1.1 502")
            assert "certificate" in proxy.stop()
    finally:
        service.close()
    assert seen == [b"GET /a HTTP/1.1\r\nHost: localhost:%d" % service.port]


def test_an_upgrade_and_http2_pass_and_are_not_recorded(tmp_path: Path) -> None:
    def echoes(sock: socket.socket) -> None:
        data = sock.recv(1000)
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" if data.startswith(b"GET") else data)
        while data := sock.recv(1000):
            sock.sendall(data)

    service = Upstream(echoes)
    try:
        with recorded(f"http://127.0.0.1:{service.port}", tmp_path / "old.rec") as proxy:
            for first, answer in (
                (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\n\r\n", b"HTTP/1.1 101"),
                (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"PRI * HTTP/2"),
            ):
                with contextlib.closing(proxy.connect()) as sock:
                    sock.sendall(first)
                    assert sock.recv(1000).startswith(answer)
                    sock.sendall(b"\x00\x81GET / HTTP/1.1\r\n\r\n")
                    assert sock.recv(1000) == b"\x00\x81GET / HTTP/1.1\r\n\r\n"
            assert "HTTP/2, such as gRPC, is passed on and not recorded" in proxy.stop()
    finally:
        service.close()
    assert pairs_of(tmp_path / "old.rec") == []


def test_a_full_disk_ends_the_recording_and_not_the_service(service: Watched, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{service.port}"
    with recorded(url, tmp_path / "old.rec", largest_file=1_000_000) as proxy:
        for _ in range(4):
            direct = exchanged(service.port, request(b"/large", service.port))
            assert exchanged(proxy.port, request(b"/large", proxy.port)) == direct
        assert "the recording has ended" in proxy.stop()
    assert pairs_of(tmp_path / "old.rec") == []


def test_bodies_beyond_the_limit_and_memory_beyond_the_limit(service: Watched, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{service.port}"
    with recorded(url, tmp_path / "old.rec", "--max-body", "1MB") as proxy:
        exchanged(proxy.port, request(b"/large", proxy.port, b"{}"))
        proxy.stop()
    (found,) = pairs_of(tmp_path / "old.rec")
    assert (found.answer.size, found.answer.body, found.request.body) == (3_000_000, b"", b"{}")
    assert found.answer.why == "longer than 1000000 bytes"
    with recorded(url, tmp_path / "old.rec", "--memory", "1MB") as proxy:
        assert exchanged(proxy.port, request(b"/large", proxy.port, b"{}")).endswith(BODY[-1000:])
        exchanged(proxy.port, request(b"/json", proxy.port, b"{}"))
        assert "1 were dropped" in proxy.stop()
    assert [pair.answer.body for pair in pairs_of(tmp_path / "old.rec")] == [b'{"a": 1}']


def test_a_recorder_that_is_killed_leaves_what_it_has_written(service: Watched, tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    with recorded(f"http://127.0.0.1:{service.port}", path) as proxy:
        exchanged(proxy.port, request(b"/json", proxy.port))
        wait_until(lambda: pairs_of(path))
        proxy.process.kill()
    assert len(pairs_of(path)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "nowhere"), "is no address of a server"),
        (("--to", "http://127.0.0.1:1/path"), "has a path"),
        (("--to", "http://a:b@127.0.0.1:1"), "has credentials in it"),
        (("--to", "http://127.0.0.1:1", "--redact", "/a[x"), "is no path in JSON"),
        (("--to", "http://127.0.0.1:1", "--host", "203.0.113.7"), "cannot be listened on"),
    ],
)
def test_wrong_uses_are_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = panglot("record", "-o", str(tmp_path / "old.rec"), *words)
    assert done.returncode == 3
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "old.rec").exists()
