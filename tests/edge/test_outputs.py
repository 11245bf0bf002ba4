"""What scripts return: odd numbers and types, far too much, what cannot be written at all."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import crowd
from support.after import measure
from support.interpreters import bare
from support.raw import post
from support.server import Server, serving, wait_until

NAN = "x-panglot-warning"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("edge_outputs", "--max-wait-ms", "20", "--max-batch", "8", "--max-output", "8MiB") as running:
        yield running
        assert running.metric("panglot_worker_restarts_total") == 0


def strict(text: bytes) -> Any:
    """JSON as other languages read it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


SENT = {
    "nan": ({"value": None, "more": [None, None, 1.5]}, 3),
    "largest": ([2**63 - 1, -(2**63), 2**64 - 1], 0),
    "beyond 64 bit": (2**64, 0),
    "smallest float": ([5e-324, 1.7976931348623157e308, 0.1], 0),
    "bytes inside": ({"a": "AP8=", "b": "eA==", "c": "eQ=="}, 0),
    "date": ({"a": "2026-01-02", "b": "2026-01-02T03:04:05"}, 0),
    "enum": ("red", 0),
    "uuid": ("00000000-0000-0000-0000-000000000001", 0),
    "tuple": ([1, [2, 3]], 0),
    "counter": ({"a": 2, "b": 1}, 0),
    "subclass": ({"a": 1}, 0),
    "keys": ({"1": "a", "2.5": "b", "null": "c", "false": "d"}, 0),
    "emoji": ('😀\u2028\u0000"\\', 0),
    "depth 64": (..., 0),
}

NUMPY: dict[str, tuple[Any, int]] = {
    "float16": (0.5, 0),
    "float16 inf": (None, 1),
    "float32": (0.10000000149011612, 0),
    "longdouble": (0.5, 0),
    "int8": (-128, 0),
    "int64": (2**63 - 1, 0),
    "uint64": (2**64 - 1, 0),
    "bool": (True, 0),
    "text": ("猫", 0),
    "bytes": ("YWI=", 0),
    "array": ([[0, 1, 2], [3, 4, 5]], 0),
    "array of float16": ([0.5, None, None], 2),
    "not contiguous": ([9, 7, 5, 3, 1], 0),
    "big endian": ([0, 1, 2], 0),
    "no dimension": (5, 0),
    "empty": ([], 0),
    "date": ("2026-01-02", 0),
    "objects that are numbers": ([1, "a", None], 0),
    "nan": (None, 1),
}

TORCH: dict[str, tuple[Any, int]] = {
    "tensor": ([[0, 1], [2, 3]], 0),
    "with gradient": ([1.0, 1.0], 0),
    "bfloat16": ([1.0, 1.0], 0),
    "scalar": (0.5, 0),
    "nan": ([None], 1),
}

REFUSED = (
    "far beyond", "surrogate", "surrogate key", "set", "object", "class", "function", "generator", "fraction",
    "tuple key", "cyclic list", "cyclic dict", "depth 65", "depth 100,000",
)  # fmt: skip


@pytest.mark.parametrize(("kind", "expected"), SENT.items(), ids=SENT.keys())
def test_values_that_can_be_sent(server: Server, kind: str, expected: tuple[Any, int]) -> None:
    check(server, {"kind": kind}, *expected)


@pytest.mark.parametrize(("kind", "expected"), NUMPY.items(), ids=NUMPY.keys())
def test_numpy(server: Server, kind: str, expected: tuple[Any, int]) -> None:
    check(server, {"numpy": kind}, {"value": expected[0]}, expected[1])


@pytest.mark.rest("torch")
@pytest.mark.parametrize(("kind", "expected"), TORCH.items(), ids=TORCH.keys())
def test_tensors(server: Server, kind: str, expected: tuple[Any, int]) -> None:
    check(server, {"torch": kind}, {"value": expected[0]}, expected[1])


def check(server: Server, asked: object, value: Any, replaced: int) -> None:
    """Valid JSON of the right value; a header says how many numbers JSON has no form for."""
    answer = server.predict(asked)
    assert answer.status_code == 200, server.log
    got = strict(answer.content)
    assert value is ... or got == value
    assert type(got) is type(value) or value is ...
    assert answer.headers.get(NAN, "") == (f"nan: {replaced} values replaced by null" if replaced else "")


def test_minus_zero_keeps_its_sign(server: Server) -> None:
    first, second = strict(server.predict({"kind": "minus zero"}).content)
    assert (math.copysign(1, first), math.copysign(1, second)) == (-1, 1)


def test_binary_answers_keep_every_bit(server: Server) -> None:
    answer = server.predict({"bytes": 1000})
    assert (answer.headers["content-type"], answer.content) == ("application/octet-stream", bytes(1000))


@pytest.mark.parametrize(("setting", "status", "text"), [("error", 500, None), ("platform", 200, b"NaN")])
def test_nan_by_setting(setting: str, status: int, text: bytes | None) -> None:
    with serving("edge_outputs", "--nan", setting) as server:
        answer = server.predict({"kind": "nan"})
        assert answer.status_code == status
        assert text is None or text in answer.content


def together(server: Server, bad: object) -> tuple[int, list[int]]:
    """Ask something bad and seven good things in one batch: the status of the bad one, what the good ones got."""

    async def story() -> list[Any]:
        guests = await crowd.arrive(server, 8)
        asked = [bad, *range(7)]
        work = [guest.send(post(json.dumps(value).encode())) for guest, value in zip(guests, asked, strict=True)]
        await crowd.together(work)
        replies = await crowd.together([guest.reply() for guest in guests])
        await crowd.leave(guests)
        return replies

    bad_reply, *good = asyncio.run(story())
    assert {reply.status for reply in good} == {200}
    return bad_reply.status, [json.loads(reply.body) for reply in good]


def test_what_cannot_be_written(server: Server) -> None:
    """500 for that item alone; the client is told nothing of it, the log names the place in the result."""
    for kind in REFUSED:
        mark = len(server.lines)
        answer = server.predict({"kind": kind}, headers={"x-request-id": "odd-one"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "bad_result"), kind
        assert "cannot be sent" in answer.json()["error"]["message"]
        server.wait_log("request odd-one", after=mark)
        server.wait_log(r"the result cannot be sent: \$", after=mark)
        assert together(server, {"kind": kind}) == (500, list(range(7))), kind


@pytest.mark.parametrize("kind", ["complex", "record", "objects"])
def test_arrays_that_cannot_be_written(server: Server, kind: str) -> None:
    assert together(server, {"numpy": kind}) == (500, list(range(7)))


@pytest.mark.rest("torch")
def test_tensors_that_cannot_be_written(server: Server) -> None:
    assert together(server, {"torch": "meta"}) == (500, list(range(7)))


def test_an_object_that_fails_when_it_is_looked_at(server: Server) -> None:
    assert together(server, {"kind": "hostile"}) == (500, list(range(7)))
    server.wait_log("RuntimeError: looked at")


def test_an_error_message_that_cannot_be_written(server: Server) -> None:
    """Even a client's error whose text UTF-8 cannot hold is an answer, and the worker lives on."""
    answer = server.predict({"kind": "error with a surrogate"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert "<script>" in answer.json()["error"]["message"]
    assert together(server, {"kind": "error with a surrogate"}) == (400, list(range(7)))


LARGE = {
    "ten million numbers": {"numbers": 10_000_000},
    "256 MiB of bytes": {"bytes": 256 << 20},
    "64 MiB of text": {"text": 64 << 20},
}


@pytest.mark.parametrize("asked", LARGE.values(), ids=LARGE.keys())
def test_far_too_much(server: Server, asked: dict[str, int]) -> None:
    """500 at the output limit, mates unaffected, and neither front nor worker keeps what was made."""
    (worker,) = server.workers()
    together(server, 1)
    before, held = measure(server), worker.memory_info().rss
    for _ in range(3):
        assert together(server, asked) == (500, list(range(7)))
    server.wait_log("it is larger than 8388608 bytes")
    wait_until(lambda: worker.memory_info().rss - held < 64 << 20)
    assert measure(server).memory - before.memory < 16 << 20


def test_the_limit_and_one_more(server: Server) -> None:
    assert server.predict({"bytes": 8 << 20}).status_code == 200
    assert server.predict({"bytes": (8 << 20) + 1}).status_code == 500
    numbers = 4 << 20
    assert len(server.predict({"numbers": numbers - 1}).content) == 2 * numbers - 1
    assert server.predict({"numbers": numbers}).status_code == 500


def test_without_orjson_the_same_is_sent_and_refused(tmp_path: Path) -> None:
    """The careful way in the worker, which has neither orjson nor numpy, gives the same answers."""
    with serving("edge_outputs", "--python", bare(tmp_path / "bare")) as server:
        for kind, (value, replaced) in SENT.items():
            check(server, {"kind": kind}, value, replaced)
        for kind in REFUSED:
            assert server.predict({"kind": kind}).status_code == 500, kind
        assert server.metric("panglot_worker_restarts_total") == 0
