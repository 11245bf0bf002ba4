"""Clients of another make: the library `h2`, which checks every frame it is sent, over plain sockets and TLS."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest

from support import certificates
from support.http2 import INFER, LIVE, STREAM_INFER, infer, message
from support.rpc import address
from support.server import Server, serving, wait_until


class Other:
    """One connection of `h2`. It takes in as much as its own windows allow, and opens them as it reads."""

    def __init__(self, server: Server, tls: ssl.SSLContext | None = None) -> None:
        plain = socket.create_connection(("127.0.0.1", int(address(server).rpartition(":")[2])), timeout=30)
        self.sock = tls.wrap_socket(plain, server_hostname="localhost") if tls is not None else plain
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
        self.h2.initiate_connection()
        self.events: list[h2.events.Event] = []
        self.flush()

    def flush(self) -> None:
        self.sock.sendall(self.h2.data_to_send())

    def _hear(self) -> None:
        data = self.sock.recv(65536)
        assert data, "the server has closed the connection"
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.events.append(event)
        self.flush()

    def ask(self, path: str, data: bytes) -> int:
        """Make a call, as fast as the server's windows allow."""
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
        self.h2.send_headers(stream, [*head, ("content-type", "application/grpc"), ("te", "trailers")])
        while data:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if not room:
                self.flush()
                self._hear()
                continue
            self.h2.send_data(stream, data[:room])
            data = data[room:]
        self.h2.end_stream(stream)
        self.flush()
        return stream

    def answer(self, stream: int) -> tuple[bytes, bytes]:
        """The status of an answer, and its data."""
        while not any(isinstance(event, h2.events.StreamEnded) and event.stream_id == stream for event in self.events):
            self._hear()
        mine = [event for event in self.events if getattr(event, "stream_id", None) == stream]
        heads = [dict(event.headers) for event in mine if hasattr(event, "headers")]
        data = b"".join(event.data for event in mine if isinstance(event, h2.events.DataReceived))
        return heads[-1][b"grpc-status"], data


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0") as running:
        yield running
        wait_until(lambda: running.metric("panglot_request_memory_bytes") == 0)


def test_calls_of_every_size(server: Server) -> None:
    other = Other(server)
    for count in (1, 100, 20_000, 2_000_000):
        status, data = other.answer(other.ask(INFER, message(infer(values=(1.0,) * count + (4.0,)))))
        assert (status, data[-4:]) == (b"0", struct.pack("<f", 4.0))
        assert len(data) > 4 * count
    other.sock.close()


def test_many_frames_at_once(server: Server) -> None:
    other = Other(server)
    check_many_frames_at_once(other)
    other.sock.close()


def test_many_calls_at_once(server: Server) -> None:
    other = Other(server)
    large = message(infer(values=(2.0,) * 50_000))
    asked = [other.ask(INFER, large if at % 10 == 0 else message(infer(values=(float(at),)))) for at in range(100)]
    live = other.ask(LIVE, message())
    conversation = other.ask(STREAM_INFER, message(infer()) * 20)
    for at, stream in enumerate(asked):
        status, data = other.answer(stream)
        assert (status, data[-4:]) == (b"0", struct.pack("<f", 2.0 if at % 10 == 0 else float(at)))
    assert other.answer(live) == (b"0", message(b"\x08\x01"))
    assert other.answer(conversation)[0] == b"0"
    other.sock.close()


@pytest.mark.parametrize("is_wide", [False, True], ids=["both windows", "the windows of streams"])
def test_windows_that_change_while_answers_leave(server: Server, is_wide: bool) -> None:
    """The library knows a window by our acknowledgement: what it allows may not come before."""
    other = Other(server)
    if is_wide:
        other.h2.increment_flow_control_window(1 << 24)
    asked = [other.ask(INFER, message(infer(values=(2.0,) * 100_000))) for _ in range(4)]
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
    for size in (10, 100_000, 1, 65_535):
        other.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: size})
        other.flush()
    assert [other.answer(stream)[0] for stream in asked] == [b"0"] * 4
    other.sock.close()


def test_tls_agrees_on_http2(tmp_path: Path) -> None:
    cert, key = certificates.make(tmp_path, "localhost", "DNS:localhost", "IP:127.0.0.1")
    trusting = ssl.create_default_context(cafile=str(cert))
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    with serving("tensors", "--grpc-port", "0", "--tls-cert", str(cert), "--tls-key", str(key)) as server:
        other = Other(server, trusting)
        assert isinstance(other.sock, ssl.SSLSocket)
        assert other.sock.selected_alpn_protocol() == "h2"
        status, data = other.answer(other.ask(INFER, message(infer(values=(1.0,) * 1_000_000 + (4.0,)))))
        assert (status, data[-4:]) == (b"0", struct.pack("<f", 4.0))
        check_many_frames_at_once(other)
        other.sock.close()


def check_many_frames_at_once(other: Other) -> None:
    """More than are acted on in one turn of the loop: reading is paused and goes on."""
    for _ in range(500):
        other.h2.ping(b"12345678")
    stream = other.ask(INFER, message(infer(values=(1.0,) * 20_000)))
    assert other.answer(stream)[0] == b"0"
    assert sum(isinstance(event, h2.events.PingAckReceived) for event in other.events) == 500
