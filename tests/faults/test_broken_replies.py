"""Workers whose replies break the protocol: the request of each is answered at once, and the log names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.server import Server, serving
from support.traffic import ask_all

SCRIPT = """
import gc
import time

from panglot_worker.scripts import current
from panglot_worker.line import wire
from panglot_worker.line.port import Port

PORT = next(thing for thing in gc.get_objects() if isinstance(thing, Port))


def say(flags, item_id, body):
    frame = wire.reply_frame([wire.Reply(item_id, 200, flags, wire.NO_TIMES, b"", body)], PORT.generation)
    PORT.send(frame)


def predict(item):
    own = current.running[0].id
    if item.get("op") == "stream":
        return parts(own)
    if "flags" in item:
        body = wire.placed(100_000) if item["flags"] & wire.SHARED else b"what is this?"
        say(item["flags"], item.get("item", own), body)
        time.sleep(60)
    return item


def parts(own):
    yield "one"
    say(wire.FETCH, own, b"what is this?")
    time.sleep(60)
    yield "two"
"""
MORE, PASS, SHARED, FETCH = 1, 4, 8, 64
PAUSES = ("--restart-delay", "60", "--restart-delay-max", "60")
"""A pause that nobody gets through: a death by a reply has a culprit, and another worker starts at once."""
LONG = ("--timeout", "100", "--run-timeout", "100")
BROKEN = {
    "addresses that are none": (FETCH, r"a reply with FETCH holds no list of URIs"),
    "a result for a next pool that there is not": (PASS, r"a result is handed on, and there is no next pool"),
    "a body in memory that was not lent": (SHARED, r"100000 bytes in shared memory that was not lent"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("package")
    (folder / "model.py").write_text(SCRIPT)
    with serving(folder, *PAUSES, *LONG) as running:
        yield running
        assert running.metric("panglot_requests_in_progress") == 0
    assert "Traceback" not in running.log


@pytest.mark.parametrize(("flags", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_its_request_fails_at_once_and_is_named(server: Server, flags: int, said: str) -> None:
    mark = len(server.lines)
    (answer,) = ask_all(server, [{"id": 1, "flags": flags}])
    assert (answer.status, answer.code) == (500, "bad_reply")
    request_id = answer.headers["x-request-id"]
    line = rf"worker 0 broke the protocol: {said} \(in its reply to item \d+, request {request_id}\)"
    server.wait_log(line, after=mark)
    assert ask_all(server, [{"id": 2}])[0].json() == {"id": 2}


def test_its_stream_is_broken_off_at_once(server: Server) -> None:
    """A stream has no deadline any more once it has begun."""
    mark = len(server.lines)
    lines = []
    with (
        pytest.raises(httpx.RemoteProtocolError),
        server.client.stream("POST", "/predict", json={"op": "stream"}) as answer,
    ):
        lines += list(answer.iter_lines())
    request_id = answer.headers["x-request-id"]
    server.wait_log(rf"broke the protocol: .* \(in its reply to item \d+, request {request_id}\)", after=mark)
    assert ask_all(server, [{"id": 3}])[0].json() == {"id": 3}


@pytest.mark.parametrize("flags", [0, MORE])
def test_a_reply_to_nobody_costs_nobody_an_answer(server: Server, flags: int) -> None:
    """What the worker ran meanwhile runs once more, and is answered when it does the same again."""
    mark = len(server.lines)
    (answer,) = ask_all(server, [{"id": 4, "flags": flags, "item": 123456789}])
    assert (answer.status, answer.code) == (500, "worker_died")
    server.wait_log(r"broke the protocol: .* \(in a reply to item 123456789\)", after=mark)
    assert ask_all(server, [{"id": 5}])[0].json() == {"id": 5}


def test_the_next_requests_are_not_lost_with_the_worker(tmp_path: Path) -> None:
    """They come while the worker is being ended. Without reruns each would be answered 500, though it never ran."""
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path, *LONG, "--no-rerun", "--restart-delay-max", "0.1") as server:
        for number in range(10):
            assert ask_all(server, [{"id": number, "flags": PASS}])[0].code == "bad_reply"
            assert ask_all(server, [{"id": number}])[0].json() == {"id": number}


def test_several_in_a_row_are_no_reason_for_a_pause(server: Server) -> None:
    """The requests are to blame: their workers are replaced at once, however many follow each other."""
    for number in range(3):
        (answer,) = ask_all(server, [{"id": number, "flags": PASS}])
        assert (answer.status, answer.code) == (500, "bad_reply")
    assert ask_all(server, [{"id": 6}])[0].json() == {"id": 6}
