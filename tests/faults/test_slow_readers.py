"""Clients that read their streams slowly: they never disable a worker, and hold one only while nobody else needs it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.raw import post
from support.server import Server, lives, serving, wait_until
from support.traffic import answers, send
from support.wire import Wire, unsent

PACKAGE = "slow_stream"
ENDLESS = {"parts": 0, "size": 100_000}
HOLD = 2.0
FLAGS = ("--timeout", "30", "--slow-reader", f"{HOLD:g}s", "--write-stall", "60s", "--restart-delay-max", "5s")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(PACKAGE, "--workers", "1", *FLAGS) as running:
        yield running
        assert running.metric("panglot_worker_restarts_total") == 0
        assert running.metric("panglot_requests_in_progress") == 0


def begin(server: Server, item: object) -> Wire:
    """A client that asks for a stream and reads nothing of it."""
    client = Wire(server, receive_buffer=4096, patience=20)
    client.send(post(json.dumps(item).encode()))
    return client


def is_held(server: Server) -> bool:
    """Whether a stream waits for its client: the front keeps more of it than it would of one that flows."""
    return server.metric("panglot_request_memory_bytes") > 60_000


def drip(client: Wire, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
    """Read a little now and then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not client.closed and not enough():
        client.read(0.01)
        time.sleep(0.1)


def read_to_the_end(client: Wire) -> None:
    while not client.data.endswith(b"\r\n0\r\n\r\n"):
        assert client.read(), "it was broken off"


class Steps:
    """A stream that goes on when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0

    def order(self, *sizes: int) -> Path:
        """Have parts of these sizes sent; the file that is there once they are."""
        draft = self.folder / "draft"
        draft.write_text(" ".join(map(str, sizes)))
        draft.rename(self.folder / str(self.number))
        self.number += 1
        return self.folder / f"{self.number - 1} is done"

    def send(self, *sizes: int) -> None:
        done = self.order(*sizes)
        wait_until(done.exists, message=lambda: f"{done} is not there")

    def fill(self, server: Server, client: Wire) -> None:
        """Send what the kernel takes for a client that does not read: that is not the front's to hold.

        It is full when a second passes and nothing more has reached it, though more was sent.
        """
        waiting = 0
        with contextlib.suppress(AssertionError):
            while True:
                self.send(30_000)
                wait_until(lambda waiting=waiting: unsent(server, client)[0] > waiting, 1)
                waiting = unsent(server, client)[0]


def test_a_slow_reader_whose_stream_has_ended_does_not_keep_its_worker(server: Server, tmp_path: Path) -> None:
    """The last parts and the end come in one read, and the first of them is one too many for the client.

    The front must not stop listening to the worker for a call that is over.
    """
    steps = Steps(tmp_path)
    with begin(server, {"steps": str(tmp_path)}) as client:
        steps.fill(server, client)
        front = server.process.pid
        os.kill(front, signal.SIGSTOP)
        try:
            steps.send(90_000, 0)
            time.sleep(0.3)
        finally:
            os.kill(front, signal.SIGCONT)
        assert server.predict({"id": 1}).json() == {"id": 1}, "the worker hears nothing any more"
        read_to_the_end(client)


def test_a_client_that_leaves_its_stream_frees_the_worker(server: Server) -> None:
    with begin(server, ENDLESS):
        wait_until(lambda: is_held(server))
    assert server.predict({"id": 2}).json() == {"id": 2}


def test_a_stream_read_slowly_is_broken_off_when_others_wait(server: Server) -> None:
    """Reading now and then does not help: what counts is how long the worker stands still while others wait."""
    before = server.metric("panglot_connections_refused_total", limit="slow_reader")
    mark = len(server.lines)
    with begin(server, ENDLESS) as client:
        wait_until(lambda: is_held(server))
        other = send(server, {"id": 3})
        drip(client, 15, other.done)
        (answer,) = answers(server, [other])
        assert (answer.status, answer.json()) == (200, {"id": 3})
        server.wait_log(r"request \S+: its stream is broken off: its client reads too slowly", after=mark)
        assert client.wait_closed()
        assert not bytes(client.data).endswith(b"0\r\n\r\n"), "it looks as if it were complete"
    assert server.metric("panglot_connections_refused_total", limit="slow_reader") == before + 1


def test_a_stream_read_slowly_goes_on_while_nobody_waits(server: Server) -> None:
    before = server.metric("panglot_connections_refused_total", limit="slow_reader")
    with begin(server, {"parts": 60, "size": 100_000}) as client:
        wait_until(lambda: is_held(server))
        drip(client, 2 * HOLD)
        assert not client.closed
        read_to_the_end(client)
    assert server.metric("panglot_connections_refused_total", limit="slow_reader") == before


def test_a_stream_may_have_large_parts(server: Server) -> None:
    """One that is larger than what may wait for a slow reader is no sign of a slow reader."""
    before = server.metric("panglot_connections_refused_total", limit="stream_backlog")
    assert len(server.predict({"parts": 2, "size": 40_000_000}).content) > 80_000_000
    assert server.metric("panglot_connections_refused_total", limit="stream_backlog") == before


def test_as_many_slow_readers_as_workers_do_not_starve_the_others() -> None:
    with serving(PACKAGE, "--workers", "2", *FLAGS) as server:
        wait_until(lambda: len(server.workers()) == 2)
        readers = [begin(server, ENDLESS) for _ in range(2)]
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 120_000)
        (answer,) = answers(server, [send(server, {"id": 4})])
        assert (answer.status, answer.json()) == (200, {"id": 4})
        assert server.metric("panglot_connections_refused_total", limit="slow_reader") == 1, "one worker was enough"
        for reader in readers:
            reader.close()
        assert server.metric("panglot_worker_restarts_total") == 0


def test_a_worker_that_is_replaced_leaves_a_slow_reader_nothing_short(tmp_path: Path) -> None:
    """The end of the stream is still on its way when the worker, which has written it all, ends."""
    steps = Steps(tmp_path)
    with serving(PACKAGE, "--workers", "1", *FLAGS) as server, begin(server, {"steps": str(tmp_path)}) as client:
        steps.fill(server, client)
        steps.send(90_000)
        wait_until(lambda: is_held(server))
        steps.send(60_000, 0)
        (old,) = server.workers()
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not lives(old))
        time.sleep(1)
        read_to_the_end(client)


def test_calls_behind_a_stream_are_run_by_a_worker_that_is_free() -> None:
    """They were sent before anybody knew that it is a stream; it may take for ever."""
    with serving(PACKAGE, "--workers", "2", *FLAGS, "--slow-reader", "0") as server:
        wait_until(lambda: len(server.workers()) == 2)
        for number in range(40):
            # Both workers are known to be quick, and get several calls at once from now on.
            server.predict({"id": number})
        streams = {"parts": 0, "size": 10, "pause": 0.01}
        with Wire(server) as client:
            client.send(post(json.dumps(streams).encode()))
            asked = [send(server, {"id": number, "seconds": 0.01}) for number in range(20)]
            assert [answer.status for answer in answers(server, asked)] == [200] * 20
