"""mosec workers in a row, each stage a pool of processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.server import wait_until
from support.side_by_side import differs
from support.tiinfer import Heard, Served, ours, workers, write

FIRST = """
class First(mosec.Worker):
    def forward(self, data):
        if data['id'] == 2:
            raise mosec.ValidationError('two is wrong')
        return data
"""
SECOND = """
class Second(mosec.Worker):
    def forward(self, data):
        while any('gate' in item and not os.path.exists(item['gate']) for item in data):
            time.sleep(0.01)
        if any(item['id'] == 5 for item in data):
            raise ValueError('five')
        return [[item['id'], len(data)] for item in data]
"""
OWN_FORMATS = """
class W(mosec.Worker):
    resp_mime_type = 'application/x-own'
    def deserialize(self, data):
        assert type(data) is bytes
        return data[::-1]
    def forward(self, data):
        return data.upper()
    def serialize(self, data):
        return data if data != b'TXET' else 'text'
"""
EXAMPLES = """
class W(mosec.Worker):
    multi_examples = [1, 2]
    def forward(self, data):
        print('forward', data, flush=True)
        if data == 2:
            raise ValueError('cold')
        return data
"""
EXITS = """
class W(mosec.Worker):
    def forward(self, data):
        if data == 'exit':
            raise SystemExit(4)
        return data
"""
TWO_PARTS = """
class W(mosec.SSEWorker):
    def forward(self, data):
        self.send_stream_event('one')
        while not os.path.exists(data['gate']):
            time.sleep(0.01)
        self.send_stream_event('two')
"""


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Served]:
    with ours("tiinfer_pipeline") as server:
        wait_until(lambda: server.metric("panglot_workers", pool="Number_1", state="ready") == 2)
        yield server


def test_num_and_env(pipeline: Served) -> None:
    """Two processes, each with the variables of its place, its id, and the stage's name and batch size."""
    differs("Pipelines")
    seen = set()

    def has_seen_both() -> bool:
        seen.update(str(answer.body) for answer in pipeline.ask_all([{"number": 3}] * 16) if answer.status == 200)
        return {text.split(",")[1] for text in seen} == {"first", "second"}

    wait_until(has_seen_both)
    assert {",".join(text.split(",")[:3]) for text in seen} == {"6,first,1/1/Number_1", "6,second,2/1/Number_1"}


def test_the_last_stage_chooses_format_and_type(pipeline: Served) -> None:
    response = pipeline.client.post("/inference", json={"number": 2})
    assert response.headers["content-type"] == "text/csv"
    assert response.text.startswith("4,")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"text": 1}, Heard(422, "request validation error: send a number")),
        ({"number": 7}, Heard(400, "bad request: no sevens")),
        ({"number": 13}, Heard(500, "inference internal error")),
    ],
)
def test_failures_of_each_stage(value: object, expected: Heard, pipeline: Served) -> None:
    assert pipeline.ask(value) == expected


def test_every_item_of_a_batch_has_its_own_fate_in_every_stage(tmp_path: Path) -> None:
    folder, gate = (
        write(tmp_path / "own", workers(FIRST, SECOND, First="num=1", Second="max_batch_size=3")),
        tmp_path / "gate",
    )
    with ours(folder) as server, ThreadPoolExecutor(2) as threads:
        plug = threads.submit(server.ask_all, [{"id": 100, "gate": str(gate)}])
        wait_until(lambda: server.metric("panglot_pool_seconds_count", pool="First_1") == 1)
        sent = threads.submit(server.ask_all, [{"id": number} for number in range(7)])
        wait_until(lambda: server.metric("panglot_queue_length", pool="Second_2") == 6)
        gate.touch()
        answers, first = sent.result(), plug.result()
        assert first == [Heard(200, [100, 1])]
        assert [answer.status for answer in answers] == [200, 200, 422, 200, 200, 500, 200]
        assert [answer.body[0] for answer in answers if answer.status == 200] == [0, 1, 3, 4, 6]
        assert max(answer.body[1] for answer in answers if answer.status == 200) <= 3
        server.wait_log("ValueError: five\\) and was run item by item: 1 failed alone")


def test_a_stage_that_returns_too_few(tmp_path: Path) -> None:
    script = workers("W: return data[:-1]", W="max_batch_size=2")
    with ours(write(tmp_path / "own", script)) as server:
        assert server.ask(1) == Heard(500, "inference internal error")
        server.wait_log("the batch call got 1 items and returned 0 results")


def test_own_formats_in_and_out(tmp_path: Path) -> None:
    script = workers(OWN_FORMATS, W="num=1")
    with ours(write(tmp_path / "own", script)) as server:
        response = server.client.post("/inference", content=b"abc")
        assert (response.content, response.headers["content-type"]) == (b"CBA", "application/x-own")
        assert server.ask(content=b"") == Heard(200, "no data provided")
        assert server.ask(content=b"text") == Heard(500, "encoding error: encoding error")


def test_examples_warm_up_and_a_failing_one_is_a_warning(tmp_path: Path) -> None:
    script = workers(EXAMPLES, W="num=1")
    folder = write(tmp_path / "own", script)
    with ours(folder) as server:
        server.wait_log("forward 1\n(.*\n)*.*forward 2")
        server.wait_log("the script's own example failed\n(.*\n)* *ValueError: cold")
        assert server.ask(1) == Heard(200, 1)
    with ours(folder, "--warm-up", "fail", ready=False) as server:
        assert server.ended() == 3


def test_a_script_that_ends_the_process_costs_one_worker(tmp_path: Path) -> None:
    script = workers(EXITS, W="num=1")
    with ours(write(tmp_path / "own", script)) as server:
        assert server.ask("exit") == Heard(500, "inference internal error")
        wait_until(lambda: server.ask(1) == Heard(200, 1))
        server.wait_log("is replaced: the script raised SystemExit")


def test_parts_arrive_while_the_script_still_works(tmp_path: Path) -> None:
    folder, gate = write(tmp_path / "own", workers(TWO_PARTS, W="num=1")), tmp_path / "gate"
    with (
        ours(folder, "--timeout", "2000") as server,
        httpx.stream("POST", server.url("/inference"), json={"gate": str(gate)}, timeout=20) as response,
    ):
        assert response.headers["content-type"] == "text/event-stream"
        parts = response.iter_lines()
        assert next(parts) == "data: one"
        time.sleep(2.2)
        gate.touch()
        assert [line for line in parts if line] == ["data: two"], "a stream that has begun has no deadline"


def test_streams_share_a_batch(tmp_path: Path) -> None:
    """Parts go to the request at their index, and a batch that fails is not run again: its parts have gone."""
    with ours("tiinfer_stream") as server:
        texts = server.ask_all([{"words": [str(number), str(number * 10)]} for number in range(12)])
        assert [text.body for text in texts] == [f"data: {n}\n\ndata: {n * 10}\n\n" for n in range(12)]
        assert server.metric("panglot_answer_errors_total", key="event") == 0
        assert server.ask({"words": ["a", "fail"]}).body.startswith(
            "data: a\n\nevent: error\ndata: SSE inference error: 500:"
        )
        wait_until(lambda: server.metric("panglot_answer_errors_total", key="event") == 1)
        server.wait_log("ValueError: secret")
        assert server.ask({"words": ["wrong"]}).body.startswith("event: error\ndata: SSE inference error: 422:")
    assert "not this word" not in server.log, "a client's fault needs no traceback"
