"""Large bodies lie in memory shared with the workers: each answer belongs to its request, however its body comes."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, serving, wait_until
from support.traffic import times
from support.wire import Wire

FLAGS = ("--header-timeout", "2s", "--body-gap", "1s", "--max-body", "8MiB", "--max-batch", "16")
BORDERS = (4096, 16384, 32768, 65536, 262144, 1 << 20)
SIZES = sorted({max(1, border + by) for border in BORDERS for by in (-1, 0, 1)} | {100, 50_000, 3_000_000, 8 << 20})
SHARED = "panglot_shared_bodies"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("body_digests", *FLAGS) as running:
        yield running
        nothing_is_held(running)


def nothing_is_held(server: Server) -> None:
    """Neither bytes nor shared memory, once nobody needs it."""
    assert server.predict({"check": 1}).json()["wrong"] == []
    for name in ("panglot_request_memory_bytes", "panglot_requests_in_progress", SHARED, "panglot_shared_memory_bytes"):
        wait_until(lambda name=name: server.metric(name) == 0, 20, lambda name=name: f"{name}: {server.metric(name)}")


def digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def head(length: int, *lines: str, kind: str = "x/y") -> bytes:
    size = f"Content-Length: {length}" if length >= 0 else "Transfer-Encoding: chunked"
    start = ("POST /predict HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", size)
    return "\r\n".join([*start, *lines, "", ""]).encode()


def ask(body: bytes, kind: str = "x/y") -> bytes:
    return head(len(body), kind=kind) + body


def in_pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """The same bytes, cut at a few random places."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(4)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def digests(client: Wire, count: int) -> list[str]:
    replies = client.replies(count)
    assert {reply.status for reply in replies} == {200}, replies[-1]
    return [json.loads(reply.body)["digest"] for reply in replies]


@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_every_border(size: int, server: Server) -> None:
    chance = random.Random(size)
    with Wire(server, patience=30) as client:
        for _ in range(3):
            body = chance.randbytes(size)
            client.send(*in_pieces(ask(body), chance), pause=0.002)
            assert digests(client, 1) == [digest(body)]


def test_trains_of_requests_of_all_sizes_in_pieces_of_all_sizes(server: Server) -> None:
    """Bytes of the next request behind a body are not lost, nor taken for the body's."""
    for seed in range(times(12, 400)):
        chance = random.Random(seed)
        bodies = [chance.randbytes(chance.choice(SIZES[:-2]) + chance.randrange(-3, 40)) for _ in range(8)]
        with Wire(server, patience=30) as client:
            client.send(*in_pieces(b"".join(map(ask, bodies)), chance))
            assert digests(client, 8) == [digest(body) for body in bodies]


def test_the_same_head_before_other_bodies(server: Server) -> None:
    """A head that comes again is not parsed again; each body is its own request, however the bytes are cut."""
    chance = random.Random(7)
    bodies = [chance.randbytes(50_000) for _ in range(16)]
    same = len(head(50_000))
    with Wire(server, patience=30) as client:
        for body in bodies[:3]:
            client.send(ask(body))
            assert digests(client, 1) == [digest(body)]
        # Alone; with a part of the body; without its last byte; with all of the body and part of the next head.
        for cut in (same, same + 1, same + 5000, same + 49_999, same - 1, 1):
            client.send(ask(bodies[3])[:cut], ask(bodies[3])[cut:], pause=0.05)
            assert digests(client, 1) == [digest(bodies[3])]
        client.send(*in_pieces(b"".join(map(ask, bodies[4:])), chance))
        assert digests(client, 12) == [digest(body) for body in bodies[4:]]
        # A head of the same length that means something else.
        client.send(ask(bodies[0], "x/y"), head(50_000, kind="x/z") + bodies[1], ask(b"small"), ask(bodies[2]))
        assert digests(client, 4) == [digest(body) for body in (bodies[0], bodies[1], b"small", bodies[2])]


def test_the_same_head_meets_limits_each_time() -> None:
    with serving("body_digests", "--max-requests-per-connection", "5") as server:
        body = bytes(50_000)
        with Wire(server) as client:
            for left in reversed(range(5)):
                client.send(ask(body))
                reply = client.reply()
                assert reply.status == 200
                assert (reply.headers.get("connection") == "close") is not left
            assert client.wait_closed()
        nothing_is_held(server)


def test_a_client_that_waits_for_100_and_one_that_sends_chunks(server: Server) -> None:
    body = random.Random(1).randbytes(100_000)
    with Wire(server) as client:
        client.send(head(len(body), "Expect: 100-continue"))
        assert client.reply().status == 100
        client.send(body)
        assert digests(client, 1) == [digest(body)]
        client.send(head(-1))
        for start in range(0, len(body), 30_000):
            piece = body[start : start + 30_000]
            client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
        assert digests(client, 1) == [digest(body)]


def test_forms_and_json_of_any_size(server: Server) -> None:
    for size in (10, 20_000, 300_000):
        first, second = random.Random(size).randbytes(size), b"small"
        answer = server.client.post("/predict", files={"a": ("a", first), "b": ("b", second)})
        assert answer.json() == {"a": digest(first), "b": digest(second)}
    assert server.predict({"padding": "ü" * 100_000}).json() == {}


def test_what_a_script_keeps_is_its_own(server: Server) -> None:
    """A file in a global, a view of one, one that a thread looks at later: none changes when others come."""
    chance = random.Random(2)
    for kind in ("x/keep", "x/view", "x/thread") * 4:
        for size in (1000, 20_000, 200_000):
            body = chance.randbytes(size)
            answer = server.client.post("/predict", content=body, headers={"content-type": kind})
            assert answer.json()["digest"] == digest(body)
    answer = server.predict({"check": 1}).json()
    assert (answer["kept"], answer["wrong"]) == (36, [])


def test_what_a_script_was_given_cannot_be_written(server: Server) -> None:
    for size in (1000, 20_000):
        answer = server.client.post("/predict", content=bytes(size), headers={"content-type": "x/write"})
        assert answer.json()["refused"]


def test_large_answers_come_back_as_they_are(server: Server) -> None:
    for size in (1, *SIZES[:-1], *SIZES[:-1]):
        body = random.Random(size).randbytes(size)
        answer = server.client.post("/predict", content=body, headers={"content-type": "x/echo"})
        assert answer.content == body


def test_a_slow_reader_gets_its_own_answer(server: Server) -> None:
    """While an answer waits in shared memory for its client, others come and go."""
    body = random.Random(3).randbytes(8_000_000)
    # The server lends memory for answers once it has seen that they are large.
    assert server.client.post("/predict", content=body, headers={"content-type": "x/echo"}).content == body

    def in_progress() -> float:
        return server.metric("panglot_requests_in_progress")

    with Wire(server, patience=30) as slow:
        slow.send(ask(body, "x/echo"))
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 0 and not in_progress())
        for number in range(8):
            other = random.Random(number).randbytes(6_000_000)
            assert server.client.post("/predict", content=other, headers={"content-type": "x/echo"}).content == other
        assert server.metric("panglot_request_memory_bytes") > 0, "all of it is on its way: nothing waited"
        assert slow.reply().body == body


def test_uploads_that_stall_or_are_given_up_leave_nothing(server: Server) -> None:
    stalled = Wire(server)
    stalled.send(head(1_000_000), bytes(100_000))
    for _ in range(times(20, 500)):
        with Wire(server) as client:
            client.send(head(1_000_000), bytes(random.randrange(200_000)))
    assert stalled.reply().status == 408
    assert stalled.wait_closed()
    stalled.close()
    nothing_is_held(server)


def test_memory_is_taken_for_what_has_come_and_not_for_what_is_announced() -> None:
    """On a server of its own: the others wait for one second for the next byte, and all are to be there at once."""
    with serving("body_digests", "--max-body", "8MiB", "--max-batch", "16") as server:
        clients = [Wire(server) for _ in range(30)]
        for client in clients:
            client.send(head(8 << 20), b"x")
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == 30)
        assert server.metric("panglot_shared_memory_bytes") <= 30 * 65536
        for client in clients:
            client.close()
        nothing_is_held(server)


def test_the_budget_counts_a_body_once(tmp_path: Path) -> None:
    flags = ("--request-memory", "1MiB", "--max-body", "1MiB", "--small-share", "0.1", "--timeout", "60s")
    with serving("body_digests", *flags) as server, Wire(server) as busy, Wire(server) as again:
        body = bytes(300_000)
        for _ in range(2):
            again.send(ask(body))
            assert digests(again, 1) == [digest(body)]
        gate = tmp_path / "gate"
        busy.send(ask(json.dumps({"gate": str(gate)}).encode(), "application/json"))
        server.wait_log("waits")
        clients = [Wire(server) for _ in range(4)]
        for client in clients[:3]:
            client.send(ask(body))
        wait_until(lambda: server.metric("panglot_request_memory_bytes") >= 900_000)
        clients[3].send(ask(body))
        assert clients[3].reply().status == 503
        # The head is known on this connection.
        again.send(ask(body))
        assert again.reply().status == 503
        gate.touch()
        for client in clients[:3]:
            assert digests(client, 1) == [digest(body)]
        for client in clients:
            client.close()
        nothing_is_held(server)


@pytest.mark.parametrize("flags", [("--share-from", "0"), ("--inline",)], ids=["none", "inline"])
def test_the_same_without_shared_memory_and_in_one_process(flags: tuple[str, ...]) -> None:
    with serving("body_digests", *flags) as server:
        for size in (100, 20_000, 1_000_000):
            body = random.Random(size).randbytes(size)
            for kind in ("x/y", "x/keep"):
                answer = server.client.post("/predict", content=body, headers={"content-type": kind})
                assert answer.json()["digest"] == digest(body)
            assert server.client.post("/predict", content=body, headers={"content-type": "x/echo"}).content == body
        answer = server.predict({"check": 1}).json()
        assert (answer["kept"], answer["wrong"]) == (3, [])


def test_a_system_without_memory_files() -> None:
    with serving("body_digests", largest_file=1 << 20) as server:
        server.wait_log("no shared memory for bodies .*: they travel by the workers' sockets")
        body = random.Random(5).randbytes(700_000)
        for _ in range(3):
            answer = server.client.post("/predict", content=body, headers={"content-type": "x/echo"})
            assert answer.content == body


@pytest.mark.one_front("each front has buffers of its own")
def test_more_bodies_than_buffers_of_their_size() -> None:
    """Four arena of a mebibyte are taken by uploads that have hardly begun: further bodies travel by the sockets."""
    with serving("body_digests", "--request-memory", "4MiB", "--max-batch", "4") as server:
        clients = [Wire(server) for _ in range(8)]
        for client in clients:
            client.send(head(1_000_000), bytes(1000))
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == 8000)
        assert server.metric(SHARED) == 4
        body = random.Random(6).randbytes(1_000_000)
        with Wire(server) as client:
            client.send(ask(body, "x/echo"))
            assert client.reply().body == body
        for client in clients:
            client.send(bytes(10_000))
            client.close()
        nothing_is_held(server)
