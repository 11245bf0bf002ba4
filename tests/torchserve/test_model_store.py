"""A model store: several archives in one server, the management API, gRPC, and TorchServe's command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.models import all_of
from support.rpc import address
from support.server import PACKAGES, Server, panglot, serving
from support.torchserve import archive, call, prediction

TOKEN = "admin-token"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    archive(PACKAGES / "torchserve_echo", folder / "echo.mar", "handler.py", "1.0")
    archive(PACKAGES / "torchserve_batch", folder / "batch.tar.gz", "service.py", "2.0")
    return folder


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Server]:
    env = {"PANGLOT_ADMIN_TOKEN": TOKEN}
    with serving(all_of(store), "--admin", "--grpc-port", "0", env=env) as running:
        yield running


def admin(server: Server, method: str, path: str) -> tuple[int, dict[str, object]]:
    answer = server.client.request(method, path, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)
    return answer.status_code, answer.json()


def test_all_archives_of_a_folder_are_served(server: Server) -> None:
    assert server.client.post("/predictions/echo", json=1).json() == {"body": ["int", 1]}
    answer = server.client.post("/predictions/batch/2.0", content="hi", headers={"content-type": "text/plain"})
    assert answer.text == "hi of 1"
    assert server.client.get("/ping").json() == {"status": "Healthy"}
    listed = {entry["modelName"] for entry in server.client.get("/models").json()["models"]}
    assert listed == {"batch", "echo"}


def test_changes_need_the_token_of_the_administration(server: Server) -> None:
    assert server.client.delete("/models/echo").status_code == 401
    assert server.client.post("/models?url=echo.mar").status_code == 401


@pytest.mark.document("torchserve.22")
def test_a_model_is_scaled_unregistered_and_registered_again(server: Server) -> None:
    status, said = admin(server, "PUT", "/models/batch?min_worker=2&synchronous=true")
    assert (status, said) == (200, {"status": "Workers scaled to 2 for model: batch"})
    assert admin(server, "DELETE", "/models/batch") == (200, {"status": 'Model "batch" unregistered'})
    assert server.client.post("/predictions/batch").status_code == 404
    assert admin(server, "POST", "/models?url=nope.mar")[0] == 400
    assert admin(server, "POST", "/models?url=http://example.com/batch.mar")[0] == 400
    assert admin(server, "POST", "/models?url=echo.mar")[0] == 409
    status, said = admin(server, "POST", "/models?url=batch.tar.gz&initial_workers=1&synchronous=true")
    assert (status, said) == (200, {"status": 'Model "batch" Version: 2.0 registered with 1 initial workers'})
    assert server.client.post("/predictions/batch", content="a").status_code == 200
    assert admin(server, "PUT", "/models/batch/2.0/set-default")[0] == 200
    assert admin(server, "GET", "/models/nope")[1]["type"] == "ModelNotFoundException"


# gRPC


@pytest.mark.document("torchserve.23")
def test_the_inference_service_of_grpc(server: Server) -> None:
    where = address(server)
    assert b"Healthy" in call(where, "Ping", b"")[0]
    (answer,) = call(where, "Predictions", prediction("echo", data=b"[1]", note=b"hi"))
    assert json.loads(answer) == {"data": ["bytearray", "[1]"], "note": ["bytearray", "hi"]}
    parts = call(where, "StreamPredictions", prediction("echo", act=b"stream"))
    assert parts == [b"part 0;", b"part 1;", b"part 2;", b"end"]
    refused = call(where, "Predictions", prediction("nope", data=b"1"))
    assert refused == ("INTERNAL", "Model not found: nope\norg.pytorch.serve.archive.model.ModelNotFoundException")


# The command line


@pytest.mark.document("torchserve.25")
def test_a_command_line_of_torchserve_names_what_is_missing(store: Path) -> None:
    done = panglot("torchserve", "--start", "--ncs", "--model-store", str(store), "--models", "m=nope.mar")
    assert done.returncode == 3
    assert "nope.mar is not in the model store" in done.stderr


@pytest.mark.document("torchserve.25", "torchserve.22")
def test_a_command_line_of_torchserve_with_a_port_for_the_management(store: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.properties"
    config.write_text("management_address=http://127.0.0.1:8081\n")
    flags = ("--model-store", str(store), "--ts-config", str(config), "--ncs", "--start", "--admin")
    env = {"PANGLOT_ADMIN_TOKEN": TOKEN}
    with serving(Path("mine=batch.tar.gz"), *flags, env=env, command="torchserve") as server:
        assert server.client.post("/predictions/mine", content="a").status_code == 200
        assert server.client.get("/models").status_code == 404
        # With `--port 0` every port of the server is a free one.
        management = server.wait_log(r"listening on (\S+) too, for torchserve's own")[1]
        assert httpx.get(f"{management}/models").json()["models"][0]["modelName"] == "mine"
        assert httpx.put(f"{management}/models/mine?min_worker=2").status_code == 401
        headers = {"authorization": f"Bearer {TOKEN}"}
        scaled = httpx.put(f"{management}/models/mine?min_worker=2&synchronous=true", headers=headers, timeout=60)
        assert (scaled.status_code, scaled.json()["status"]) == (200, "Workers scaled to 2 for model: mine")
        assert httpx.post(f"{management}/predictions/mine", content="a").status_code == 404
