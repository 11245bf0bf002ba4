"""The plain dialect, as a client sees it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import ANY

import httpx
import pytest

from support.server import Server, serving


@pytest.fixture(scope="module")
def results() -> Iterator[Server]:
    with serving("results") as server:
        yield server


def test_a_function_gets_the_json_value() -> None:
    with serving("function") as server:
        for value in ({"a": [1, 2.5, None, "猫"]}, [1], "text", 3, True):
            answer = server.predict(value)
            assert (answer.status_code, answer.json()) == (200, {"got": value})
            assert answer.headers["content-type"] == "application/json"


def test_every_hook_runs_in_order_in_the_scripts_own_folder() -> None:
    with serving("stages") as server:
        answer = server.predict({"value": 4}).json()
        assert answer["value"] == 8
        assert answer["marks"] == ["init", "load", "preprocess", "predict", "postprocess"]
        assert answer["table"] == "a table"
        assert (answer["cwd"], answer["argv"], answer["first_path"]) == ("stages", "model.py", "stages")
        assert server.stop() == 0
        assert "closed well" in server.log


def test_replies_carry_id_and_stage_times() -> None:
    with serving("stages") as server:
        answer = server.predict({"value": 4}, headers={"X-Request-Id": "mine-1"})
        assert answer.headers["x-request-id"] == "mine-1"
        stages = [part.split(";")[0].strip() for part in answer.headers["server-timing"].split(",")]
        assert stages[0] == "queue"
        assert stages[-1] == "total"
        assert {"decode", "inference", "encode"} <= set(stages)
        first, second = server.predict({"value": 1}), server.predict({"value": 1})
        assert first.headers["x-request-id"] != second.headers["x-request-id"]


def test_a_batch_is_what_waits_while_the_worker_is_busy() -> None:
    # They wait for each other, however long it takes us to send them: the eighth ends the waiting.
    with serving("batch", "--max-wait-ms", "20000", "--max-batch", "8") as server:
        answers: list[dict[str, int]] = []
        threads = [
            threading.Thread(target=lambda n=number: answers.append(server.predict(n).json())) for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer["value"] for answer in answers) == list(range(8))
        assert {answer["batch"] for answer in answers} == {8}
        assert server.metric("panglot_batches_released_total", reason="full") == 1


WAITS_FOR_TEN = """
import asyncio

here, all_here = [], asyncio.Event()

async def predict(request):
    here.append(request)
    if len(here) == 10:
        all_here.set()
    await all_here.wait()
    return request
"""


def test_async_scripts_overlap_in_one_worker(tmp_path: Path) -> None:
    """No call returns before the tenth has begun."""
    (tmp_path / "model.py").write_text(WAITS_FOR_TEN)
    with serving(tmp_path) as server:
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda n=number: answers.append(server.predict(n).json())) for number in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == list(range(10))


def events(text: str) -> list[object]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line]


def test_a_generator_streams_events_or_json_lines() -> None:
    with serving("stream") as server:
        answer = server.predict({"count": 3})
        assert answer.headers["content-type"] == "text/event-stream"
        assert events(answer.text) == [{"number": 0}, {"number": 1}, {"number": 2}]
        answer = server.predict({"count": 3}, headers={"accept": "application/x-ndjson"})
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert [json.loads(line) for line in answer.text.splitlines()] == [{"number": n} for n in range(3)]
        assert server.predict({"count": 0}).text == ""


WAITS_FOR_A_FILE = """
import os, time

def predict(gate):
    yield "first"
    while not os.path.exists(gate):
        time.sleep(0.01)
    yield "second"
"""


def test_a_stream_arrives_while_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(WAITS_FOR_A_FILE)
    gate = tmp_path / "gate"
    with serving(tmp_path) as server, server.client.stream("POST", "/predict", json=str(gate)) as answer:
        lines = (line for line in answer.iter_lines() if line)
        assert next(lines) == 'data: "first"'
        gate.touch()
        assert list(lines) == ['data: "second"']


def test_a_stream_that_fails_before_its_first_part_is_a_500() -> None:
    with serving("stream") as server:
        assert server.predict({"count": 3, "fail_at": 0}).status_code == 500


def test_a_stream_that_fails_half_way_breaks_off_visibly() -> None:
    with serving("stream") as server:
        with pytest.raises(httpx.RemoteProtocolError):
            server.predict({"count": 5, "fail_at": 2})
        assert server.predict({"count": 1}).status_code == 200
        server.wait_log("stopped half-way")


def test_a_client_that_prefers_it_is_told_in_the_stream_that_it_failed() -> None:
    """For browsers, which drop the last parts of an answer whose connection breaks."""
    told = {"prefer": "error-in-stream", "x-request-id": "told-1"}
    with serving("stream") as server:
        answer = server.predict({"count": 5, "fail_at": 3}, headers=told)
        before, _, after = answer.text.partition("event: error\n")
        assert events(before) == [{"number": n} for n in range(3)]
        (told_part,) = events(after)
        assert told_part == {"error": {"code": "script_error", "message": ANY, "request_id": "told-1"}}
        assert "half-way" not in answer.text, "what a script raises is for the log"
        assert answer.headers["preference-applied"] == "error-in-stream"
        assert "connection" not in answer.headers
        answer = server.predict({"count": 2, "fail_at": 1}, headers={**told, "accept": "application/x-ndjson"})
        assert [json.loads(line) for line in answer.text.splitlines() if line] == [{"number": 0}, told_part]
        assert server.metric("panglot_requests_total", status="500") == 2
        whole = server.predict({"count": 2}, headers=told)
        assert events(whole.text) == [{"number": 0}, {"number": 1}]
        assert server.predict({"count": 2, "fail_at": 0}, headers=told).status_code == 500


def test_an_async_generator_streams() -> None:
    with serving("async_stream") as server:
        assert events(server.predict({"count": 4}).text) == [0, 1, 2, 3]


def test_uploads_arrive_as_files() -> None:
    with serving("uploads") as server:
        answer = server.predict(files={"image": ("七.png", b"12345", "image/png")}, data={"note": "hello"})
        assert answer.json() == {"image": {"name": "七.png", "type": "image/png", "size": 5}, "note": "hello"}
        answer = server.predict(content=b"1234", headers={"content-type": "image/jpeg"})
        assert answer.json() == {"name": "", "type": "image/jpeg", "size": 4}
        answer = server.predict(files={"other": ("a", b"1", "text/plain")})
        assert answer.status_code == 422
        assert answer.json()["error"]["message"] == "a field 'image' is needed"


@pytest.mark.parametrize(
    ("kind", "content_type", "body"),
    [
        ("bytes", "application/octet-stream", b"\x00raw"),
        ("typed", "image/svg+xml", b"<svg/>"),
        ("dataclass", "application/json", '{"left":1,"label":"猫"}'.encode()),
        ("numpy", "application/json", b'{"array":[0.0,1.0,2.0],"scalar":7,"flag":true}'),
        ("none", "application/json", b"null"),
    ],
)
def test_results_of_every_kind(results: Server, kind: str, content_type: str, body: bytes) -> None:
    answer = results.predict({"kind": kind})
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, content_type, body)


def test_a_picture_is_sent_as_png(results: Server) -> None:
    answer = results.predict({"kind": "picture"})
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG")


def test_nan_becomes_null_with_a_warning(results: Server) -> None:
    answer = results.predict({"kind": "nan"})
    assert answer.json() == {"value": None, "fine": 1.0}
    assert "nan" in answer.headers["x-panglot-warning"].lower()


def test_a_result_that_cannot_be_sent_is_named_in_the_log_only(results: Server) -> None:
    answer = results.predict({"kind": "object"}, headers={"x-request-id": "unsendable"})
    assert answer.status_code == 500
    assert "object" not in answer.json()["error"]["message"]
    results.wait_log("unsendable")
    results.wait_log(r"deep\[0\]")


def test_a_scripts_exception_is_told_to_its_author_not_to_the_client(results: Server) -> None:
    answer = results.predict({"kind": "raise"}, headers={"x-request-id": "failing"})
    assert answer.status_code == 500
    assert answer.json()["error"]["request_id"] == "failing"
    assert "secret" not in answer.text
    results.wait_log("request failing: ")
    results.wait_log("RuntimeError: secret detail")
    assert results.log.count("RuntimeError: secret detail") == 1


def test_an_exception_with_a_client_status_is_the_clients(results: Server) -> None:
    answer = results.predict({"kind": "teapot"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (418, "short and stout")


def test_a_script_cannot_inject_headers(results: Server) -> None:
    answer = results.predict({"kind": "header_injection"})
    assert "set-cookie" not in answer.headers


def test_what_a_script_prints_is_in_the_log() -> None:
    with serving("prints") as server:
        server.predict("tea")
        server.wait_log(r"prints/0 \| imported")
        server.wait_log(r"prints/0 \| asked for tea")
        server.wait_log(r"prints/0 \| on stderr")
        server.wait_log(r"(?m)\| red$")
        assert "\x1b" not in server.log


@pytest.mark.parametrize(
    ("content", "content_type", "status", "words"),
    [
        (b"{", "application/json", 400, "JSON"),
        (b"", "application/json", 400, "empty"),
        (b"\xff\xfe", "application/json", 400, ""),
        (b"[" * 100 + b"]" * 100, "application/json", 400, "deep"),
        (b"[1e999]", "application/json", 400, ""),
        (b"x", "multipart/form-data", 400, "boundary"),
    ],
)
def test_bad_bodies_get_a_clear_400(
    results: Server, content: bytes, content_type: str, status: int, words: str
) -> None:
    answer = results.predict(content=content, headers={"content-type": content_type})
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_wrong_method_and_path(results: Server) -> None:
    answer = results.client.get("/predict")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "POST" in answer.json()["error"]["message"]
    answer = results.client.post("/Predict")
    assert answer.status_code == 404
    assert "/predict" in answer.json()["error"]["message"]
    assert results.client.get("/v2/nothing").json().keys() == {"error"}


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    with serving("function", "--max-body", "1000") as server:
        answer = server.predict(content=b"x" * 1001, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
        assert server.predict("x" * 998).status_code == 200

        def chunks() -> Iterator[bytes]:
            for _ in range(20):
                yield b"x" * 100

        assert httpx.post(server.url + "/predict", content=chunks(), timeout=30).status_code == 413
        assert server.predict(1).status_code == 200


def test_a_client_may_lower_its_deadline_but_not_raise_it() -> None:
    sleepy = {"id": 1, "sleep": 600}
    with serving("asynchronous", "--timeout", "60") as server:
        answer = server.predict(sleepy, headers={"x-timeout-ms": "100"})
        assert answer.status_code == 504
        assert answer.json()["error"]["code"] == "timeout"
    with serving("asynchronous", "--timeout", "1") as server:
        assert server.predict(sleepy, headers={"x-timeout-ms": "300000"}).status_code == 504


def test_a_full_queue_says_when_to_come_back() -> None:
    with serving("stages", "--queue", "1") as server:
        slow = serving("asynchronous", "--queue", "1", "--slots", "1")
        server.predict({"value": 1})
        with slow as busy:
            answers: list[httpx.Response] = []
            threads = [
                threading.Thread(target=lambda: answers.append(busy.predict({"id": 1, "sleep": 0.5}))) for _ in range(6)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            refused = [answer for answer in answers if answer.status_code == 503]
            assert refused
            assert len(refused) < len(answers)
            assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)


def test_several_workers_share_the_work() -> None:
    with serving("function", "--workers", "2") as server:
        assert len(server.workers()) in (1, 2)
        server.wait_log("worker 1 ready")
        assert server.metric("panglot_workers", state="ready") == 2


def test_metrics_name_routes_and_statuses(results: Server) -> None:
    assert results.predict({"kind": "bytes"}).status_code == 200
    text = results.client.get("/metrics").text
    assert 'panglot_requests_total{route="/predict",status="200"}' in text
    for name in ("panglot_request_seconds", "panglot_queue_seconds", "panglot_stage_seconds", "panglot_batch_size"):
        assert f"# TYPE {name} histogram" in text
