"""A model that is being loaded, or is not there: 503 or 404 on all its paths, and never 405."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest

from support.models import all_of, write_model
from support.rpc import Rpc
from support.server import PACKAGES, Server, serving, wait_until

TOKEN, CONTROL = "of-clients", "of-whoever-runs-it"
CLIENT = {"authorization": f"Bearer {TOKEN}"}
ADMIN = {"authorization": f"Bearer {CONTROL}"}
SLOW = "import os, time\nwhile not os.path.exists({!r}):\n    time.sleep(0.05)\n\n\ndef predict(x):\n    return x\n"
OF_MODEL = (
    "/models/{}", "/models/{}/", "/models/{}/predict", "/models/{}/versions/1", "/models/{}/versions/1/predict",
    "/v2/models/{}/infer", "/v2/models/{}/versions/1/infer", "/v2/models/{}",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    write_model(folder / "echo")
    # Its clients post to `/`, where the server has a page of its own.
    shutil.copytree(PACKAGES / "modelarts_echo", folder / "main")
    env = {"PANGLOT_ADMIN_TOKEN": CONTROL, "PANGLOT_TOKEN": TOKEN}
    flags = ("--admin", "--default", "main", "--grpc-port", "0")
    with serving(all_of(folder), *flags, env=env) as running:
        yield running


def change(server: Server, name: str, what: str) -> httpx.Response:
    return httpx.post(f"{server.url}/v2/repository/models/{name}/{what}", headers=ADMIN, timeout=60)


def ask(server: Server, path: str) -> httpx.Response:
    return httpx.post(server.url + path, json=1, headers=CLIENT, timeout=30)


def state(server: Server, name: str) -> tuple[str, str]:
    rows = httpx.post(f"{server.url}/v2/repository/index", headers=CLIENT, timeout=30).json()
    return next((row["state"], row["reason"]) for row in rows if row["name"] == name)


@pytest.mark.parametrize("path", OF_MODEL)
def test_a_model_that_is_not_there_is_not_found(server: Server, path: str) -> None:
    assert ask(server, path.format("nobody")).status_code == 404


def test_a_model_that_is_being_loaded_is_told_so(server: Server, folder: Path) -> None:
    go = folder.parent / "go"
    write_model(folder / "slow", body=SLOW.format(str(go)))
    answers: list[int] = []
    loading = threading.Thread(target=lambda: answers.append(change(server, "slow", "load").status_code))
    loading.start()
    try:
        wait_until(lambda: state(server, "slow") == ("LOADING", ""))
        for path in OF_MODEL:
            answer = ask(server, path.format("slow"))
            assert answer.status_code == 503, (path, answer.text)
            assert answer.headers["retry-after"], path
        rpc = Rpc(server, token=TOKEN)
        with pytest.raises(grpc.RpcError) as refused:
            rpc.call("ModelInfer", rpc.tensors("slow", input=[b"1"]))
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        # It is no other model's business.
        assert ask(server, "/models/echo/predict").status_code == 200
        assert ask(server, "/models/echo").status_code == 405
    finally:
        go.touch()
        loading.join()
    assert answers == [200]
    assert ask(server, "/models/slow/predict").json() == 1


def test_at_the_root_a_default_model_that_was_unloaded_is_not_found(server: Server) -> None:
    assert ask(server, "/").status_code == 200
    assert change(server, "main", "unload").status_code == 200
    try:
        for path in ("/", "/predict"):
            answer = ask(server, path)
            assert answer.status_code == 404
            assert "'main'" in answer.json()["error"]["message"]
        assert httpx.get(server.url + "/docs", headers=CLIENT, timeout=30).status_code == 200
    finally:
        assert change(server, "main", "load").status_code == 200
    assert ask(server, "/").status_code == 200


def test_clients_are_not_told_of_files_and_programs_of_the_server(server: Server, folder: Path) -> None:
    write_model(folder / "broken", body="def predict(x:\n")
    told = change(server, "broken", "load")
    assert told.status_code == 400
    assert "model.py" in told.json()["error"]
    reason = state(server, "broken")[1]
    assert "log" in reason
    assert str(folder) not in reason
    assert "model.py" not in reason
