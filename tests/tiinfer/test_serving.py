"""What Panglot does with tiinfer packages beyond what the platform's own server shows."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import interpreters
from support.server import PACKAGES, serving, wait_until
from support.side_by_side import differs
from support.tiinfer import Heard, Served, heard, model, ours, write

VERSIONS = interpreters.found()
ENDS = {version: VERSIONS[version] for version in (*list(VERSIONS)[:1], *list(VERSIONS)[-1:])}


@pytest.fixture(scope="module")
def ops() -> Iterator[Served]:
    with ours("tiinfer_ops", env={"PANGLOT_ALLOW_HOST": "model.test"}) as server:
        yield server


# Routes

ROUTES = [
    ("POST", "/inference", 200),
    ("POST", "/v1/models/m:predict", 200),
    ("POST", "/v1/models/m%3Apredict", 200),
    ("POST", "/tione/v1/models/m:predict", 200),
    ("POST", "/tione/inference", 200),
    ("POST", "/v1/models/other:predict", 404),
    ("POST", "/v1/models/m", 405),
    ("POST", "/inference/", 404),
    ("GET", "/v1/models/m:predict", 405),
    ("GET", "/", 200),
    ("GET", "/v1/models", 200),
    ("GET", "/v1/models/m", 200),
    ("GET", "/tione/v1/models/m", 200),
    ("GET", "/v1/models/other", 404),
    ("GET", "/metrics", 200),
    ("GET", "/docs", 200),
    ("GET", "/v2/health/ready", 200),
]


@pytest.mark.parametrize(("method", "path", "status"), ROUTES)
def test_routes(method: str, path: str, status: int, ops: Served) -> None:
    response = ops.client.request(method, path, **({"json": {"a": 1}} if method == "POST" else {}))
    assert response.status_code == status
    if status in (404, 405):
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        differs("Content type of errors")


def test_the_front_page_is_a_greeting_or_the_status_page(ops: Served) -> None:
    differs("Playground")
    assert ops.get("/") == Heard(200, "MOSEC service")
    assert ops.get("/", accept="*/*") == Heard(200, "MOSEC service")
    page = ops.client.get("/", headers={"accept": "text/html,application/xhtml+xml"})
    assert page.headers["content-type"].startswith("text/html")
    assert "tiinfer_ops" in page.text


def test_who_may_ask_what() -> None:
    """The platform's health routes are public; the status page is not; nor is the script."""
    with ours("tiinfer_ops", env={"PANGLOT_TOKEN": "secret"}) as server:
        asked = {
            (path, accept): server.client.get(path, headers={"accept": accept}).status_code
            for path in ("/", "/v1/models", "/v1/models/m", "/metrics")
            for accept in ("*/*", "text/html")
        }
        assert asked == {
            ("/", "*/*"): 200, ("/", "text/html"): 401,
            ("/v1/models", "*/*"): 200, ("/v1/models", "text/html"): 200,
            ("/v1/models/m", "*/*"): 200, ("/v1/models/m", "text/html"): 200,
            ("/metrics", "*/*"): 401, ("/metrics", "text/html"): 401,
        }  # fmt: skip
        refused = server.client.post("/inference", json=1)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.headers["content-type"].startswith("text/plain")
        token = {"authorization": "Bearer secret"}
        assert server.client.post("/inference", json=1, headers=token).json() == 1
        assert server.client.get("/", headers={**token, "accept": "text/html"}).status_code == 200


def test_answers_are_compact_and_have_our_headers(ops: Served) -> None:
    response = ops.client.post("/inference", json={"a": [1, 2], "b": "é"})
    assert response.content == '{"a":[1,2],"b":"é"}'.encode()
    assert response.headers["content-type"] == "application/json"
    assert "preprocess;dur=" in response.headers["server-timing"]
    assert response.headers["x-request-id"]


def test_the_document_describes_it(ops: Served) -> None:
    document = ops.client.get("/openapi.json").json()
    operation = document["paths"]["/inference"]["post"]
    assert list(operation["requestBody"]["content"]) == ["application/json"]
    assert {"200", "400", "408", "413", "429", "500", "503"} <= set(operation["responses"])


def test_the_request_of_config_json_is_the_example(tmp_path: Path) -> None:
    for number, example in enumerate(('{"images": ["abc"]}', {"images": ["abc"]})):
        config = json.dumps({"apis": [{"url": "/v1/models/m:predict", "request_example": example}]})
        folder = write(tmp_path / str(number), model(), config__json=config)
        with ours(folder) as server:
            content = server.client.get("/openapi.json").json()["paths"]["/inference"]["post"]["requestBody"]["content"]
            assert content["application/json"]["example"] == {"images": ["abc"]}
            server.wait_log(r"try: curl .*'\{\"images\":\[\"abc\"\]\}'")


# Workers


@pytest.mark.document("tiinfer.04")
@pytest.mark.parametrize(
    ("flags", "env", "expected"),
    [((), {}, 2), ((), {"TI_INFERENCE_NUMS": "3"}, 3), (("--workers", "1"), {"TI_INFERENCE_NUMS": "3"}, 1)],
    ids=["self.workers", "TI_INFERENCE_NUMS", "--workers"],
)
def test_how_many_workers(flags: tuple[str, ...], env: dict[str, str], expected: int) -> None:
    with ours("tiinfer_workers", *flags, env=env) as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == expected)


@pytest.mark.document("tiinfer.03")
def test_one_process_where_nothing_is_said(ops: Served) -> None:
    assert ops.metric("panglot_workers", state="ready") == 1


def test_set_ti_inference_nums_in_the_script_wins_over_the_variable(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", model() + "tiinfer.set_ti_inference_nums(2)\n")
    with ours(folder, env={"TI_INFERENCE_NUMS": "1"}) as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)


def test_clients_and_two_workers_every_answer_belongs_to_its_request() -> None:
    with ours("tiinfer_workers") as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
        wrong: list[Any] = []
        pids: set[int] = set()

        def client(number: int) -> None:
            with httpx.Client(base_url=server.url(), timeout=30) as own:
                for turn in range(25):
                    identity = number * 1000 + turn
                    body = {"id": identity, "sleep": (identity * 7919 % 10) / 1000}
                    answer = own.post("/inference" if turn % 2 else "/v1/models/m:predict", json=body).json()
                    pids.add(answer["pid"])
                    if answer["id"] != identity:
                        wrong.append((identity, answer))

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(client, range(16)))
        assert wrong == []
        assert len(pids) == 2


# Batches


def test_batches_are_lists_and_items_have_their_own_fate(tmp_path: Path) -> None:
    with ours("tiinfer_batch", env={"TI_INFERENCE_MAX_BATCH_SIZE": "4"}) as server:
        answers = together(server, [{"id": n, "bad": n == 3} for n in range(8)], tmp_path / "gate")
        assert [answer.status for answer in answers] == [500 if n == 3 else 200 for n in range(8)]
        assert [answer.body["id"] for answer in answers if answer.status == 200] == [0, 1, 2, 4, 5, 6, 7]
        assert max(answer.body["batch"] for answer in answers if answer.status == 200) == 4


def test_max_batch_of_ours_may_say_less_than_the_script(tmp_path: Path) -> None:
    with ours("tiinfer_batch", "--max-batch", "2", env={"TI_INFERENCE_MAX_BATCH_SIZE": "4"}) as server:
        answers = together(server, [{"id": n} for n in range(8)], tmp_path / "gate")
        assert max(answer.body["batch"] for answer in answers) == 2


def test_set_ti_inference_max_batch_size_in_the_script(tmp_path: Path) -> None:
    script = (
        PACKAGES / "tiinfer_batch" / "model_service.py"
    ).read_text() + "\n\ntiinfer.set_ti_inference_max_batch_size(40)\n"
    with ours(write(tmp_path / "own", script)) as server:
        answers = together(server, [{"id": n} for n in range(40)], tmp_path / "gate")
        assert max(answer.body["batch"] for answer in answers) > 32


def together(server: Served, values: list[Any], gate: Path) -> list[Heard]:
    """The answers to values that wait together behind one that waits for the gate."""
    with ThreadPoolExecutor(2) as threads:
        threads.submit(server.ask_all, [{"id": -1, "gate": str(gate)}])
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        answers = threads.submit(server.ask_all, values)
        wait_until(lambda: server.metric("panglot_queue_length") == len(values), 20)
        gate.touch()
        return answers.result()


# Failures in answers


@pytest.mark.document("tiinfer.23")
def test_failures_in_dicts_are_counted(ops: Served) -> None:
    """`error`, `predict_err` and `post_process_err` are a 200 as on the platform, and counted as failures."""
    for key in ("error", "predict_err", "post_process_err"):
        before = ops.metric("panglot_answer_errors_total", key=key)
        assert ops.ask({key: "why"}) == Heard(200, {key: "why"})
        assert ops.metric("panglot_answer_errors_total", key=key) == before + 1
    assert ops.ask({"deep": {"error": 1}}).status == 200
    total = sum(
        ops.metric("panglot_answer_errors_total", key=key) for key in ("error", "predict_err", "post_process_err")
    )
    ops.ask({"fine": 1})
    assert total == sum(
        ops.metric("panglot_answer_errors_total", key=key) for key in ("error", "predict_err", "post_process_err")
    )


def test_no_detail_leaves_the_server_and_the_log_has_it_all(ops: Served) -> None:
    answer = ops.client.post(
        "/inference", json={"op": "raise", "kind": "ValueError", "text": "hush"}, headers={"x-request-id": "seek-me"}
    )
    assert (answer.status_code, answer.text) == (500, "inference internal error")
    assert "hush" not in str(answer.headers)
    ops.wait_log("request seek-me: inference internal error\n(.*\n)* *ValueError: hush")


def test_a_clients_fault_leaves_no_traceback(ops: Served) -> None:
    mark = len(ops.lines)
    assert ops.ask({"op": "raise", "kind": "ValidationError", "text": "x"}).status == 422
    assert ops.ask(content=b"{").status == 400
    time.sleep(0.2)
    assert not [line for line in ops.lines[mark:] if "Traceback" in line]


NANS = {
    "null": Heard(200, {"value": None, "most": None}),
    "platform": Heard(200, {"value": "<NaN>", "most": "<Infinity>"}),
    "error": Heard(500, "encoding error: encoding error"),
}


@pytest.mark.parametrize("nan", NANS)
def test_nan(nan: str) -> None:
    with ours("tiinfer_ops", "--nan", nan) as server:
        assert server.ask({"op": "return", "kind": "nan"}) == NANS[nan]
        warning = server.client.post("/inference", json={"op": "return", "kind": "nan"}).headers.get(
            "x-panglot-warning"
        )
        assert (warning == "nan: 2 values replaced by null") == (nan == "null")


def test_json_that_is_too_large_is_413_too() -> None:
    with ours("tiinfer_ops", env={"PANGLOT_MAX_JSON": "100"}) as server:
        assert server.ask("x" * 200) == Heard(413, "request body is too large")


def test_arrays_are_an_error_as_on_the_platform_unless_told_otherwise(tmp_path: Path) -> None:
    values = {
        "array": "numpy.arange(3)",
        "single": "numpy.float32(1.5)",
        "double": "numpy.float64(1.5)",
        "uuid": "uuid.UUID(int=1)",
        "enum": "enum.Enum('E', 'a').a",
        "surrogate": "'\\ud800'",
    }
    table = "{" + ", ".join(f"{name!r}: {text}" for name, text in values.items()) + "}"
    script = model(f"predict: return {table}[request]", before="import numpy, uuid, enum")
    folder = write(tmp_path / "own", script)
    with ours(folder) as server:
        assert server.ask("array").status == server.ask("single").status == server.ask("surrogate").status == 500
        assert server.ask("double") == Heard(200, 1.5)
        differs("Lone surrogates in answers")
        differs("UUIDs and enums")
        assert server.ask("uuid") == Heard(200, "00000000-0000-0000-0000-000000000001")
        assert server.ask("enum") == Heard(200, 1)
    with ours(write(folder, script, panglot__toml="strict_results = false\n")) as server:
        assert server.ask("array") == Heard(200, [0, 1, 2])
        assert server.ask("single") == Heard(200, 1.5)


# Logs


@pytest.mark.document("tiinfer.14")
def test_what_a_script_logs_is_shown_without_its_doing(tmp_path: Path) -> None:
    """Spec 2.1: logging is configured before the script is imported."""
    folder = write(
        tmp_path / "own", model("predict: logging.info('seen'); logging.debug('fine')", before="import logging")
    )
    differs("Log lines")
    for flags, levels in (((), {"INFO"}), (("--debug",), {"INFO", "DEBUG"})):
        with ours(folder, *flags) as server:
            assert server.ask(1) == Heard(200, None)
            server.wait_log(r"own/0 \| INFO    model_service:7    seen")
        assert set(re.findall(r"(INFO|DEBUG) +model_service", server.log)) == levels


# Every Python


@pytest.mark.parametrize("python", ENDS.values(), ids=ENDS.keys())
def test_the_oldest_and_the_newest_python_give_the_same_answers(python: str) -> None:
    asked = {
        "tiinfer_ops": [{"op": "return", "kind": kind} for kind in ("keys", "letters", "nan", "set", "big", "cycle")],
        "tiinfer_pipeline": [{"number": 4}, {"number": 13}, {"text": 1}],
        "tiinfer_stream": [{"words": ["a", "b"]}, {"words": ["wrong"]}],
        "tiinfer_fetch": [{"op": "connect", "host": "127.0.0.1", "port": 9}],
    }
    for package, values in asked.items():
        with ours(package, "--workers", "1") as own, ours(package, "--workers", "1", "--python", python) as other:
            for value in values:
                assert other.ask(value) == own.ask(value)


# Without `panglot tiinfer`


def test_panglot_serve_serves_it_too() -> None:
    with serving("tiinfer_ops") as server:
        assert heard(server.client.post("/inference", json={"op": "about"})) == Heard(
            200, {"model_dir": True, "mapping": {"0": "zero"}, "cwd": "tiinfer_ops"}
        )


def test_a_script_under_another_name_is_model_service_to_itself(tmp_path: Path) -> None:
    script = write(tmp_path / "own", model("predict: return __name__")) / "model_service.py"
    other = script.rename(script.with_name("digits.py"))
    with serving(other) as server:
        assert server.client.post("/inference", json=1).json() == "model_service"


def test_drain_answers_what_was_accepted() -> None:
    with ours("tiinfer_ops") as server:
        slow: list[Heard] = []
        thread = threading.Thread(target=lambda: slow.extend(server.ask_all([{"op": "sleep", "seconds": 1}])))
        thread.start()
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        assert server.stop() == 0
        thread.join()
        assert slow == [Heard(200, {"op": "sleep", "seconds": 1})]
