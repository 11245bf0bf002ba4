"""The Open Inference Protocol over REST, asked by hand; what clients of others ask is in `test_clients`."""

from __future__ import annotations

import gzip
import json
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.server import ROOT, Server, serving
from support.traffic import times
from support.wire import Wire

FLOATS = struct.pack("<4f", 1, 2, 3, 4)
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--max-body", "3m") as running:
        yield running


@pytest.fixture(scope="module")
def rows() -> Iterator[Server]:
    with serving("tensor_rows", "--max-batch", "8") as running:
        yield running


def tensor(name: str, datatype: str, data: Any, *shape: int) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape or (len(data),)), "data": data}


def infer(server: Server, *inputs: Any, version: str = "", **more: Any) -> httpx.Response:
    name = server.client.post("/v2/repository/index").json()[0]["name"]
    path = f"/v2/models/{name}{f'/versions/{version}' if version else ''}/infer"
    return server.client.post(path, json={"inputs": list(inputs), **more})


def outputs(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return {one["name"]: one for one in answer.json()["outputs"]}


# What the server says


def test_the_server_and_its_model_are_described(server: Server) -> None:
    for path in ("/v2", "/v2/"):
        about = server.client.get(path).json()
        assert about["name"] == "panglot"
        assert {"binary_tensor_data", "model_configuration", "statistics"} <= set(about["extensions"])
    for start in ("/v2/models/tensors", "/v2/models/tensors/versions/1"):
        found = server.client.get(start).json()
        assert found["name"] == "tensors"
        assert found["versions"] == ["1"]
        assert found["inputs"] == [{"name": "input", "datatype": "BYTES", "shape": [1]}]
        assert server.client.get(f"{start}/ready").status_code == 200
        config = server.client.get(f"{start}/config").json()
        assert config["max_batch_size"] == 0
        assert config["input"] == [{"name": "input", "data_type": "TYPE_STRING", "dims": [1]}]
    ready = [{"name": "tensors", "version": "1", "state": "READY", "reason": ""}]
    assert server.client.post("/v2/repository/index").json() == ready
    assert server.client.post("/v2/repository/index", json={"ready": True}).json() == ready
    assert server.client.post("/v2/repository/index", content=b"[").json().keys() == {"error"}


def stats(server: Server, name: str) -> dict[str, Any]:
    counted: dict[str, Any] = server.client.get(f"/v2/models/{name}/stats").json()["model_stats"][0]
    return counted


def test_statistics_count_every_request(server: Server) -> None:
    before = stats(server, "tensors")
    infer(server, tensor("x", "FP32", [1.5]))
    server.predict({"x": 1})
    infer(server, tensor("fail", "FP32", [1.5]))
    after = stats(server, "tensors")
    assert after["inference_count"] - before["inference_count"] == 2
    assert after["execution_count"] - before["execution_count"] == 2
    assert after["inference_stats"]["fail"]["count"] - before["inference_stats"]["fail"]["count"] == 1
    assert after["inference_stats"]["success"]["ns"] > before["inference_stats"]["success"]["ns"]
    assert abs(after["last_inference"] / 1000 - time.time()) < 60
    assert server.client.get("/v2/models/stats").json()["model_stats"][0]["name"] == "tensors"


def test_statistics_count_rows_and_the_runs_they_shared(rows: Server) -> None:
    """As Triton has them: an inference is a row, an execution a run, and runs are told apart by their rows."""
    before = stats(rows, "tensor_rows")
    assert infer(rows, tensor("x", "FP32", [[1.0]] * 3, 3, 1)).status_code == 200
    assert infer(rows, tensor("x", "FP32", [[1.0]] * 20, 20, 1)).status_code == 200
    assert infer(rows, tensor("x", "FP32", [[1.0]], 1, 1)).status_code == 200
    after = stats(rows, "tensor_rows")
    assert after["inference_count"] - before["inference_count"] == 24
    assert after["execution_count"] - before["execution_count"] == 5
    assert after["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"] == 3
    by_rows, before_by_rows = (
        {one["batch_size"]: one["compute_infer"]["count"] for one in counted["batch_stats"]}
        for counted in (after, before)
    )
    assert {size: count - before_by_rows.get(size, 0) for size, count in by_rows.items()} | {1: 1} == {
        1: 1, 3: 1, 4: 1, 8: 2,
    }  # fmt: skip
    assert sum(one["compute_infer"]["count"] for one in after["batch_stats"]) == after["execution_count"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/models/other", 404), ("GET", "/v2/models/tensors/versions/2", 404),
        ("GET", "/v2/models/other/ready", 404), ("GET", "/v2/models/tensors/versions/2/config", 404),
        ("POST", "/v2/models/other/infer", 404), ("POST", "/v2/models/tensors/versions/2/infer", 404),
        ("GET", "/v2/models/tensors/nothing", 404), ("GET", "/v2/nothing", 404),
        ("GET", "/v2/models/tensors/infer", 405), ("POST", "/v2/models/tensors", 405), ("POST", "/v2", 405),
        ("GET", "/v2/repository/index", 405), ("GET", "/v2/systemsharedmemory/status", 501),
        ("POST", "/v2/cudasharedmemory/region/a/register", 501), ("GET", "/v2/models/tensors/trace/setting", 501),
        ("POST", "/v2/logging", 501), ("POST", "/v2/models/tensors/generated", 404),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_a_sentence(server: Server, method: str, path: str, status: int) -> None:
    answer = server.client.request(method, path, content=b"{}")
    assert answer.status_code == status
    assert isinstance(answer.json()["error"], str)


@pytest.mark.parametrize("chunked", [False, True])
def test_an_unknown_model_is_404_whatever_the_size(server: Server, chunked: bool) -> None:
    body: Any = iter([b"x" * 65536] * 80) if chunked else b"x" * (5 << 20)
    answer = httpx.post(f"{server.url}/v2/models/other/infer", content=body)
    assert answer.status_code == 404
    assert answer.json() == {"error": "there is no model 'other'; there is tensors"}


def test_a_body_that_is_too_large_is_413_in_the_words_of_the_protocol(server: Server) -> None:
    answer = httpx.post(f"{server.url}/v2/models/tensors/infer", content=b"x" * (5 << 20))
    assert answer.status_code == 413
    assert isinstance(answer.json()["error"], str)


def test_refusals_before_the_route_is_known_have_the_key_error(server: Server) -> None:
    answer = httpx.get(f"{server.url}/v2/models/tensors", headers={"host": "elsewhere.example"})
    assert answer.status_code == 403
    assert isinstance(answer.json()["error"], str)
    with Wire(server) as client:
        client.send(b"GET /v2/models/tensors HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")
        refused = client.reply()
    assert refused.status == 431
    assert isinstance(json.loads(refused.body)["error"], str)


# Tensors


def test_tensors_come_by_name_as_arrays_and_go_back(server: Server) -> None:
    answer = infer(
        server, tensor("a", "FP32", [[1, 2], [3, 4]], 2, 2), tensor("b", "BYTES", ["é"]), id="7", version="1"
    )
    assert answer.json() == {
        "model_name": "tensors",
        "model_version": "1",
        "id": "7",
        "outputs": [tensor("a", "FP32", [1.0, 2.0, 3.0, 4.0], 2, 2), tensor("b", "BYTES", ["é"])],
    }
    kinds = outputs(infer(server, tensor("kinds", "BOOL", [True]), tensor("x", "INT16", [1])))
    assert kinds["x"]["data"] == ["ndarray int16"]


@pytest.mark.parametrize(
    ("datatype", "data"),
    [("BOOL", [True, False]), ("UINT8", [255, 0]), ("INT64", [-(2**63), 1]), ("UINT64", [2**64 - 1, 0]),
     ("FP64", [1e300, 0.5]), ("INT32", []), ("BYTES", ["", "ü"])],
)  # fmt: skip
def test_every_datatype_goes_through(server: Server, datatype: str, data: Any) -> None:
    given = tensor("x", datatype, data, len(data))
    also = tensor("y", "INT8", [1])
    assert outputs(infer(server, given, also))["x"] == given


def test_an_answer_without_an_id_has_none(server: Server) -> None:
    """Some clients write null for what they do not send."""
    assert "id" not in infer(server, tensor("x", "INT8", [1])).json()
    nothing = {"id": None, "parameters": None, "outputs": None}
    assert "id" not in infer(server, {**tensor("x", "INT8", [1]), "parameters": None}, **nothing).json()
    assert infer(server, tensor("x", "INT8", [1]), id=0).status_code == 400


def test_wrong_requests_are_400_with_a_sentence_and_harm_nobody(server: Server) -> None:
    wrong = [
        tensor("x", "INT32", [1.5]), tensor("x", "FP32", [1e39]), tensor("x", "FP32", [1], 2), tensor("x", "FP99", [1]),
        tensor("x", "FP16", [1.0]), {"name": "x"}, 5,
    ]  # fmt: skip
    for one in wrong:
        answer = infer(server, one)
        assert answer.status_code == 400, one
        assert answer.json().keys() == {"error"}
    answer = infer(server, tensor("x", "INT8", [1]), outputs=[{"name": "y"}])
    assert answer.status_code == 400
    assert answer.json() == {"error": "there is no output 'y'; there is x"}
    assert server.metric("panglot_worker_restarts_total") == 0


def test_a_script_that_fails_is_500_and_the_log_tells_why(server: Server) -> None:
    answer = infer(server, tensor("fail", "INT8", [1]))
    assert answer.status_code == 500
    assert answer.json() == {"error": "the script failed on this request; the server's log says why"}
    server.wait_log("as it was told")


def test_a_deadline_is_504(server: Server) -> None:
    body = {"inputs": [tensor("sleep", "FP32", [0.3])]}
    answer = server.client.post("/v2/models/tensors/infer", json=body, headers={"x-timeout-ms": "20"})
    assert answer.status_code == 504
    assert isinstance(answer.json()["error"], str)


def test_nan_in_json_is_null_with_a_warning(server: Server) -> None:
    answer = infer(server, tensor("nan", "INT8", [1]))
    assert outputs(answer)["nan"]["data"] == [None, 1.0]
    assert "nan" in answer.headers["x-panglot-warning"]


# Bytes


def binary(server: Server, header: dict[str, Any], behind: bytes, **headers: str) -> httpx.Response:
    text = json.dumps(header).encode()
    length = {"inference-header-content-length": str(len(text)), **headers}
    return server.client.post("/v2/models/tensors/infer", content=text + behind, headers=length)


def parted(answer: httpx.Response) -> tuple[dict[str, Any], bytes]:
    size = int(answer.headers["inference-header-content-length"])
    return json.loads(answer.content[:size]), answer.content[size:]


def test_binary_tensors_and_json_may_be_mixed(server: Server) -> None:
    given = [
        {"name": "a", "datatype": "FP32", "shape": [2, 2], "parameters": {"binary_data_size": 16}},
        tensor("j", "INT8", [5]),
        {"name": "h", "datatype": "FP16", "shape": [1], "parameters": {"binary_data_size": 2}},
        {"name": "s", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}},
    ]
    asked = [{"name": name, "parameters": {"binary_data": name != "j"}} for name in ("s", "j", "h", "a")]
    behind = FLOATS + b"\x00\x3c" + b"\2\0\0\0\xff\xfe"
    about, raw = parted(binary(server, {"inputs": given, "outputs": asked}, behind))
    assert [one["name"] for one in about["outputs"]] == ["s", "j", "h", "a"]
    assert about["outputs"][1]["data"] == [5]
    assert raw == b"\2\0\0\0\xff\xfe" + b"\x00\x3c" + FLOATS
    about, raw = parted(binary(server, {"inputs": given, "parameters": {"binary_data_output": True}}, behind))
    assert [one["parameters"]["binary_data_size"] for one in about["outputs"]] == [16, 1, 2, 6]
    refused = binary(server, {"inputs": given}, behind)
    assert refused.status_code == 400
    assert "binary data" in refused.json()["error"]


def test_a_request_of_nothing_but_bytes_is_the_native_body(server: Server) -> None:
    picture = (ROOT / "examples" / "digits" / "seven.png").read_bytes()
    path = "/v2/models/tensors/infer"
    about, raw = parted(server.client.post(path, content=picture, headers={"inference-header-content-length": "0"}))
    assert about["outputs"][0]["datatype"] == "BYTES"
    assert json.loads(raw[4:]) == {"kind": "File", "size": len(picture)}
    assert outputs(infer(server, tensor("any", "BYTES", ["[1, 2]"])))["output"]["data"] == ['{"kind":"list","size":2}']


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_bodies_are_inflated_and_answers_deflated_for_who_names_one_coding(server: Server, coding: str) -> None:
    plain = json.dumps({"inputs": [tensor("x", "INT8", [1])]}).encode()
    packed = gzip.compress(plain) if coding == "gzip" else zlib.compress(plain)
    path, header = "/v2/models/tensors/infer", {"content-encoding": coding}
    one = server.client.post(path, content=packed, headers={**header, "accept-encoding": coding})
    assert one.headers["content-encoding"] == coding
    several = server.client.post(path, content=packed, headers={**header, "accept-encoding": "gzip, deflate"})
    assert "content-encoding" not in several.headers
    only = server.client.post(
        path, content=packed, headers={**header, "accept-encoding": f"br;q=0.000, {coding};q=1.0"}
    )
    assert only.headers["content-encoding"] == coding
    assert outputs(one) == outputs(several)
    assert server.client.post(path, content=plain, headers=header).status_code == 400
    assert server.client.post(path, content=plain, headers={"content-encoding": "br"}).status_code == 415
    native = server.client.post("/predict", content=packed, headers={**header, **JSON})
    assert native.status_code == 415


# Rows


def test_rows_are_items_of_a_batch_and_their_results_are_stacked(rows: Server) -> None:
    found = outputs(infer(rows, tensor("x", "FP32", [[1, 2], [3, 4], [5, 6]], 3, 2)))
    assert found["twice"] == tensor("twice", "FP32", [2.0, 4.0, 6.0, 8.0, 10.0, 12.0], 3, 2)
    assert found["calls"] == tensor("calls", "INT64", [3, 3, 3])
    many = outputs(infer(rows, tensor("x", "FP32", list(range(20)), 20, 1)))
    assert many["twice"]["shape"] == [20, 1]
    assert max(many["calls"]["data"]) <= 8
    nothing = infer(rows, tensor("x", "FP32", [], 0, 2))
    assert nothing.status_code == 200
    assert rows.predict(5).json() == {"native": 5}


def test_a_bad_request_costs_its_neighbours_nothing(rows: Server) -> None:
    answers: dict[int, httpx.Response] = {}

    def ask(number: int) -> None:
        values = [float(-1 if number % 5 == 0 else number)] * 4
        with rows.new_client() as client:
            body = {"inputs": [tensor("x", "FP32", values, 2, 2)]}
            answers[number] = client.post("/v2/models/tensor_rows/infer", json=body)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(times(40, 300))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, answer in answers.items():
        if number % 5 == 0:
            assert answer.status_code == 500
        else:
            assert outputs(answer)["twice"]["data"] == [number * 2.0] * 4


def test_inputs_of_unequal_rows_are_refused(rows: Server) -> None:
    answer = infer(rows, tensor("x", "FP32", [1, 2], 2, 1), tensor("y", "FP32", [1], 1, 1))
    assert answer.status_code == 400
    assert "rows" in answer.json()["error"]
