"""Scripts decorated by inference_schema, in an interpreter that has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support import azureml
from support.server import PACKAGES, Server, panglot, serving

MARK = "x-ms-run-function-failed"


@pytest.fixture(scope="module")
def schema() -> Iterator[Server]:
    with serving("azureml_schema", "--python", azureml.python()) as server:
        yield server


@pytest.fixture(scope="module")
def frames() -> Iterator[Server]:
    with serving("azureml_frames", "--python", azureml.python()) as server:
        yield server


def heard(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers[MARK] == "False"
    return answer.status_code, answer.json()["message"]


@pytest.mark.document("azureml.21")
def test_one_value_for_each_parameter(schema: Server) -> None:
    assert schema.client.post("/score", json={"data": [[1, 2], [3, 4]], "k": 2}).json() == [6.0, 14.0]
    assert schema.client.post("/score", json={"data": [[1, 2]], "other": 1}).json() == [9.0]
    assert schema.client.get("/score?data=[[1,2]]").json() == [9.0]
    assert heard(schema.client.post("/score", json={"k": 1})) == (
        400,
        "A value is not provided for the 'data' parameter.",
    )


@pytest.mark.document("azureml.20")
def test_bodies_that_are_no_json_object(schema: Server) -> None:
    def sent(content: bytes, kind: str = "application/json") -> tuple[int, str]:
        return heard(schema.client.post("/score", content=content, headers={"content-type": kind}))

    assert sent(b"{}", "text/plain") == (415, "Expects Content-Type to be application/json")
    assert sent(b"[1]") == (400, "POST body should be a JSON dictionary.")
    assert sent(b"") == (400, "POST body is empty. Expecting a JSON dictionary.")
    reason = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert sent(b"{") == (400, f"POST body could not be decoded as JSON: {reason}")
    assert sent(b"[" * 100 + b"]" * 100)[0] == 400
    assert sent(b'{"data": [[NaN, 1]]}')[0] == 400


@pytest.mark.document("azureml.23", "azureml.54")
def test_input_that_does_not_fit_its_sample_says_why(schema: Server) -> None:
    answer = schema.client.post("/score", json={"data": [[1, 2, 3]]})
    assert heard(answer) == (400, "Invalid input array: array has size 3 on dimension #1, while expected value is 2")


@pytest.mark.document("azureml.54")
def test_an_error_of_the_script_is_no_fault_of_the_input(schema: Server) -> None:
    mark = len(schema.lines)
    answer = schema.client.post("/score", json={"data": [[1, 2]], "k": -1})
    assert (answer.status_code, answer.headers[MARK]) == (500, "True")
    schema.wait_log("ValueError: k is negative", after=mark)


@pytest.mark.document("azureml.23")
def test_tables_and_nested_parameters(frames: Server) -> None:
    inputs = {"data": [{"age": 3, "name": "x"}], "note": "n"}
    answer = frames.client.post("/score", json={"Inputs": inputs, "GlobalParameters": {"method": "m"}})
    assert answer.json() == {"Results": [6], "columns": ["age", "name"], "method": "m"}


@pytest.mark.document("azureml.35")
def test_samples_are_the_schema_the_example_and_the_form(schema: Server) -> None:
    swagger = schema.client.get("/swagger.json").json()
    shown = {"data": [[1.0, 2.0]], "k": 3}
    assert swagger["definitions"]["ServiceInput"]["example"] == shown
    operation = schema.client.get("/openapi.json").json()["paths"]["/score"]["post"]
    content = operation["requestBody"]["content"]["application/json"]
    assert content["example"] == shown
    assert set(content["schema"]["properties"]) == {"data", "k"}
    assert schema.client.post("/score", json=content["example"]).status_code == 200


def test_parameters_are_tensors_by_name(schema: Server) -> None:
    described = schema.client.get("/v2/models/azureml_schema").json()
    assert described["inputs"] == [
        {"name": "data", "datatype": "FP64", "shape": [-1, -1]},
        {"name": "k", "datatype": "INT64", "shape": [1]},
    ]
    tensors = [
        {"name": "data", "datatype": "FP64", "shape": [2, 2], "data": [1, 2, 3, 4]},
        {"name": "k", "datatype": "INT64", "shape": [1], "data": [2]},
    ]
    answer = schema.client.post("/v2/models/azureml_schema/infer", json={"inputs": tensors}).json()
    assert answer["outputs"] == [{"name": "output", "datatype": "FP64", "shape": [2], "data": [6.0, 14.0]}]
    wrong = schema.client.post("/v2/models/azureml_schema/infer", json={"inputs": tensors[1:]})
    assert (wrong.status_code, wrong.json()) == (400, {"error": "A value is not provided for the 'data' parameter."})


@pytest.mark.document("azureml.36")
def test_a_swagger_file_of_the_package_wins(tmp_path: Path) -> None:
    azureml.write(tmp_path, swagger__json='{"swagger": "2.0", "own": 2}', swagger3__json='{"openapi": "3", "own": 3}')
    with serving(tmp_path) as server:
        assert [server.client.get(f"/swagger.json?version={name}").json().get("own") for name in ("2", "3", "3.1")] == [
            2,
            3,
            None,
        ]


def test_without_inference_schema_the_start_says_what_to_install() -> None:
    done = panglot("serve", str(PACKAGES / "azureml_schema"), "--port", "0")
    assert done.returncode == 3
    assert "'inference_schema' is not installed" in done.stderr
    assert "pip install inference_schema" in done.stderr


def test_flask_names_work_in_scripts_that_use_flask(tmp_path: Path) -> None:
    script = """
from azureml_inference_server_http.api.aml_request import rawhttp
from flask import Response, current_app, jsonify, request as current

def init():
    pass

@rawhttp
def run(req):
    if current.args.get("stream"):
        return Response((part for part in ("a", "b")), mimetype="text/plain")
    return jsonify(path=current.path, same=current._get_current_object() is req, app=current_app.name)
"""
    with serving(azureml.write(tmp_path, script), "--python", azureml.python()) as server:
        answer = server.client.post("/score", json={}).json()
        assert (answer["path"], answer["same"]) == ("/score", True)
        assert server.client.post("/score?stream=1").text == "ab"
