"""Rows of the platform's contract that need servers of their own: flags, variables, loading, stages, streams."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.server import ROOT, wait_until
from support.side_by_side import INTERNAL, Like, both, differs
from support.tiinfer import Heard, Served, command, heard, model, ours, workers, write

pytestmark = pytest.mark.timeout(180)


def test_timeout() -> None:
    with both("tiinfer_ops", "--timeout", "600") as pair:
        original, own = (server.ask({"op": "sleep", "seconds": 2}) for server in pair)
        assert Heard(408, Like("timeout")) == original
        assert own == Heard(408, "inference timeout")
    differs("Text of a timeout")


def test_the_next_request_after_a_timeout_waits() -> None:
    """Their worker is interrupted by a signal; ours finishes its call, and the next request waits for it."""
    differs("After a timeout")
    with ours("tiinfer_ops", "--timeout", "400") as server:
        assert server.ask({"op": "sleep", "seconds": 1}).status == 408
        wait_until(lambda: server.ask({"a": 1}) == Heard(200, {"a": 1}))


def test_queue_full() -> None:
    with both("tiinfer_ops", "--capacity", "2", "--timeout", "10000") as pair:
        for server in pair:
            answers = server.ask_all([{"op": "sleep", "seconds": 0.25}] * 8)
            refusals = [answer for answer in answers if answer.status != 200]
            assert set(map(repr, refusals)) == {repr(Heard(429, "too many request: task queue is full"))}
            assert len(refusals) < 8


def test_body_too_large() -> None:
    with both("tiinfer_ops", "--max-request-size", "1000") as pair:
        for server in pair:
            assert server.ask("x" * 900).status == 200
            assert server.ask("x" * 2000) == Heard(413, "request body is too large")


def test_shutting_down() -> None:
    with both("tiinfer_ops", "--timeout", "10000") as pair:
        for server in pair:
            codes, slow = stopping(server)
            assert codes == {"/": Heard(503, "gracefully shutting down"), "POST": codes["/"]}
            assert slow == Heard(200, {"op": "sleep", "seconds": 3})


def stopping(server: Served) -> tuple[dict[str, Heard], Heard]:
    """SIGTERM with one slow request under way: what kept connections hear meanwhile, and what that request hears."""
    slow: list[Heard] = []
    thread = threading.Thread(
        target=lambda: slow.append(
            heard(httpx.post(server.url("/inference"), json={"op": "sleep", "seconds": 3}, timeout=30))
        )
    )
    with httpx.Client(base_url=server.url(), timeout=10) as get_client, httpx.Client(base_url=server.url()) as poster:
        for client in (get_client, poster):
            client.get("/")
        thread.start()
        wait_until(lambda: server.metric("mosec_service_remaining_task") == 1)
        server.process.send_signal(signal.SIGTERM)
        told: list[Heard] = []

        def has_heard() -> bool:
            """Until it has heard the signal it answers as before."""
            told.append(heard(get_client.get("/")))
            return told[-1].status != 200

        wait_until(has_heard)
        codes = {"/": told[-1], "POST": heard(poster.post("/inference", json={"a": 1}))}
    thread.join()
    return codes, slow[0]


def test_worker_dies() -> None:
    with both("tiinfer_ops", "--timeout", "1500") as (original, own):
        assert (original.ask({"op": "die"}).status, original.ended()) == (408, 0)
        assert own.ask({"op": "die"}) == INTERNAL
        wait_until(lambda: own.ask({"a": 1}) == Heard(200, {"a": 1}))
    differs("A worker that dies")


# Loading

LOADS = {
    "2.1 load returns False": (model(load="return False"), 0, 3, "load() returned False"),
    "2.1 load raises": (model(load="raise ValueError('no weights')"), 0, 3, "ValueError: no weights"),
    "4.3 load returns nothing": (model(load="pass"), 0, 3, "load() returned None"),
    "2.1 no model at all": ("import tiinfer\n", 1, 3, "there is no subclass of tiinfer.Model"),
}


@pytest.mark.parametrize("name", LOADS)
def test_failed_loads(name: str, tmp_path: Path) -> None:
    script, their_code, our_code, words = LOADS[name]
    folder = write(tmp_path / "own", script)
    with both(folder, ready=False) as (original, own):
        assert (original.ended(), own.ended()) == (their_code, our_code)
        assert words in own.lines[-1]
    differs("Exit code of a failed load")


def test_ready_without_a_result(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", model(load="self.ready = True"))
    with both(folder, ready=False) as (original, own):
        assert original.ended() == 0
        own.wait_ready()
        assert own.ask({"a": 1}) == Heard(200, {"a": 1})
        own.wait_log("load\\(\\) returned nothing, and self.ready is true")
    differs("What a load must return")


CLASSES = {
    "4.5 Alpha before Zed": (
        model("predict: return 'Zed'", name="Zed") + "class Alpha(Zed):\n    predict = lambda self, request: 'Alpha'\n",
        "Alpha",
        "",
    ),
    "4.5 Model imported by name": (
        model("predict: return 'MyNet'", name="MyNet", before="from tiinfer import Model"),
        "MyNet",
        differs("Which class is served"),
    ),
    "4.20 append_worker beside a model": (
        workers("W: return 'W'", W="num=1") + model("predict: return 'Own'"),
        "Own",
        "",
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_class_choice(name: str, tmp_path: Path) -> None:
    script, expected, difference = CLASSES[name]
    folder = write(tmp_path / "own", script)
    with both(folder, ready=False) as (original, own):
        own.wait_ready()
        assert own.ask({}) == Heard(200, expected)
        if difference:
            assert original.ended() == 0
        else:
            original.wait_open()
            assert original.ask({}) == Heard(200, expected)


@pytest.mark.document("tiinfer.04")
def test_self_workers() -> None:
    """`self.workers` is not looked at there, and TI_INFERENCE_NUMS is."""
    values = [{"id": number, "sleep": 0.1} for number in range(8)]
    with both("tiinfer_workers", env={"TI_INFERENCE_NUMS": "3"}) as pair:
        for server in pair:
            wait_until(lambda server=server: len(pids(server.ask_all(values))) == 3)
    with both("tiinfer_workers") as (original, own):
        assert len(pids(original.ask_all(values))) == 1
        wait_until(lambda: len(pids(own.ask_all(values))) == 2)
    differs("self.workers")


def pids(answers: list[Heard]) -> set[int]:
    return {answer.body["pid"] for answer in answers}


# Stages and batches

NAMES = ("preprocess", "predict", "postprocess")
STEPS = [
    f"{name}: return [[*item, '{name}'] for item in request] if isinstance(request[0], list) else [*request, '{name}']"
    for name in NAMES
]
BOTH, BATCH = {"TI_PREPROCESS_NUMS": "1", "TI_POSTPROCESS_NUMS": "1"}, {"TI_INFERENCE_MAX_BATCH_SIZE": "4"}
SPLITS: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "2.4 one stage": ({}, "", NAMES),
    "2.4 both": (BOTH, "", NAMES),
    "2.4 only preprocess": ({"TI_PREPROCESS_NUMS": "1"}, "", NAMES[:2]),
    "2.4 only postprocess": ({"TI_POSTPROCESS_NUMS": "1"}, "", NAMES[1:]),
    "1.3 set by the script": ({}, "tiinfer.set_ti_preprocess_nums(1)", NAMES[:2]),
    "2.4 batch, all in one stage": (BATCH, "", NAMES),
    "2.4 batch, both": (BOTH | BATCH, "", NAMES),
    "3 a count that is no number": ({"TI_INFERENCE_NUMS": "two"}, "", NAMES),
}


@pytest.mark.document("tiinfer.01")
@pytest.mark.parametrize("name", SPLITS)
def test_stages(name: str, tmp_path: Path) -> None:
    env, before, expected = SPLITS[name]
    folder = write(tmp_path / "own", model(*STEPS, before=before))
    with both(folder, env=env) as (original, own):
        assert original.ask(["start"]) == Heard(200, ["start", *expected])
        assert own.ask(["start"]) == Heard(200, ["start", *NAMES])
    if expected != NAMES:
        differs("One of the two counts")


DICT_STYLE = model("preprocess: return request if 'images' in request else {'error': 'invalid param'}")


def test_batches_for_a_dict_style_script(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", DICT_STYLE)
    with both(folder, env={"TI_INFERENCE_MAX_BATCH_SIZE": "4"}) as (original, own):
        assert original.ask({"images": []}) == Heard(200, "error")
        assert own.ask({"images": []}) == INTERNAL
        own.wait_log("hands lists to model_service.py:6 preprocess, which seems to expect a dict")
    differs("A batch result that is no list")


def test_one_bad_item_in_a_batch(tmp_path: Path) -> None:
    values = [{"id": number, "bad": number == 3} for number in range(6)]
    with both("tiinfer_batch", "--timeout", "20000", env={"TI_INFERENCE_MAX_BATCH_SIZE": "8"}) as pair:
        original, own = (together(server, values, tmp_path / f"gate{place}") for place, server in enumerate(pair))
        assert [answer.status for answer in original] == [500] * 6
        assert [answer.status for answer in own] == [500 if number == 3 else 200 for number in range(6)]
    differs("A bad item in a batch")


def together(server: Served, values: list[Any], gate: Path) -> list[Heard]:
    """The answers to values that wait together behind one that waits for the gate."""
    with ThreadPoolExecutor(2) as threads:
        threads.submit(server.ask_all, [{"id": -1, "gate": str(gate)}])
        wait_until(lambda: server.metric("mosec_service_remaining_task") == 1)
        time.sleep(0.2)
        answers = threads.submit(server.ask_all, values)
        wait_until(lambda: server.metric("mosec_service_remaining_task") == 1 + len(values))
        gate.touch()
        return answers.result()


NEGATIVE = ({"TI_PREPROCESS_NUMS": "-1"}, {"TI_INFERENCE_NUMS": "0"})


@pytest.mark.parametrize("env", NEGATIVE, ids=str)
def test_counts_that_are_too_small(env: dict[str, str]) -> None:
    with ours_failing(env) as own:
        assert own.ended() == 3
        assert "must be at least" in own.lines[-1]
    differs("Counts below their least")


@contextlib.contextmanager
def ours_failing(env: dict[str, str]) -> Iterator[Served]:
    server = Served(command("--port", "0"), ROOT / "tests/packages/tiinfer_ops", env, "http://127.0.0.1:1")
    try:
        yield server
    finally:
        server.stop()


# Pipelines of mosec workers


@pytest.fixture(scope="module")
def stream() -> Iterator[tuple[Served, Served]]:
    with both("tiinfer_stream") as pair:
        yield pair


STREAMS = (
    {"words": ["one", "two\nlines", ""]},
    {"words": []},
    {"words": ["one", "fail"]},
    {"words": ["fail"]},
    {"words": ["wrong"]},
    {"nothing": 1},
)


@pytest.mark.parametrize("value", STREAMS, ids=json.dumps)
def test_server_sent_events(value: Any, stream: tuple[Served, Served]) -> None:
    def parts(server: Served) -> tuple[int, str, str]:
        response = server.client.post("/inference", json=value)
        return response.status_code, response.headers["content-type"], response.text

    assert parts(stream[0]) == parts(stream[1])


def test_an_empty_body_on_a_stream(stream: tuple[Served, Served]) -> None:
    assert {repr(server.ask(content=b"")) for server in stream} == {repr(Heard(200, "no data provided"))}


def test_pipeline() -> None:
    """Three stages in a row: numbers, text, statuses. Which process answers is not compared."""
    with both("tiinfer_pipeline") as (original, own):
        for value in ({"number": 3}, {"number": 13}, {"number": 7}, {"text": 1}, [1]):
            expected, got = (comparable(server.ask(value)) for server in (original, own))
            assert got == expected
        for server in (original, own):
            assert server.client.post("/inference", json={"number": 3}).headers["content-type"] == "text/csv"


def comparable(answer: Heard) -> Heard:
    return Heard(answer.status, re.sub(r"(first|second),\d", "who", str(answer.body)))
