"""What functions get of a request, and what clients get of their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import httpx
import numpy as np
import pytest

from support.server import Server, serving

JSON = "application/json"


@pytest.fixture(scope="module")
def ops() -> Iterator[Server]:
    with serving("sagemaker_ops") as server:
        yield server


@pytest.fixture(scope="module")
def defaults() -> Iterator[Server]:
    with serving("sagemaker_defaults") as server:
        yield server


@pytest.fixture(scope="module")
def transform() -> Iterator[Server]:
    with serving("sagemaker_transform", env={"SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT": "text/csv"}) as server:
        yield server


def ask(server: Server, op: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    return server.client.post("/invocations", json={"op": op, **more}, headers=headers)


def send(server: Server, content: bytes | str, kind: str = JSON, accept: str = "*/*", **headers: str) -> httpx.Response:
    lines = {"Accept": accept, **({"Content-Type": kind} if kind else {}), **headers}
    return server.client.post("/invocations", content=content, headers=lines)


# What the functions get


@pytest.mark.document("sagemaker.09")
@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (JSON, "str"),
        ("text/csv", "str"),
        ("image/png", "bytearray"),
        (JSON + "; charset=utf-8", "bytearray"),
        ("", "bytearray"),
    ],
)
def test_json_and_csv_are_text_and_all_else_is_bytes(ops: Server, kind: str, type_: str) -> None:
    assert send(ops, '{"op": "about"}', kind).json() == {"type": type_, "content_type": kind or None, "length": 15}


@pytest.mark.document("sagemaker.16")
def test_a_content_type_without_a_dash(ops: Server) -> None:
    assert send(ops, "1,2", "", ContentType="text/csv").json()["content_type"] == "text/csv"


@pytest.mark.document("sagemaker.05")
def test_the_functions_around_the_model_run_in_their_order(ops: Server) -> None:
    assert ask(ops, "happened").json() == ["pre_model_fn", "model_fn", "model_warmup_fn"]


@pytest.mark.document("sagemaker.02", "sagemaker.03")
def test_the_environment_of_a_script_and_modules_beside_it(ops: Server) -> None:
    assert ask(ops, "environment").json() == ["inference.py", True, "inference", "inference"]
    assert ask(ops, "sum", values=[1, 2, 3]).json() == 24
    assert json.loads(ask(ops, "codecs").json()) == [[2, 4], [6, 8]]


@pytest.mark.document("sagemaker.06", "sagemaker.19")
def test_the_context(ops: Server) -> None:
    names = {"X-Amzn-SageMaker-Custom-Attributes": "c=1", "X-Amzn-SageMaker-Inference-Id": "i-7"}
    assert ask(ops, "headers", names).json() == {"Content-Type": JSON, **names}
    shown = ask(ops, "properties", {"X-Request-Id": "r-9"}).json()
    assert shown == {"gpu_id": None, "batch_size": 1, "server_name": "MMS", "id": "r-9"}
    answer = ask(ops, "answer headers")
    assert (answer.status_code, answer.headers["x-amzn-sagemaker-custom-attributes"]) == (202, "trace=7")
    assert ask(ops, "about").status_code == 200, "what one request sets is gone with it"


@pytest.mark.document("sagemaker.07", "sagemaker.10")
def test_one_function_for_everything(transform: Server) -> None:
    assert send(transform, "abc", "text/csv").json() == [True, "str", "text/csv", "text/csv", "3"]
    assert send(transform, b"\x00", "image/png", "image/png").json() == [
        True,
        "bytearray",
        "image/png",
        "image/png",
        "1",
    ]
    answer = send(transform, "raise", "text/csv")
    assert (answer.status_code, answer.text) == (500, "no\nway")


@pytest.mark.document("sagemaker.10")
@pytest.mark.parametrize(
    ("accept", "given"), [("*/*", JSON), ("", JSON), ("text/csv", "text/csv"), ("a/b, c/d", "a/b, c/d")]
)
def test_what_a_client_accepts(ops: Server, accept: str, given: str) -> None:
    answer = send(ops, '{"op": "accept"}', accept=accept)
    assert (answer.text, answer.headers["content-type"]) == (given, given)


# What the client gets


@pytest.mark.document("sagemaker.11")
def test_a_tuple_names_its_content_type(ops: Server) -> None:
    answer = ask(ops, "tuple")
    assert (answer.text, answer.headers["content-type"]) == ("<x/>", "text/x")


@pytest.mark.document("sagemaker.12")
@pytest.mark.parametrize(("op", "value"), [("dict", {"a": 1}), ("list", [1, 2]), ("none", None), ("number", 7)])
def test_results_that_are_no_text_are_json(ops: Server, op: str, value: Any) -> None:
    answer = ask(ops, op)
    assert (answer.status_code, answer.json()) == (200, value)
    assert ask(ops, "bytes").content == b"\x00\x01"
    assert ask(ops, "set").status_code == 500


@pytest.mark.document("sagemaker.17", "sagemaker.18")
def test_failures(ops: Server) -> None:
    for op, status, text in (("raise", 500, "no\nway"), ("silent", 500, "Invalid Request"), ("toolkit", 418, "m")):
        answer = ask(ops, op, text="no\nway")
        assert (answer.status_code, answer.text) == (status, text)
    assert ask(ops, "raise in input_fn").text == "'input'"
    ops.wait_log("ValueError: no")


@pytest.mark.document("sagemaker.20", "sagemaker.21")
def test_the_routes_of_the_container(ops: Server) -> None:
    assert ops.client.get("/ping").json() == {"status": "Healthy"}
    lost = ops.client.get("/nowhere")
    text = "Requested resource is not found, please refer to API document."
    assert (lost.status_code, lost.json()) == (
        404, {"code": 404, "type": "ResourceNotFoundException", "message": text}
    )  # fmt: skip
    assert ops.client.put("/invocations").json()["type"] == "MethodNotAllowedException"
    assert ops.client.get("/execution-parameters").status_code == 404
    assert ops.client.post("/endpoints/any-name/invocations", json={"op": "number"}).json() == 7
    assert ops.client.post("/models/sagemaker_ops/invoke", json={"op": "number"}).json() == 7
    assert ops.client.post("/models/another/invoke", json={"op": "number"}).status_code == 404


# Without input_fn and output_fn


@pytest.mark.document("sagemaker.13", "sagemaker.14")
def test_defaults_for_bodies(defaults: Server) -> None:
    assert send(defaults, "[[1, 2]]").text == "[[2, 4]]"
    answer = send(defaults, "1,2\n3,4", "text/csv", "text/csv")
    assert (answer.text, answer.headers["content-type"]) == ("2,4\n6,8\n", "text/csv")
    stream = BytesIO()
    np.save(stream, np.array([[1.5, 2.0]], order="F"))
    answer = send(defaults, stream.getvalue(), "application/x-npy", "application/x-npy")
    assert np.load(BytesIO(answer.content)).tolist() == [[3.0, 4.0]]
    assert send(defaults, stream.getvalue(), "application/x-npy").json() == [[3.0, 4.0]]
    assert send(defaults, "[1, 2, 3]").json() == {"a": 1.5, "shape": [3]}
    assert send(defaults, "[[1]]", accept="image/png, text/csv").headers["content-type"] == "text/csv"


@pytest.mark.document("sagemaker.13")
def test_sparse_matrices_of_scipy(defaults: Server) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    stream = BytesIO()
    sparse.save_npz(stream, sparse.csr_matrix(np.eye(2)))
    assert send(defaults, stream.getvalue(), "application/x-npz").json() == [[2.0, 0.0], [0.0, 2.0]]


@pytest.mark.document("sagemaker.15")
@pytest.mark.parametrize(
    ("kind", "accept"), [("text/plain", "*/*"), (JSON + "; charset=utf-8", "*/*"), (JSON, "image/png")]
)
def test_types_that_the_toolkit_does_not_know(defaults: Server, kind: str, accept: str) -> None:
    answer = send(defaults, "[1]", kind, accept)
    wrong = accept if accept != "*/*" else kind
    assert answer.status_code == 500
    assert answer.text.startswith(f"Content type {wrong} is not supported by this framework.")


def test_a_client_that_is_wrong_again_and_again_costs_no_worker(defaults: Server) -> None:
    for _ in range(30):
        assert send(defaults, "{", JSON).status_code == 500
    assert send(defaults, "[[1]]").json() == [[2]]
    assert defaults.metric("panglot_worker_restarts_total") == 0


def test_pickles_of_clients_are_refused(defaults: Server) -> None:
    stream = BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    answer = send(defaults, stream.getvalue(), "application/x-npy")
    assert (answer.status_code, "allow_pickle=False" in answer.text) == (500, True)


def test_an_array_that_claims_to_be_huge_is_refused(defaults: Server) -> None:
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    answer = send(defaults, stream.getvalue(), "application/x-npy")
    assert (answer.status_code, answer.text) == (500, "the array has fewer elements than its header says")


def test_nan_is_null_with_a_warning(defaults: Server) -> None:
    answer = send(defaults, "[1, 2, 3, 4, 5]")
    assert answer.json() == [1.0, None]
    assert "nan" in answer.headers["x-panglot-warning"]


def test_tensors_become_the_array_of_predict_fn(defaults: Server) -> None:
    tensor = {"name": "x", "datatype": "FP64", "shape": [1, 2], "data": [1.5, 2.0]}
    answer = defaults.client.post("/v2/models/sagemaker_defaults/infer", json={"inputs": [tensor]})
    assert answer.json()["outputs"][0]["data"] == [3.0, 4.0]


@pytest.mark.document("sagemaker.04")
def test_a_training_script_is_imported_and_not_run() -> None:
    with serving("sagemaker_training") as server:
        assert send(server, "[1, 2]").text == "[3, 6]"


@pytest.mark.document("sagemaker.06", "sagemaker.11")
def test_lines_of_json_in_and_out() -> None:
    with serving("sagemaker_lines") as server:
        lines = b'{"text": "hello world"}\n{"text": "world"}\n'
        answer = send(server, lines, "application/jsonlines", "application/jsonlines")
        assert answer.text == '{"tokens": [0, 1]}\n{"tokens": [1]}'
        assert answer.headers["content-type"] == "application/jsonlines"
        assert send(server, '{"text": "hello you"}').json() == [[0, -1]]
        assert send(server, "x", "text/plain").text == "Requested unsupported ContentType in content_type: text/plain"
