"""Bodies of videos go to disk: within limits, without filling memory, and they never stay there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from support.server import Server, serving, wait_until
from support.videos import made

MIB = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    limits = ("--video-bytes", "80MB", "--spool-bytes", "100MB", "--max-body", "1MB")
    with serving("megflow_video", *limits, env={"TMPDIR": str(folder)}) as running:
        yield running
    assert not list(folder.glob("panglot-spool-*"))


def files(folder: Path) -> list[Path]:
    return [entry for entry in folder.glob("panglot-spool-*/*") if entry.is_file()]


def large(size: int) -> Iterator[bytes]:
    """A video with a great deal of padding behind it, in chunks."""
    video = made(10, "matroska")
    yield video
    for _ in range(size // MIB):
        yield bytes(MIB)


def test_a_large_video_does_not_fill_memory(server: Server, folder: Path) -> None:
    fronts = server.fronts() or [psutil.Process(server.process.pid)]

    def memory() -> int:
        return sum(front.memory_info().rss for front in fronts)

    server.client.post("/analyze_video", content=made(10, "matroska"))
    before = memory()
    peak = 0

    def watched() -> Iterator[bytes]:
        nonlocal peak
        for piece in large(60 * MIB):
            peak = max(peak, memory())
            yield piece

    answer = server.client.post("/analyze_video", content=watched())
    assert answer.status_code == 200
    assert '"analysed": 10' in answer.text
    assert peak - before < 32 * MIB
    wait_until(lambda: not files(folder))


def test_too_large_by_its_header_and_by_its_bytes(server: Server, folder: Path) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as sock:
        sock.sendall(b"POST /analyze_video HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000000\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")
    with httpx.Client(base_url=server.url, timeout=30) as client:
        try:
            assert client.post("/analyze_video", content=large(90 * MIB)).status_code == 413
        except (httpx.WriteError, httpx.ReadError):
            pass  # closed while we were still sending
    wait_until(lambda: not files(folder))


def test_no_room_on_disk(server: Server, folder: Path) -> None:
    second = httpx.Response(0)
    with httpx.Client(base_url=server.url, timeout=30) as client:

        def nested() -> Iterator[bytes]:
            nonlocal second
            yield from large(70 * MIB)
            try:
                second = server.client.post("/analyze_video", content=large(70 * MIB))
            except (httpx.WriteError, httpx.ReadError):
                second = httpx.Response(507)

        assert client.post("/analyze_video", content=nested()).status_code == 200
    assert second.status_code == 507
    wait_until(lambda: not files(folder))


def test_who_leaves_half_way_leaves_nothing(server: Server, folder: Path) -> None:
    def breaks_off() -> Iterator[bytes]:
        yield from large(20 * MIB)
        wait_until(lambda: bool(files(folder)))
        raise RuntimeError

    with httpx.Client(base_url=server.url, timeout=30) as client, pytest.raises(RuntimeError):
        client.post("/analyze_video", content=breaks_off())
    wait_until(lambda: not files(folder))
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_two_on_one_connection(server: Server, folder: Path) -> None:
    for _ in range(2):
        answer = server.client.post("/analyze_video", content=made(5))
        assert answer.text.count("\nid: ") == 5
    wait_until(lambda: not files(folder))
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)
