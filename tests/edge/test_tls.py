"""HTTPS by two flags, and what happens to those who do not speak it, or stop half-way."""

from __future__ import annotations

import random
import socket
import ssl
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.web.http1.pace import LINGER
from support import certificates
from support.meanwhile import others_served
from support.raw import post
from support.server import PACKAGES, Server, panglot, serving, wait_until
from support.wire import Wire, is_open

PATIENT = 20.0
GOOD = post(b"7")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for localhost that signs itself, and its key."""
    cert, key = certificates.make(tmp_path_factory.mktemp("tls"), "localhost", "DNS:localhost", "IP:127.0.0.1")
    return str(cert), str(key)


@pytest.fixture(scope="module")
def server(certificate: tuple[str, str]) -> Iterator[Server]:
    cert, key = certificate
    flags = ("--tls-cert", cert, "--tls-key", key, "--header-timeout", "1s", "--max-body", "5MB", "--write-stall", "1s")
    with serving("edge_big", *flags) as running:
        yield running
    assert "Traceback" not in running.log
    assert "rror" not in running.log


@pytest.fixture(scope="module")
def trusting(certificate: tuple[str, str]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate[0])


def ask(size: int, *lines: str) -> bytes:
    return post(b'{"size": %d}' % size, *lines)


def test_large_bodies_arrive_whole(certificate: tuple[str, str], trusting: ssl.SSLContext) -> None:
    """They are decrypted straight into memory shared with the workers; what is pipelined behind them is not lost."""
    cert, key = certificate
    bodies = [random.Random(size).randbytes(size) for size in (16_384, 100_000, 3_000_000, 50)]
    kind = "Content-Type: x/echo"
    with serving("body_digests", "--tls-cert", cert, "--tls-key", key) as server, Wire(server, tls=trusting) as client:
        for _ in range(2):
            requests = [post(body).replace(b"Content-Type: application/json", kind.encode()) for body in bodies]
            client.send(b"".join(requests))
            assert [reply.body for reply in client.replies(4)] == bodies


def test_requests_are_served(server: Server, trusting: ssl.SSLContext) -> None:
    """Checked against the certificate; keep-alive, pipelined, large answers, and the last one whole."""
    with Wire(server, tls=trusting) as client:
        assert client.socket.version() == "TLSv1.3"  # type: ignore[attr-defined]
        client.send(ask(10) * 5)
        assert [reply.body for reply in client.replies(5)] == [b"x" * 10] * 5
        client.send(ask(3_000_000, "Connection: close"))
        assert len(client.reply().body) == 3_000_000
        assert client.wait_closed()


def test_a_slow_reader_of_the_last_answer_gets_it_whole(certificate: tuple[str, str], trusting: ssl.SSLContext) -> None:
    cert, key = certificate
    with (
        serving("edge_big", "--tls-cert", cert, "--tls-key", key) as server,
        Wire(server, tls=trusting, receive_buffer=65536) as client,
    ):
        client.send(ask(12_000_000, "Connection: close"))
        client.read_slowly(2 * LINGER)
        assert server.metric("panglot_request_memory_bytes") > 0, "all of it is on its way: nothing could be lost"
        assert len(client.reply().body) == 12_000_000


def test_a_client_that_reads_nothing_is_dropped(server: Server, trusting: ssl.SSLContext) -> None:
    with Wire(server, tls=trusting, receive_buffer=65536) as client:
        client.send(ask(20_000_000))
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 1_000_000)
        wait_until(lambda: not is_open(server, client), PATIENT)
        assert server.metric("panglot_request_memory_bytes") == 0


def test_a_refused_upload_hears_why(server: Server, trusting: ssl.SSLContext) -> None:
    """413 reaches a client that is still sending, although TLS knows no half-close."""
    for _ in range(2):
        with Wire(server, tls=trusting) as client:
            client.send(post(b"", "Content-Length: 20000000"))
            client.send(*[b"x" * 100_000] * 20)
            assert client.reply().status == 413
            assert client.wait_closed()


def test_tls_1_2_is_the_least(server: Server, certificate: tuple[str, str]) -> None:
    for version, allowed in (("TLSv1", False), ("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)):
        context = ssl.create_default_context(cafile=certificate[0])
        context.set_ciphers("DEFAULT@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        if allowed:
            with Wire(server, tls=context) as client:
                client.send(ask(3))
                assert client.reply().body == b"xxx"
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                Wire(server, tls=context)


STRANGERS = {
    "plain HTTP": GOOD,
    "nothing": b"",
    "half a hello": bytes.fromhex("16030100f1010000ed0303") + b"\0" * 20,
    "a hello of nonsense": bytes.fromhex("1603010005010000ff") + b"\xff" * 300,
    "a record of 64 KB": bytes.fromhex("160301ffff") + b"\0" * 70_000,
}


@pytest.mark.parametrize("said", STRANGERS.values(), ids=STRANGERS.keys())
def test_who_does_not_speak_tls_is_closed(server: Server, said: bytes) -> None:
    """Plain text, nonsense or silence where a handshake should be: closed in time, and nobody else notices."""
    with others_served(server, {}, {"size": 0}):
        strangers = [Wire(server) for _ in range(20)]
        for stranger in strangers:
            stranger.send(said)
        for stranger in strangers:
            assert stranger.wait_closed(PATIENT)
            assert b"200" not in stranger.data
            stranger.close()


def test_a_handshake_that_goes_on_for_ever(server: Server) -> None:
    """Bytes that keep coming do not move the deadline of the handshake."""
    hello = bytes.fromhex("1603014000") + b"\x01\x00\x3f\xfc" + b"\0" * 16000
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(0.05)
        closed = False
        for byte in hello:
            try:
                client.send(bytes([byte]))
                closed = client.recv(100) == b""
            except TimeoutError:
                pass
            except OSError:
                closed = True
            if closed or time.monotonic() - began > PATIENT:
                break
        assert closed


def test_certificates_that_cannot_be_used(certificate: tuple[str, str], tmp_path: Path) -> None:
    """One line that names the file, exit code 3, before anything is loaded."""
    cert, key = certificate
    other = tmp_path / "other.pem"
    other.write_text("no certificate")
    package = str(PACKAGES / "function")
    for flags in (
        ("--tls-cert", cert),
        ("--tls-key", key),
        ("--tls-cert", str(other), "--tls-key", key),
        ("--tls-cert", str(tmp_path / "missing.pem"), "--tls-key", key),
        ("--tls-cert", cert, "--tls-key", cert),
    ):
        done = panglot("serve", package, "--port", "0", *flags)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        assert "listening" not in done.stderr
