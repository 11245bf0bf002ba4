"""What models of Truss get and what their clients are answered, in the platform's own words."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy
import pytest

from panglot_worker.dialects.truss import binary
from support.server import Server, serving, wait_until

PREDICT = "/v1/models/model:predict"
OCTETS = "application/octet-stream"
FAILED = {"error": "Internal Server Error (in model/chainlet)."}


@pytest.fixture(scope="module")
def echo() -> Iterator[Server]:
    with serving("truss_echo", env={"TRUSS_SECRET_api_key": "of-the-environment"}) as server:
        yield server


def ask(server: Server, value: Any, **headers: str) -> httpx.Response:
    return server.client.post(PREDICT, content=json.dumps(value), headers=headers)


def op(server: Server, act: str, **more: Any) -> httpx.Response:
    return ask(server, {"op": act, **more})


def blamed(answer: httpx.Response) -> tuple[int, Any, str, str]:
    headers = answer.headers
    return answer.status_code, answer.json(), headers["x-baseten-error-source"], headers["x-baseten-error-code"]


# Requests


@pytest.mark.document("truss.15")
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "text/plain", ""])
def test_a_body_is_json_whatever_its_type_says(echo: Server, kind: str) -> None:
    answer = ask(echo, {"a": 1}, **({"Content-Type": kind} if kind else {}))
    assert (answer.status_code, answer.text) == (200, '{"a": 1, "pre": 1}')
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.document("truss.27")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/model:predict", "/v1/models/any:predict", "/v1/models/any:predict_binary", "/invocations",
        "/predict", "/production/predict", "/development/predict", "/deployment/abc/predict",
        "/environments/staging/predict",
    ],
)  # fmt: skip
def test_every_path_of_the_platform_leads_to_predict(echo: Server, path: str) -> None:
    assert echo.client.post(path, json=[1]).json() == [1]


@pytest.mark.document("truss.15")
@pytest.mark.parametrize(
    ("body", "why"),
    [("x", "Expecting value: line 1 column 1 (char 0)"), ("", "Expecting value: line 1 column 1 (char 0)"),
     ("[1,", "Expecting value: line 1 column 4 (char 3)")],
)  # fmt: skip
def test_a_body_that_is_no_json_is_the_clients_fault(echo: Server, body: str, why: str) -> None:
    answer = echo.client.post(PREDICT, content=body)
    assert blamed(answer) == (400, {"error": f"Invalid JSON payload: {why}"}, "04", "700")


@pytest.mark.document("truss.16")
def test_msgpack_with_arrays_is_answered_in_msgpack(echo: Server) -> None:
    body = binary.dumps({"image": numpy.arange(6, dtype="u1").reshape(2, 3)})
    answer = echo.client.post(PREDICT, content=body, headers={"Content-Type": OCTETS})
    assert (answer.status_code, answer.headers["content-type"]) == (200, OCTETS)
    value = binary.loads(answer.content)
    assert value["pre"] == 1
    assert (value["image"] == numpy.arange(6).reshape(2, 3)).all()


@pytest.mark.document("truss.41")
def test_arrays_of_python_objects_are_never_unpickled(echo: Server) -> None:
    for kind in (b"O", b""):
        body = binary.dumps({b"nd": True, b"kind": kind, b"type": "|O", b"shape": [1], b"data": b"\x80\x04."})
        answer = echo.client.post(PREDICT, content=body, headers={"Content-Type": OCTETS})
        assert blamed(answer) == (400, {"error": "unsupported payload"}, "04", "700")


@pytest.mark.document("truss.41")
def test_broken_msgpack_is_the_clients_fault(echo: Server) -> None:
    for body in (b"", b"\x93\x01", b"\x01\x02", b"\xdf\xff\xff\xff\xff", b"\xc1", b"\xa1\xff", b"\x91" * 5000):
        answer = echo.client.post(PREDICT, content=body, headers={"Content-Type": OCTETS})
        assert (answer.status_code, answer.headers["x-baseten-error-code"]) == (400, "700"), body


# What the model is given


@pytest.mark.document("truss.02", "truss.03")
def test_the_class_is_given_all_that_the_platform_gives(echo: Server) -> None:
    assert op(echo, "given_names").json() == ["config", "data_dir", "environment", "lazy_data_resolver", "secrets"]
    assert op(echo, "about").json() == {
        "data_dir": "data", "is_path": True, "name": "Echo", "environment": None, "lazy": "", "greeting": "hello",
        "module": "model.model", "here": True, "loads": 1,
    }  # fmt: skip


@pytest.mark.document("truss.05")
def test_secrets_come_from_the_environment_and_from_the_config(echo: Server) -> None:
    assert op(echo, "secret", name="api_key").json() == ["of-the-environment", 2]
    assert op(echo, "secret", name="spare").json() == ["a-default", 2]
    for name in ("other", "*"):
        assert blamed(op(echo, "secret", name=name)) == (500, FAILED, "04", "600")
    echo.wait_log("SecretNotFound")


@pytest.mark.document("truss.01", "truss.04", "truss.06", "truss.45")
def test_folders_and_names_of_its_own_are_followed() -> None:
    with serving("truss_folders", env={"TRUSS_SECRET_hf_access_token": "hub"}) as server:
        answer = server.client.post(PREDICT, json={"text": "a long text"}).json()
        answer.pop("process")
        assert answer == {
            "label": "long", "word": "shared", "concurrency": 2, "timeout": 60, "token": "hub",
        }  # fmt: skip


# Answers


ANSWERS = {
    "numpy": '{"a": 1.0, "b": [0, 1], "c": 3}',
    "tuple": "[1, 2]",
    "none": "null",
    "letters": '"k\\u00e4se \\u732b"',
}


@pytest.mark.document("truss.19")
@pytest.mark.parametrize("name", ANSWERS)
def test_results_are_written_as_the_json_module_does(echo: Server, name: str) -> None:
    assert op(echo, name).text == ANSWERS[name]


@pytest.mark.document("truss.19")
def test_a_result_that_json_cannot_hold_is_named(echo: Server) -> None:
    for name in ("bytes", "set"):
        sentence = f"Unhandled exception: TypeError: Object of type {name} is not JSON serializable"
        assert blamed(op(echo, name)) == (500, {"error": sentence}, "04", "500")


@pytest.mark.document("truss.39")
def test_nan_becomes_null_with_a_warning(echo: Server) -> None:
    answer = op(echo, "nan")
    assert (answer.text, answer.headers["x-panglot-warning"]) == ('{"a": null}', "nan: 1 values replaced by null")


@pytest.mark.document("truss.20")
def test_responses_are_sent_as_they_are(echo: Server) -> None:
    answer = op(echo, "json")
    assert (answer.status_code, answer.text, answer.headers["x-own"]) == (201, '{"x":1}', "yes")
    assert "x-baseten-error-code" not in answer.headers
    answer = op(echo, "text")
    assert (answer.status_code, answer.text, answer.headers["x-baseten-error-code"]) == (404, "no", "700")
    answer = op(echo, "events")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.text == "data: 0\n\ndata: 1\n\n"


@pytest.mark.document("truss.21")
def test_generators_are_streams(echo: Server) -> None:
    answer = op(echo, "stream")
    assert (answer.text, answer.headers["content-type"], answer.headers["transfer-encoding"]) == (
        "ab",
        OCTETS,
        "chunked",
    )
    assert op(echo, "bytestream").content == b"\x00\xff"


@pytest.mark.document("truss.22")
def test_a_client_that_accepts_json_alone_gets_a_stream_as_one_text(echo: Server) -> None:
    answer = ask(echo, {"op": "stream"}, Accept="application/json")
    assert (answer.text, answer.headers["content-type"]) == ('"ab"', "application/json")
    agent = {"Accept": "application/json", "User-Agent": "OpenAI/Python 1.61.0"}
    assert ask(echo, {"op": "stream"}, **agent).text == "ab"
    answer = ask(echo, {"op": "breaks"}, Accept="application/json")
    assert blamed(answer) == (500, {"error": "Unhandled exception: ValueError: in the middle"}, "04", "500")


@pytest.mark.document("truss.40")
def test_a_stream_that_breaks_has_no_end(echo: Server) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        op(echo, "breaks")


# Errors


@pytest.mark.document("truss.23", "truss.24")
def test_an_exception_is_told_in_the_log_alone(echo: Server) -> None:
    assert blamed(op(echo, "raise")) == (500, FAILED, "04", "600")
    assert blamed(op(echo, "starlette")) == (500, FAILED, "04", "600")
    echo.wait_log("a secret of the script")


@pytest.mark.document("truss.24")
def test_an_http_exception_of_fastapi_chooses_the_status(echo: Server) -> None:
    assert blamed(op(echo, "tea")) == (418, {"error": "tea"}, "04", "600")
    assert blamed(op(echo, "detail")) == (409, {"error": {"why": ["taken"]}}, "04", "600")


@pytest.mark.document("truss.28")
def test_a_method_that_is_missing_is_named(echo: Server) -> None:
    answer = echo.client.post("/v1/embeddings", json={})
    error = {"error": "`embeddings` must only be called if model has it."}
    assert blamed(answer) == (404, error, "04", "700")


@pytest.mark.document("truss.25", "truss.18", "truss.31")
def test_pages_of_the_platform(echo: Server) -> None:
    for path, body in {
        "/": "true", "/v1/models/any": "{}", "/v1/models/model/loaded": "{}", "/ping": "{}",
        "/v1/models/model:predict": "{}",
    }.items():  # fmt: skip
        answer = echo.client.get(path)
        assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, body, "application/json")
    assert blamed(echo.client.get("/v1/models/model/schema")) == (404, {"error": "No schema found"}, "04", "600")
    for method, path, status in (("GET", "/nope", 404), ("PUT", PREDICT, 405)):
        answer = echo.client.request(method, path)
        assert (answer.status_code, list(answer.json())) == (status, ["detail"])
        assert "x-baseten-error-code" not in answer.headers


# Stages


@pytest.mark.document("truss.46")
def test_metrics_are_those_of_the_server(echo: Server) -> None:
    assert ask(echo, {"a": 1}).status_code == 200
    answer = echo.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "panglot_requests_total{" in answer.text


@pytest.mark.document("truss.11", "truss.12")
def test_the_three_methods_run_in_their_order() -> None:
    with serving("truss_stages") as server:
        answer = server.client.post(PREDICT, json={})
        assert answer.json()["way"] == ["pre", "loaded", "post"]
        assert "postprocess;dur=" in answer.headers["server-timing"]
        for give in ("generator", "response"):
            assert blamed(ask(server, {"give": give})) == (500, FAILED, "04", "600")
        server.wait_log("if predict returns a generator, there can be no postprocess")
        assert ask(server, {"give": "late generator"}).text == "cd"
        assert ask(server, {"give": "late response"}).status_code == 202
        assert ask(server, {"give": "late stream"}).text == "ef"
        for fail in ("preprocess", "postprocess"):
            assert blamed(ask(server, {"fail": fail})) == (500, FAILED, "04", "600")
        assert ask(server, {"fail": "tea"}).status_code == 418


def test_stages_have_pools_of_their_own() -> None:
    with serving("truss_stages", "--pools", "preprocess=2,inference=1,postprocess=1") as server:
        answer = ask(server, {"count": True}).json()
        assert (answer["way"], answer["processes"]) == (["pre", "loaded", "post"], 2)


@pytest.mark.document("truss.09")
def test_requests_are_given_to_methods_that_want_them() -> None:
    with serving("truss_request", env={"PANGLOT_TOKEN": "of-the-tests"}) as server:
        headers = {"X-Own": "mine", "Authorization": "Api-Key of-the-tests"}
        answer = server.client.post(PREDICT + "?a=1", content='{"x": 1}', headers=headers)
        assert answer.json() == {
            "body": '{"x": 1}', "header": "mine", "agent": False, "method": "POST", "path": PREDICT,
            "query": {"a": "1"}, "json": {"x": 1}, "gone": False, "state": "in preprocess", "after": "in preprocess",
        }  # fmt: skip
        for port in (b"1" * 5_000, b"\xb2", b""):
            odd = {**headers, "Host": b"localhost:" + port}
            assert server.client.post(PREDICT, content='{"x": 1}', headers=odd).status_code == 200


@pytest.mark.document("truss.10")
def test_a_model_that_takes_the_request_alone_reads_bodies_itself() -> None:
    with serving("truss_raw") as server:
        answer = server.client.post(PREDICT, content=b"{\x00", headers={"Content-Type": "image/png"})
        assert (answer.content, answer.headers["content-type"]) == (b"\x00{", "image/png")


@pytest.mark.document("truss.17", "truss.18")
def test_a_model_of_pydantic_validates_inputs() -> None:
    with serving("truss_pydantic") as server:
        answer = server.client.post(PREDICT, json={"name": "x", "boxes": [{"width": 2, "height": 3}]})
        assert answer.text == '{"area":6,"name":"x"}'
        error = "Input Parsing Errors:\n  `name`: Field required.\n  `boxes[0].width`: Field required."
        assert blamed(ask(server, {"boxes": [{}]})) == (400, {"error": error}, "04", "700")
        error = "Input Parsing Error:\n  `__root__`: Expecting value: line 1 column 1 (char 0)."
        assert blamed(server.client.post(PREDICT, content="x")) == (400, {"error": error}, "04", "700")
        schema = server.client.get("/v1/models/model/schema").json()
        assert list(schema) == ["input_schema", "output_schema", "supports_streaming"]
        assert schema["input_schema"]["required"] == ["name"]
        assert schema["supports_streaming"] is False
        document = server.client.get("/openapi.json").json()
        body = document["paths"][PREDICT]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert "boxes" in json.dumps(body)


@pytest.mark.document("truss.26", "truss.09")
def test_a_model_says_whether_it_is_healthy() -> None:
    with serving("truss_health") as server:
        assert server.client.get("/v1/models/model").text == "{}"
        for count in (1, 2, 3):
            assert ask(server, {}).json() == count
            healthy = server.client.get("/v1/models/model")
            loaded = server.client.get("/v1/models/model/loaded")
            assert (healthy.status_code, loaded.status_code) == (200 if count < 2 else 503, 200)
        assert healthy.json() == {"error": "Model with name model is not ready."}
        assert server.client.post(PREDICT, content="x").status_code == 400


@pytest.mark.document("truss.25")
def test_while_it_loads_probes_and_requests_are_told_so(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("model_name: Slow\n")
    wait = "import os, time\n        while not os.path.exists('go'): time.sleep(0.02)\n"
    script = f"class Model:\n    def load(self):\n        {wait}\n    def predict(self, x):\n        return x\n"
    (tmp_path / "model" / "model.py").write_text(script)
    with serving(tmp_path, ready=False) as server:
        expected = (503, {"error": "Model with name model is not ready."}, "04", "600")
        assert blamed(server.client.get("/v1/models/model")) == expected
        assert blamed(ask(server, 1)) == expected
        assert server.client.get("/").json() is True
        (tmp_path / "go").touch()
        server.wait_ready()
        assert ask(server, 1).json() == 1


# At once


def several(server: Server, value: Any, count: int) -> list[httpx.Response]:
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: httpx.post(server.url + PREDICT, json=value, timeout=60), range(count)))


@pytest.mark.document("truss.14")
def test_calls_of_a_model_without_concurrency_run_one_after_another(echo: Server) -> None:
    spans = sorted(answer.json() for answer in several(echo, {"op": "sleep"}, 3))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.document("truss.13", "truss.14")
def test_awaited_calls_run_at_once_up_to_the_concurrency() -> None:
    with serving("truss_async") as server:

        def most() -> int:
            several(server, {"op": "sleep"}, 8)
            return int(ask(server, {"op": "most"}).json())

        # They may come one after the other on a busy machine.
        wait_until(lambda: most() >= 4)
        assert most() == 4
        assert ask(server, {"op": "stream"}).text == "ab"
        assert ask(server, {"op": "plain stream"}).text == "cd"
        assert ask(server, {"op": "response"}).headers["content-type"] == "text/event-stream; charset=utf-8"
        assert ask(server, {"op": "stream"}, Accept="application/json").text == '"ab"'
        assert blamed(ask(server, {"op": "raise"})) == (500, FAILED, "04", "600")
        with pytest.raises(httpx.RemoteProtocolError):
            ask(server, {"op": "breaks"})


@pytest.mark.document("truss.14")
def test_plain_calls_run_in_as_many_workers_as_the_concurrency() -> None:
    with serving("truss_folders") as server:
        processes: set[int] = set()

        def answered() -> int:
            processes.update(answer.json()["process"] for answer in several(server, {"text": "x"}, 4))
            return len(processes)

        # The server is ready with its first worker.
        wait_until(lambda: answered() > 1)
        for _ in range(10):
            assert answered() == 2


@pytest.mark.document("truss.14")
def test_plain_calls_run_in_threads_where_the_user_says_so() -> None:
    with serving("truss_threads", "--predict-threads") as server:
        assert [answer.json() for answer in several(server, {"meet": True}, 2)] == ["met", "met"]
        assert ask(server, {"stream": True}).text == "ab"
        assert ask(server, {"a": 1}).json() == {"a": 1}
