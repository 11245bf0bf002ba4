"""Clients that take their time, and every limit on time of the HTTP side."""

from __future__ import annotations

import asyncio
import time

import pytest

from panglot.web.http1.pace import LINGER
from support import crowd
from support.after import measure, unharmed
from support.meanwhile import others_served
from support.raw import post
from support.server import Server, serving, wait_until
from support.traffic import times
from support.wire import Wire, is_open, unsent

GOOD = post(b"7")
PATIENT = 40.0
"""Seconds after which a connection that should have been closed counts as held; the limits are one second."""

SLOW_HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 4000
LONG = post(b" " * 10_000_000 + b"7")


def drip_from_many(server: Server, count: int, begin: bytes, rest: bytes) -> list[crowd.Guest]:
    """Many connections that send one byte now and then until the server closes them."""

    async def story() -> list[crowd.Guest]:
        guests = await crowd.arrive(server, count)
        await crowd.together([guest.send(begin) for guest in guests])
        await crowd.together([guest.drip(rest, 0.3, PATIENT) for guest in guests])
        await crowd.leave(guests)
        return guests

    return asyncio.run(story())


def test_slow_headers_from_many() -> None:
    """Heads that drip are refused with 408 at the header deadline; everybody else is served as ever."""
    with serving("function", "--header-timeout", "1s") as server, unharmed(server, 7, {"got": 7}):
        with others_served(server, 7, {"got": 7}):
            guests = drip_from_many(server, times(100, 500), b"", SLOW_HEAD)
        assert {bytes(guest.data[:12]) for guest in guests} == {b"HTTP/1.1 408"}
        assert all(guest.closed_after > 0.9 for guest in guests)


def test_slow_bodies_from_many() -> None:
    """Bodies that drip are refused with 408 by the rate rule, and what was held for them is free again."""
    flags = ("--body-rate", "1024", "--body-rate-after", "1s")
    with serving("function", *flags) as server, unharmed(server, 7, {"got": 7}):
        with others_served(server, 7, {"got": 7}):
            guests = drip_from_many(server, times(100, 500), post(b"", "Content-Length: 100000"), b"1" * 4000)
        assert {bytes(guest.data[:12]) for guest in guests} == {b"HTTP/1.1 408"}
        assert server.metric("panglot_request_memory_bytes") == 0


PACES = {
    "a pause inside the body": (("--body-gap", "1s"), 0.0, 1),
    "too slow a rate": (("--body-rate", "1MiB", "--body-rate-after", "1s"), 0.05, 4000),
    "too long in all": (("--body-timeout", "1s", "--body-rate", "0"), 0.05, 4000),
}


@pytest.mark.parametrize(("flags", "every", "pieces"), PACES.values(), ids=PACES.keys())
def test_each_limit_on_the_time_of_a_body(flags: tuple[str, ...], every: float, pieces: int) -> None:
    """Body gap, minimum rate and total time: each alone ends a body, and a body that keeps them is served."""
    with serving("function", *flags) as server:
        began = time.monotonic()
        with Wire(server, patience=PATIENT) as client:
            client.send(LONG[:1000])
            for number in range(pieces):
                client.send(LONG[1000 + number * 100 :][:100])
                if client.read(max(every, 0.001)) or client.closed:
                    break
            refused = client.reply()
            assert (refused.status, refused.headers["connection"]) == (408, "close")
            assert b"slow_body" in refused.body
            assert client.wait_closed()
        assert time.monotonic() - began > 0.9
        with Wire(server) as client:
            client.send(GOOD[:-1])
            time.sleep(0.2)
            client.send(GOOD[-1:])
            assert client.reply().status == 200
        assert server.metric("panglot_request_memory_bytes") == 0


def test_a_chunked_body_keeps_the_same_time() -> None:
    with serving("function", "--body-gap", "1s") as server, Wire(server, patience=PATIENT) as client:
        client.send(post(b"1\r\n7\r\n", "Transfer-Encoding: chunked"))
        assert client.reply().status == 408
        assert client.wait_closed()
        assert server.metric("panglot_request_memory_bytes") == 0


def test_a_silent_connection_is_closed() -> None:
    """Who connects and says nothing is closed at the header deadline, without an answer to no question."""
    with serving("function", "--header-timeout", "1s") as server, Wire(server) as client:
        assert client.is_silent(0.2)
        assert client.wait_closed(PATIENT)
        assert client.data == b""


def test_an_idle_connection_is_kept_then_closed() -> None:
    """A next request within the keep-alive time is served on the same connection; an idle one is closed."""
    with serving("function", "--keep-alive", "2s") as server, Wire(server) as client:
        for _ in range(3):
            client.send(GOOD)
            assert client.reply().status == 200
            time.sleep(0.2)
        assert client.wait_closed(PATIENT)
        assert client.data == b""


def test_the_header_deadline_holds_for_every_request_of_a_connection() -> None:
    with serving("function", "--header-timeout", "1s") as server, Wire(server, patience=PATIENT) as client:
        client.send(GOOD)
        assert client.reply().status == 200
        client.send(GOOD[:30])
        assert client.reply().status == 408
        assert client.wait_closed()


def test_a_slow_reader_is_dropped() -> None:
    """Who stops reading a large answer is dropped; the worker was free all the while, and the memory returns."""
    size = 50_000_000
    with serving("edge_big", "--write-stall", "1s", "--workers", "1") as server:
        assert server.predict({"size": size}).status_code == 200
        before = measure(server)
        with Wire(server, receive_buffer=65536) as client:
            client.send(post(b'{"size": %d}' % size))
            wait_until(lambda: server.metric("panglot_request_memory_bytes") > 30_000_000)
            assert server.predict({"size": 10}).content == b"x" * 10
            wait_until(lambda: server.metric("panglot_connections_refused_total", limit="write_stall") == 1, PATIENT)
            assert server.metric("panglot_request_memory_bytes") == 0
        wait_until(lambda: measure(server).memory - before.memory < 32 << 20, 10)
        assert server.metric("panglot_worker_restarts_total") == 0


def test_answers_do_not_pile_up_for_who_does_not_read() -> None:
    """A client that asks on without reading gets no further answers computed until it reads; then it gets them all."""
    with serving("edge_big", "--write-stall", "60s") as server, Wire(server, receive_buffer=65536) as client:
        size = 20_000_000
        client.send(*[post(b'{"size": %d}' % size)] * 6, pause=0.05)
        server.wait_log("made")
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 1_000_000)
        time.sleep(0.5)
        assert server.log.count("made") <= 2
        for _ in range(6):
            assert len(client.reply().body) == size
        assert server.metric("panglot_request_memory_bytes") == 0


def test_answers_nobody_reads_count_as_held() -> None:
    """Large answers on their way count to the byte budget, so that slow readers cannot fill the memory."""
    flags = ("--request-memory", "30MiB", "--write-stall", "60s")
    with serving("edge_big", *flags) as server:
        readers = [Wire(server, receive_buffer=65536) for _ in range(2)]
        for number, reader in enumerate(readers, 1):
            reader.send(post(b'{"size": 25000000}'))
            wait_until(lambda number=number: server.metric("panglot_request_memory_bytes") > number * 15_000_000)
        refused = server.predict({"size": 1})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "memory")
        assert int(refused.headers["retry-after"]) >= 1
        for reader in readers:
            reader.close()
        wait_until(lambda: server.predict({"size": 1}).status_code == 200)


def test_a_large_last_answer_is_sent_whole() -> None:
    """`Connection: close` ends the connection after the answer, however long a steady reader takes for it."""
    with serving("edge_big") as server, Wire(server, receive_buffer=65536, patience=30) as client:
        size = 12_000_000
        client.send(post(b'{"size": %d}' % size, "Connection: close"))
        client.read_slowly(2 * LINGER)
        assert server.metric("panglot_request_memory_bytes") > 0, "all of it is on its way: nothing could be lost"
        assert len(client.reply().body) == size
        assert client.wait_closed()


def test_a_few_unread_bytes_do_not_keep_a_connection() -> None:
    """An idle connection whose last bytes nobody reads is not kept beyond the write stall."""
    flags = ("--write-stall", "3s", "--keep-alive", "600s", "--max-requests-per-connection", "100000")
    with serving("edge_big", *flags) as server, Wire(server, receive_buffer=8192) as client:
        for _ in range(10):
            client.send(*[post(b'{"size": 40000}')] * 10)
            time.sleep(0.1)
            if unsent(server, client)[0] > 100_000:
                break
        assert unsent(server, client)[0] > 100_000, "the client's kernel takes it all"
        assert is_open(server, client)
        wait_until(lambda: not is_open(server, client), 20)
