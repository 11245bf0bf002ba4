"""What Panglot adds to models of MLflow: tensors, further routes, settings, limits, and what the log says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import mlflow
from support.server import PACKAGES, Server, wait_until

pytestmark = [pytest.mark.rest("mlflow in an environment of its own"), pytest.mark.timeout(400)]
ROW = {"dataframe_records": [{"x": 1, "y": 2}]}


@pytest.fixture(scope="module")
def signature() -> Iterator[Server]:
    with mlflow.ours("mlflow_signature") as server:
        yield server


@pytest.fixture(scope="module")
def anything() -> Iterator[Server]:
    with mlflow.ours("mlflow_any") as server:
        yield server


def tensor(name: str, datatype: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def infer(server: Server, model: str, *inputs: dict[str, Any], **more: Any) -> Any:
    answer = server.client.post(f"/v2/models/{model}/infer", json={"inputs": list(inputs), **more})
    assert answer.status_code == 200, answer.text
    return [(output["name"], output["datatype"], output["data"]) for output in answer.json()["outputs"]]


def order(server: Server, op: str) -> Any:
    return server.client.post("/invocations", json={"dataframe_split": {"columns": ["op"], "data": [[op]]}})


# Tensors


def test_columns_of_the_signature_are_tensors(signature: Server) -> None:
    about = signature.client.get("/v2/models/mlflow_signature").json()
    assert [(spec["name"], spec["datatype"]) for spec in about["inputs"]] == [("x", "FP64"), ("y", "FP64")]
    columns = (tensor("x", "FP64", [2], [1, 2]), tensor("y", "FP64", [2, 1], [3, 4]))
    assert infer(signature, "mlflow_signature", *columns) == [("output", "FP64", [4.0, 6.0])]
    scaled = infer(signature, "mlflow_signature", *columns, parameters={"t": 1.0})
    assert scaled == [("output", "FP64", [8.0, 12.0])]


def test_tensors_of_a_model_without_a_signature(anything: Server) -> None:
    assert infer(anything, "mlflow_any", tensor("a", "INT64", [1, 2], [1, 2])) == [("output", "INT64", [3])]
    both = (tensor("a", "INT64", [1], [1]), tensor("b", "INT64", [1], [5]))
    assert infer(anything, "mlflow_any", *both) == [("output", "INT64", [6])]
    frame = infer(anything, "mlflow_any", tensor("op", "BYTES", [1, 2], ["frame", ""]))
    assert frame == [("a", "FP64", [1.5]), ("b", "BYTES", ["x"])]


def test_a_tensor_of_the_signature() -> None:
    with mlflow.ours("mlflow_tensor") as server:
        rows = tensor("input", "FP32", [1, 3], [1, 2, 3])
        assert infer(server, "mlflow_tensor", rows) == [("output", "FP32", [6.0])]


def test_a_body_of_the_platform_as_one_element(anything: Server) -> None:
    body = json.dumps({"inputs": [[1, 2]]})
    assert infer(anything, "mlflow_any", tensor("body", "BYTES", [1], [body])) == [
        ("output", "BYTES", ['{"predictions": [3]}'])
    ]


def test_columns_that_are_missing_are_400(signature: Server) -> None:
    body = {"inputs": [tensor("x", "FP64", [1], [1])]}
    answer = signature.client.post("/v2/models/mlflow_signature/infer", json=body)
    assert answer.status_code == 400
    assert "Model is missing inputs ['y']" in answer.text


# Further routes


@pytest.mark.document("mlflow.28")
@pytest.mark.parametrize(
    "path", ["/serving-endpoints/mlflow_signature/invocations", "/model/mlflow_signature/1/invocations"]
)
def test_routes_of_databricks(signature: Server, path: str) -> None:
    assert signature.client.post(path, json=ROW).json() == {"predictions": [3.0]}


@pytest.mark.document("mlflow.28")
def test_an_endpoint_that_does_not_exist(signature: Server) -> None:
    answer = signature.client.post("/serving-endpoints/other/invocations", json=ROW)
    assert answer.status_code == 404
    assert answer.json()["error_code"] == "RESOURCE_DOES_NOT_EXIST"


@pytest.mark.document("mlflow.19")
@pytest.mark.parametrize(
    "data",
    [{"columns": ["x", "y"], "index": [0], "data": [[1, 2]]}, {"x": [1.0], "y": [2.0]}],
    ids=["a table", "columns"],
)
def test_requests_of_azure(signature: Server, data: Any) -> None:
    answer = signature.client.post("/score", json={"input_data": data, "params": {"t": 1.0}})
    assert answer.json() == [6.0]


@pytest.mark.document("mlflow.19")
def test_requests_of_azure_without_a_signature(anything: Server) -> None:
    assert anything.client.post("/score", json={"input_data": [[1, 2], [3, 4]]}).json() == [3, 7]
    answer = anything.client.post("/score", json={"inputs": [[1]]})
    assert answer.status_code == 400
    assert "input_data" in answer.json()["message"]


# What is known about the model


@pytest.mark.document("mlflow.25")
def test_the_example_and_the_schema_are_shown(signature: Server) -> None:
    page = signature.client.get("/openapi.json").json()
    body = page["paths"]["/invocations"]["post"]["requestBody"]["content"]["application/json"]
    assert "dataframe_records" in json.dumps(body)
    assert signature.client.get("/version").text == mlflow.VERSION
    assert signature.client.get("/ping").content == b"\n"


def test_a_failure_of_the_model_is_in_the_log_and_that_of_a_client_is_not(anything: Server) -> None:
    mark = len(anything.lines)
    assert anything.client.post("/invocations", json={"a": 1}).status_code == 400
    answer = order(anything, "raise")
    assert answer.status_code == 400
    assert "a secret of the model" not in answer.text
    anything.wait_log("a secret of the model", after=mark)
    assert "Received dictionary" not in "\n".join(anything.lines[mark:])


@pytest.mark.document("mlflow.14")
def test_exceptions_of_mlflow_have_their_own_status(anything: Server) -> None:
    answer = order(anything, "absent")
    assert answer.status_code == 404
    assert answer.json()["error_code"] == "RESOURCE_DOES_NOT_EXIST"


def test_limits_of_json(anything: Server) -> None:
    deep = '{"inputs": ' + "[" * 100 + "]" * 100 + "}"
    answer = anything.client.post("/invocations", content=deep, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error_code"]) == (400, "BAD_REQUEST")
    assert order(anything, "scalar").json() == {"predictions": 3}


@pytest.mark.document("mlflow.24")
def test_nan_is_null_with_a_warning(anything: Server) -> None:
    answer = order(anything, "nans")
    assert answer.text == '{"predictions": [1.0, null, null]}'
    assert answer.headers["x-panglot-warning"] == "nan: 2 values replaced by null"


@pytest.mark.document("mlflow.24")
def test_nan_as_on_the_platform() -> None:
    with mlflow.ours("mlflow_any", "--nan", "platform") as server:
        assert order(server, "nans").text == '{"predictions": [1.0, NaN, Infinity]}'


# Loading


@pytest.mark.document("mlflow.04")
def test_the_configuration_of_the_environment() -> None:
    request = {"dataframe_records": [{"text": "one two"}]}
    with mlflow.ours("mlflow_artifacts", env={"SERVING_MODEL_CONFIG": '{"shout": true, "unknown": "x"}'}) as server:
        assert server.client.post("/invocations", json={"dataframe_records": [{"text": "three"}]}).json() == {
            "predictions": ["X"]
        }
        assert server.client.post("/invocations", json=request).json() == {"predictions": ["1 2"]}


def test_a_repository_is_served_as_it_is() -> None:
    with mlflow.ours("mlflow_repository") as server:
        assert server.client.post("/invocations", json=ROW).json() == {"predictions": [3.0]}


def failing(package: Path) -> str:
    """What a start that fails says; its exit code is 3."""
    with mlflow.ours(package, ready=False) as server:
        assert server.process.wait(60) == 3
    # Only now all of it has been read.
    return server.log


@pytest.mark.document("mlflow.26")
def test_a_module_that_is_missing_is_named(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "mlflow_loader", tmp_path / "model")
    loader = package / "code" / "house_loader.py"
    loader.write_text("import not_of_this_machine\n" + loader.read_text())
    log = failing(package)
    assert "not_of_this_machine" in log
    assert "code_paths" in log


@pytest.mark.document("mlflow.26")
def test_a_model_whose_code_fails_is_named_with_its_line(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "mlflow_any", tmp_path / "model")
    (package / "model.py").write_text("import mlflow\n\n1 / 0\n")
    assert "model.py:3" in failing(package)


def test_a_model_that_names_no_model(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "mlflow_any", tmp_path / "model")
    (package / "model.py").write_text("import mlflow\n")
    assert "set_model" in failing(package)


def test_a_model_that_changes_is_loaded_anew(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "mlflow_tensor", tmp_path / "model")
    request = {"inputs": [[1, 2, 3]]}
    with mlflow.ours(package, "--reload") as server:
        assert server.client.post("/invocations", json=request).json() == {"predictions": [6.0]}
        text = (package / "model.py").read_text().replace("sum(", "max(")
        server.change(lambda: (package / "model.py").write_text(text))
        wait_until(lambda: server.client.post("/invocations", json=request).json() == {"predictions": [3.0]}, 120)
