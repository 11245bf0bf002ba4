"""Sources that live elsewhere: they stall, drop, come back, lie and never end."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import certificates
from support.live import LIVE, STALL, LiveServer, pieces, ranged, whole
from support.rtsp import RtspServer
from support.server import Server, serving, wait_until
from support.streams import LONG, begin, ended, events, listed, messages, start
from support.videos import made, make

NOWHERE = "the video cannot be opened: there is no connection to it"
ALLOW = ("--url-allow", "127.0.0.1")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Quick to lose patience."""
    with serving("megflow_video", *ALLOW, "--video-stall", "1.5", "--stream-retries", "2") as running:
        yield running
    assert "secret" not in running.log


@pytest.fixture(scope="module")
def piece() -> bytes:
    return made(20)


def numbers(server: Server, stream: int) -> list[tuple[int, int]]:
    return [(one["frame"], one["read"]) for one in messages(server, stream)]


# Files at an address


def test_a_file_at_an_address(server: Server, piece: bytes) -> None:
    with LiveServer(lambda number, path, head: [whole(piece)]) as web:
        stream = start(server, web.url())
        assert ended(server, stream)["state"] == "finished"
        assert numbers(server, stream) == [(n, n) for n in range(20)]
        assert web.connections == 1


def test_a_file_whose_index_is_at_its_end(server: Server, tmp_path: Path) -> None:
    body = make(tmp_path / "a.mp4", 30).read_bytes()
    with LiveServer(lambda number, path, head: [ranged(body, head)]) as web:
        stream = start(server, web.url("/a.mp4"))
        assert ended(server, stream)["state"] == "finished"
        assert numbers(server, stream) == [(n, n) for n in range(30)]


def test_a_file_that_breaks_off(server: Server, piece: bytes) -> None:
    with LiveServer(lambda number, path, head: [whole(piece)[: len(piece) // 2]]) as web:
        stream = start(server, web.url())
        about = ended(server, stream)
        assert (about["state"], about["error"]) == ("failed", "the connection broke off")
        assert web.connections == 1, "it would begin again at its first frame"


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "status 404"), (b"nonsense\r\n\r\n", "not HTTP"),
     (b"", "not HTTP"), (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", "more than 268435456")],
)  # fmt: skip
def test_no_video_there(server: Server, answer: bytes, words: str) -> None:
    with LiveServer(lambda number, path, head: [answer]) as web:
        found = begin(server, web.url())
        assert (found.status_code, words in found.text) == (413 if "more" in words else 500, True), found.text


def test_nobody_there(server: Server) -> None:
    with LiveServer(lambda number, path, head: []) as web:
        url = web.url()
    found = begin(server, url)
    assert (found.status_code, found.text) == (500, NOWHERE)


def test_private_addresses_look_as_if_nobody_were_there(server: Server) -> None:
    with LiveServer(lambda number, path, head: []) as web:
        for url in ("http://localhost/x", "rtsp://localhost/x", "http://10.0.0.1/", "http://[::1]/"):
            found = begin(server, url)
            assert (found.status_code, found.text) == (500, NOWHERE)
        assert web.connections == 0
    server.wait_log("10.0.0.1 is not, or not only, in the public internet; --url-allow")


def test_redirects_are_followed_with_the_same_rules(server: Server, piece: bytes) -> None:
    def script(number: int, path: str, head: bytes) -> list[bytes]:
        targets = {"/near": "/live.ts", "/far": f"http://localhost:{web.port}/live.ts", "/loop": "/loop",
                   "/rtsp": f"rtsp://127.0.0.1:{web.port}/", "/file": "file:///etc/passwd"}  # fmt: skip
        if path in targets:
            return [f"HTTP/1.1 302 Found\r\nLocation: {targets[path]}\r\nContent-Length: 0\r\n\r\n".encode()]
        return [whole(piece)]

    with LiveServer(script) as web:
        assert ended(server, start(server, web.url("/near")))["state"] == "finished"
        web.paths.clear()
        for path in ("/far", "/loop", "/rtsp", "/file"):
            answer = begin(server, web.url(path))
            assert (answer.status_code, answer.text) == (500, NOWHERE)
        assert web.paths == ["/far", *["/loop"] * 4, "/rtsp", "/file"], "nothing else was asked"


# Live


def test_a_live_source_that_stalls_and_returns(server: Server, piece: bytes) -> None:
    def script(number: int, path: str, head: bytes) -> list[bytes | float | str]:
        return [LIVE, piece, STALL] if number == 1 else [LIVE, *pieces(piece, 5, 0.02), 0.1, STALL]

    with LiveServer(script) as web:
        stream = start(server, web.url())
        with events(server, stream) as found:
            seen = []
            for one in found:
                seen.append(one)
                if len([entry for entry in seen if entry.id]) > 30:
                    break
        results = [one.data["frame"] for one in seen if one.id]
        assert results == list(range(31)), "numbers go on where they ended"
        states = [one.data["state"] for one in seen if one.name == "state"]
        assert "retrying" in states, "it says so"
        about = listed(server, stream)
        assert about["reconnects"] >= 1
        server.client.post(f"/stop/{stream}")


def test_a_live_source_that_drops_three_times(server: Server, piece: bytes) -> None:
    """It gives frames each time, so it is tried again; when nothing comes any more, not for ever."""
    with LiveServer(lambda number, path, head: [LIVE, piece] if number <= 4 else []) as web:
        stream = start(server, web.url())
        wait_until(lambda: listed(server, stream)["reconnects"] >= 3, LONG)
        about = ended(server, stream)
        assert (about["state"], web.connections) == ("failed", 4 + 2)
        found = numbers(server, stream)
        assert [frame for frame, _ in found] == list(range(80))
        assert [read for _, read in found] == list(range(20)) * 4


def test_a_live_source_that_ends_by_itself_is_not_asked_again(server: Server, piece: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    with LiveServer(lambda number, path, asked: [head, chunk, b"0\r\n\r\n"]) as web:
        stream = start(server, web.url())
        assert ended(server, stream)["state"] == "finished"
        assert (len(numbers(server, stream)), web.connections) == (20, 1)


def test_a_source_that_stalls_after_its_header(server: Server, piece: bytes) -> None:
    with LiveServer(lambda number, path, head: [whole(piece)[:400], STALL]) as web:
        begin(server, web.url())
        (stream,) = [one["id"] for one in server.client.get("/list").json() if one["url"] == web.url()]
        assert ended(server, stream)["state"] == "failed"


def test_rtsp(server: Server) -> None:
    source = RtspServer(25, pause=0.01)
    stream = start(server, source.url)
    wait_until(lambda: listed(server, stream)["reconnects"] >= 1, LONG)
    server.client.post(f"/stop/{stream}")
    found = numbers(server, stream)
    source.close()
    assert found[:25] == [(n, n) for n in range(25)]
    assert all(
        line.partition(" ")[2].startswith(f"rtsp://127.0.0.1:{source.port}/live") for line in source.asked if line
    )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """That of a server called 127.0.0.1, which signed it itself, and its file."""
    cert, key = certificates.make(tmp_path_factory.mktemp("tls"), "camera", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, str(cert)


def test_rtsps(certificate: tuple[ssl.SSLContext, str]) -> None:
    """The camera's certificate is checked, and all it says travels inside of TLS."""
    context, cert = certificate
    source = RtspServer(25, pause=0.01, tls=context)
    with serving("megflow_video", *ALLOW, env={"SSL_CERT_FILE": cert}) as trusting:
        stream = start(trusting, source.url)
        wait_until(lambda: listed(trusting, stream)["reconnects"] >= 1, LONG)
        trusting.client.post(f"/stop/{stream}")
        assert numbers(trusting, stream)[:25] == [(n, n) for n in range(25)]
    source.close()
    asked = [line.partition(" ")[2] for line in source.asked if line]
    assert all(line.startswith(f"rtsps://127.0.0.1:{source.port}/live") for line in asked)


def test_rtsps_needs_a_certificate_that_is_trusted(server: Server, certificate: tuple[ssl.SSLContext, str]) -> None:
    source, plain = RtspServer(5, tls=certificate[0]), RtspServer(5)
    for url in (source.url, plain.url.replace("rtsp:", "rtsps:")):
        found = begin(server, url)
        assert (found.status_code, found.text) == (500, NOWHERE)
    assert source.asked == []
    server.wait_log("CERTIFICATE_VERIFY_FAILED|certificate verify failed")
    source.close()
    plain.close()


def test_rtsp_redirects_lead_nowhere(server: Server) -> None:
    other = RtspServer(5)
    source = RtspServer(5, redirect=other.url)
    assert begin(server, source.url).status_code == 500
    source.close()
    other.close()
    assert (source.connections, other.connections) == (1, 0)


def test_passwords_are_not_shown(server: Server) -> None:
    source = RtspServer(5, after="stall")
    url = source.url.replace("rtsp://", "rtsp://camera:secret@")
    stream = start(server, url)
    assert listed(server, stream)["url"] == url.replace("secret", "***")
    server.client.post(f"/stop/{stream}")
    source.close()
    # What the log says of it is looked at when the server has ended.


def test_an_endless_source_stops_when_its_time_is_over(piece: bytes) -> None:
    def script(number: int, path: str, head: bytes) -> Iterator[bytes | float | str]:
        yield LIVE
        for _ in range(1000):
            yield piece
            yield 0.05

    with serving("megflow_video", *ALLOW, "--stream-max-s", "1") as server, LiveServer(script) as web:
        stream = start(server, web.url())
        about = ended(server, stream)
        assert (about["state"], web.connections) == ("finished", 1)


def test_files_that_are_too_long_too_many_or_too_large(tmp_path: Path) -> None:
    long, large = make(tmp_path / "a.mp4", 60), make(tmp_path / "b.mp4", 3, width=320, height=240)
    # Raw H.264 has no header that says how long it is.
    (tmp_path / "c.h264").write_bytes(made(60, "h264"))
    limits = ("--video-seconds", "2", "--video-frames", "30", "--video-pixels", "20000")
    with serving("megflow_video", *limits, "--uri-root", str(tmp_path)) as server:
        answer = begin(server, long)
        assert (answer.status_code, answer.text) == (
            413, "the video cannot be opened: the video lasts 2.4 s, more than 2 s"
        )  # fmt: skip
        about = ended(server, start(server, tmp_path / "c.h264"))
        assert (about["state"], about["error"]) == ("failed", "the video has more than 30 frames")
        assert about["analysed"] == 30
        assert (begin(server, large).status_code, "320 x 240" in begin(server, large).text) == (413, True)
