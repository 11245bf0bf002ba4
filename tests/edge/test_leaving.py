"""Clients that leave: while they wait, while their batch runs, while they upload."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support import crowd
from support.after import measure, unharmed
from support.raw import post
from support.server import Server, serving, wait_until
from support.traffic import AT_ONCE, Gate, answers, occupy, rounds, send, times
from support.wire import Wire

NORMAL, EXPECTED = {"id": 1}, {"id": 1, "twice": 2}
SINGLE, BATCH = "fault_script/single.py", "fault_script/batch.py"


def ask(**fields: object) -> bytes:
    return post(json.dumps(fields).encode())


@pytest.mark.parametrize("script", [SINGLE, BATCH])
def test_a_crowd_that_leaves_the_queue(script: str, tmp_path: Path) -> None:
    """None of the requests of clients that left is executed, and their places are free at once."""
    count = times(200, 250)

    async def come_and_go(server: Server) -> None:
        guests = await crowd.arrive(server, count)
        await crowd.together([guest.send(ask(id=500 + n, op="note")) for n, guest in enumerate(guests)])
        await crowd.in_thread(wait_until, lambda: server.metric("panglot_queue_length") == count)
        await crowd.leave(guests)

    with serving(script) as server, unharmed(server, NORMAL, EXPECTED):
        gate = Gate(tmp_path / "gate")
        plug = occupy(server, gate, 4)
        asyncio.run(come_and_go(server))
        wait_until(lambda: server.metric("panglot_queue_length") == 0)
        assert server.metric("panglot_request_memory_bytes") < 1000
        assert server.metric("panglot_dropped_total", reason="disconnected") == count
        late = send(server, {"id": 7, "op": "note"})
        gate.open()
        assert [answer.status for answer in answers(server, [plug, late])] == [200, 200]
        server.wait_log("item 7 was executed")
        assert "item 5" not in server.log


def test_mates_of_a_client_that_left_mid_batch(tmp_path: Path) -> None:
    """The batch goes on, its mates get their own answers, and the log has no traceback."""
    with serving(BATCH) as server:
        for number, _ in enumerate(rounds(2, 20)):
            with unharmed(server, NORMAL, EXPECTED):
                mark = len(server.lines)
                first, second = Gate(tmp_path / f"{number}-1"), Gate(tmp_path / f"{number}-2")
                plug = occupy(server, first, 4)
                with Wire(server) as client:
                    client.send(ask(**second.holding(50)))
                    mates = [send(server, {"id": id}) for id in range(51, 54)]
                    wait_until(lambda: server.metric("panglot_queue_length") == 4)
                    first.open()
                    server.wait_log("item 50 waits", after=mark)
                assert "batch of 4" in server.log_after(mark)
                wait_until(lambda: server.metric("panglot_requests_in_progress") == 3)
                second.open()
                got = answers(server, [plug, *mates], AT_ONCE)
                assert [answer.json()["id"] for answer in got] == [4, 51, 52, 53]
    assert "Traceback" not in server.log


UPLOADS = {
    "a length": post(b"x" * 900_000)[:-450_000],
    "chunks": post(b"7a120\r\n" + b"x" * 500_000 + b"\r\n", "Transfer-Encoding: chunked"),
    "a multipart body": post(
        b'--B\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n' + b"x" * 450_000,
        "Content-Length: 900000",
    ).replace(b"application/json", b"multipart/form-data; boundary=B"),
    "only a head": post(b"", "Content-Length: 900000"),
}


@pytest.mark.parametrize("half", UPLOADS.values(), ids=UPLOADS.keys())
def test_uploads_that_break_off(half: bytes, tmp_path: Path) -> None:
    """After many broken uploads nothing is held, in memory or on disk; the budget of two uploads proves it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    whole = {"content": b" " * 899_999 + b"7", "headers": {"content-type": "application/json"}}
    with serving("function", "--request-memory", "1800000", env={"TMPDIR": str(scratch)}) as server:
        assert server.predict(**whole).json() == {"got": 7}
        before, files = measure(server), sorted(scratch.rglob("*"))
        for _ in range(times(100, 10_000)):
            with Wire(server) as client:
                client.send(half)
        # Those still in the accept queue hold their share for a moment, each in its turn.
        wait_until(lambda: all(server.predict(**whole).status_code == 200 for _ in range(10)))
        wait_until(lambda: measure(server).fds == before.fds)
        assert server.metric("panglot_request_memory_bytes") == 0
        assert sorted(scratch.rglob("*")) == files
        now = measure(server)
        assert now.threads == before.threads
        assert now.memory - before.memory < 32 << 20
    assert "Traceback" not in server.log


def test_a_half_sent_upload_holds_what_came_while_it_lasts() -> None:
    """What was announced and has not come takes no room from others."""
    whole = {"content": b" " * 899_999 + b"7", "headers": {"content-type": "application/json"}}
    with serving("function", "--request-memory", "1500000") as server:
        with Wire(server) as first, Wire(server) as second:
            second.send(UPLOADS["only a head"])
            assert server.predict(**whole).status_code == 200
            first.send(UPLOADS["a length"])
            wait_until(lambda: server.metric("panglot_request_memory_bytes") > 400_000)
            assert server.predict(**whole).status_code == 503
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)
        assert server.predict(**whole).status_code == 200
