"""A worker's port over an encrypted socket: every frame arrives, and whoever waits for one is woken."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot_worker.line import encryption, wire
from panglot_worker.line.port import FrontGone, Port
from support import certificates

PATIENCE = 20_000
"""Milliseconds to wait for a frame."""
SIZES = (0, 1, 300, 16_384, 50_000, 262_144, 262_145, 5_000_000, 7, 300_000, 0, 1_000_001)


def a_certificate(folder: Path) -> str:
    cert, key = certificates.make(folder, "panglot")
    return key.read_text() + cert.read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    return a_certificate(tmp_path_factory.mktemp("made"))


def agreed(made: str, theirs: str = "") -> tuple[ssl.SSLSocket, encryption.EncryptedSocket]:
    """Both ends of a connection, once they have agreed on keys. Raises OSError."""
    ours, far = socket.socketpair()
    ours.settimeout(20)
    ends: list[encryption.EncryptedSocket] = []

    def agree() -> None:
        try:
            ends.append(encryption.EncryptedSocket(far, encryption.context(theirs or made, is_node=True)))
        except OSError:
            far.close()

    thread = threading.Thread(target=agree)
    thread.start()
    try:
        front = encryption.context(made, is_node=False).wrap_socket(ours)
    except OSError:
        ours.close()
        raise
    finally:
        thread.join()
    return front, ends[0]


@pytest.fixture
def ends(made: str) -> Iterator[tuple[ssl.SSLSocket, Port]]:
    front, node = agreed(made)
    with front:
        yield front, Port(node)
    node.close()


def test_frames_of_all_sizes_wake_whoever_waits(ends: tuple[ssl.SSLSocket, Port]) -> None:
    """Also those that came in one piece with the end of a large one, when nothing more is in the socket."""
    front, port = ends
    sent = [bytes([number]) * size for number, size in enumerate(SIZES)]
    frames = b"".join(wire.frame(wire.RUN, 1, payload) for payload in sent)
    thread = threading.Thread(target=front.sendall, args=(frames,))
    thread.start()
    waiting = select.poll()
    waiting.register(port.fileno(), select.POLLIN)
    for number, payload in enumerate(sent):
        while not port.pending:
            assert waiting.poll(PATIENCE), f"frame {number} of {len(payload)} bytes was not announced"
            port.poll()
        assert port.pending.popleft().payload == payload
    thread.join()
    assert not waiting.poll(0), "nothing more comes"


def test_a_blocking_reader_gets_all_frames_and_the_end(ends: tuple[ssl.SSLSocket, Port]) -> None:
    front, port = ends
    sent = [bytes([number]) * size for number, size in enumerate(SIZES)]

    def send() -> None:
        for payload in sent:
            front.sendall(wire.frame(wire.RUN, 1, payload))
        front.close()

    thread = threading.Thread(target=send)
    thread.start()
    assert [port.next().payload for _ in sent] == sent
    with pytest.raises(FrontGone):
        port.next()
    thread.join()


def test_threads_may_send_while_another_reads(ends: tuple[ssl.SSLSocket, Port]) -> None:
    front, port = ends
    count, body = 40, b"x" * 200_000

    def answer(number: int) -> None:
        for _ in range(count):
            port.reply(wire.Reply(number, 200, 0, wire.NO_TIMES, b"", body))

    threads = [threading.Thread(target=answer, args=(number,)) for number in (1, 2)]
    read = threading.Thread(target=lambda: [port.next() for _ in range(count)])
    for thread in (*threads, read):
        thread.start()
    seen = {1: 0, 2: 0}
    # The front's end is a socket of `ssl`, which only one thread may use.
    for turn in range(2 * count):
        if turn % 2:
            front.sendall(wire.frame(wire.RUN, 1, body))
        length, kind, _, items, _ = wire.HEADER.unpack(exactly(front, wire.HEADER.size))
        assert kind == wire.REPLY
        (reply,) = wire.replies(memoryview(exactly(front, length)), items)
        assert reply.body == body
        seen[reply.id] += 1
    assert seen == {1: count, 2: count}
    for thread in (*threads, read):
        thread.join(20)
        assert not thread.is_alive()


def exactly(sock: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += sock.recv(size - len(data))
    return data


def test_another_certificate_is_refused(made: str, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        agreed(made, theirs=a_certificate(tmp_path))


def test_what_was_changed_on_the_way_ends_the_connection(made: str) -> None:
    front, node = agreed(made)
    raw = socket.socket(fileno=front.detach())
    with raw:
        raw.sendall(b"\x17\x03\x03\x00\x20" + b"?" * 32)
        with pytest.raises(ConnectionAbortedError, match="cannot be decrypted"):
            node.recv(100)
    node.close()
