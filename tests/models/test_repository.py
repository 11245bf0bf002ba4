"""Models that are loaded, loaded anew and unloaded while requests come: nothing is lost."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from openapi_spec_validator import validate

from panglot.web import app
from panglot.web.contract import CONTROL as CONTROL_ACCESS
from panglot.web.contract import INFER, PUBLIC
from panglot.web.v2.metadata import WITHHELD
from support.models import all_of, write_model
from support.rpc import Rpc
from support.server import Server, panglot, serving, wait_until
from support.traffic import times

TOKEN, CONTROL = "of-clients", "of-whoever-runs-it"
ADMIN = {"authorization": f"Bearer {CONTROL}"}
CLIENT = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    write_model(tmp_path / "echo" / "1", says="v1")
    write_model(tmp_path / "other")
    with serving(all_of(tmp_path), "--admin", env={"PANGLOT_ADMIN_TOKEN": CONTROL}) as running:
        yield running


def change(server: Server, name: str, what: str, **options: object) -> httpx.Response:
    return httpx.post(
        f"{server.url}/v2/repository/models/{name}/{what}",
        headers=ADMIN,
        timeout=60,
        **options,  # type: ignore[arg-type]
    )


def index(server: Server, **headers: str) -> dict[tuple[str, str], tuple[str, str]]:
    rows = server.client.post("/v2/repository/index", headers=headers).json()
    return {(row["name"], row["version"]): (row["state"], row["reason"]) for row in rows}


class Load:
    """Clients that ask one path without a pause, and count what they are answered."""

    def __init__(self, server: Server, path: str, clients: int = 4) -> None:
        self.server, self.path = server, path
        self.answers: Counter[str] = Counter()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def _ask(self) -> None:
        number = 0
        with self.server.new_client() as client:
            while not self._over.is_set():
                number += 1
                answer = client.post(self.path, json=number)
                right = answer.status_code == 200 and answer.json()["got"] == number
                self.answers[answer.json()["model"] if right else f"{answer.status_code} {answer.text}"] += 1

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        wait_until(lambda: sum(self.answers.values()) > 10)
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.rest("a load while versions change")
def test_a_new_version_serves_before_the_old_one_goes(server: Server, tmp_path: Path) -> None:
    """Reloads, new versions and old ones that go, while four clients ask without a pause."""
    with Load(server, "/models/echo/predict") as load:
        for number in range(2, 2 + times(3, 30)):
            write_model(tmp_path / "echo" / str(number), says=f"v{number}")
            assert change(server, "echo", "load").status_code == 200
            shutil.rmtree(tmp_path / "echo" / str(number - 1))
            assert change(server, "echo", "load").status_code == 200
            assert server.client.post("/models/echo/predict", json=0).json()["model"] == f"v{number}"
            assert server.client.post(f"/models/echo/versions/{number - 1}/predict", json=0).status_code == 404
        last = 1 + times(3, 30)
        wait_until(lambda: load.answers[f"v{last}"])
    assert set(load.answers) <= {f"v{number}" for number in range(1, last + 1)}, load.answers
    wait_until(lambda: len(server.workers()) == 2, 30)
    assert index(server) == {("echo", str(last)): ("READY", ""), ("other", "1"): ("READY", "")}


def test_changed_files_are_served_after_a_load(server: Server, tmp_path: Path) -> None:
    with Load(server, "/models/other/predict") as load:
        write_model(tmp_path / "other", says="changed")
        (tmp_path / "other" / "panglot.toml").write_text("workers = 2\n")
        assert change(server, "other", "load").status_code == 200
        assert server.client.post("/models/other/predict", json=1).json()["model"] == "changed"
        wait_until(lambda: load.answers["changed"])
    assert set(load.answers) == {"other", "changed"}
    assert server.metric("panglot_requests_total", model="other", route="/predict") >= sum(load.answers.values())


@pytest.mark.rest("a load while models are unloaded")
def test_unloading_answers_what_has_come(server: Server, tmp_path: Path) -> None:
    """Requests that run, and one whose body is still arriving, are answered; later ones are told."""
    # The first one runs until all that is to come meanwhile has come.
    go = tmp_path.parent / f"{tmp_path.name}-go"
    waits = f"    while not os.path.exists({str(go)!r}):\n        time.sleep(0.01)\n"
    write_model(tmp_path / "slow", body=f"import os, time\n\n\ndef predict(x):\n{waits}    return x\n")
    assert change(server, "slow", "load").status_code == 200
    results: list[int] = []
    with server.new_client() as client:
        thread = threading.Thread(
            target=lambda: results.append(client.post("/models/slow/predict", json=1).status_code)
        )
        thread.start()
        wait_until(lambda: server.metric("panglot_requests_in_progress", model="slow") == 1)
        gone = threading.Event()

        def parts() -> Iterator[bytes]:
            yield b"[1,"
            assert gone.wait(30)
            yield b"2]"

        arriving = threading.Thread(
            target=lambda: results.append(
                httpx.post(f"{server.url}/models/slow/predict", content=parts(), timeout=30).status_code
            )
        )
        arriving.start()
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == len("1") + len("[1,"))
        assert change(server, "slow", "unload").status_code == 200
        assert server.client.post("/models/slow/predict", json=1).status_code == 404
        assert index(server)["slow", ""] == ("UNAVAILABLE", "unloaded")
        go.touch()
        gone.set()
        thread.join()
        arriving.join()
    assert results == [200, 200]
    wait_until(lambda: len(server.workers()) == 2)
    assert change(server, "slow", "load").status_code == 200
    assert server.client.post("/models/slow/predict", json=3).json() == 3


def test_a_version_that_cannot_be_loaded_leaves_the_old_one(server: Server, tmp_path: Path) -> None:
    with Load(server, "/models/echo/predict") as load:
        write_model(tmp_path / "echo" / "2", body="raise ValueError('no weights')\n\n\ndef predict(x): pass\n")
        answer = change(server, "echo", "load")
        assert answer.status_code == 400
        assert "no weights" in answer.json()["error"]
    assert set(load.answers) == {"v1"}
    write_model(tmp_path / "broken", body="def predict(x:\n")
    assert change(server, "broken", "load").status_code == 400
    state, reason = index(server, **ADMIN)["broken", ""]
    assert state == "UNAVAILABLE"
    assert "model.py" in reason
    # Whoever may not load models is not told of files and programs of this machine.
    assert index(server)["broken", ""] == ("UNAVAILABLE", WITHHELD)
    assert server.ready() == 200


def test_versions_are_loaded_all_or_none(server: Server, tmp_path: Path) -> None:
    write_model(tmp_path / "echo" / "1", says="changed")
    write_model(tmp_path / "echo" / "2", body="raise ValueError('no weights')\n\n\ndef predict(x): pass\n")
    (tmp_path / "echo" / "config.pbtxt").write_text("version_policy: { all {} }\n")
    assert change(server, "echo", "load").status_code == 400
    assert server.client.post("/models/echo/predict", json=1).json()["model"] == "v1"
    write_model(tmp_path / "echo" / "2", says="v2")
    assert change(server, "echo", "load").status_code == 200
    assert server.client.post("/models/echo/versions/1/predict", json=1).json()["model"] == "changed"
    assert server.client.post("/models/echo/predict", json=1).json()["model"] == "v2"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a token for clients and one for whoever runs it, and a model that is named when it starts."""
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "echo")
    named = write_model(tmp_path_factory.mktemp("named") / "mine")
    env = {"PANGLOT_ADMIN_TOKEN": CONTROL, "PANGLOT_TOKEN": TOKEN}
    with serving(named, f"--models={folder}", "--admin", "--grpc-port", "0", env=env) as running:
        yield running


@pytest.mark.parametrize(
    ("name", "what", "body", "words"),
    [
        ("nothing", "load", "", "there is no model 'nothing' in "),
        ("nothing", "unload", "", "there is no model 'nothing' to unload"),
        ("..%2f..%2fetc", "load", "", ""),
        (".hidden", "load", "", "a model cannot be called '.hidden'"),
        ("mine", "load", "", "was named when the server was started, and stays"),
        ("mine", "unload", "", "was named when the server was started, and stays"),
        ("echo", "load", '{"parameters": {"config": "{}"}}', "'config' cannot be sent: models and their configuration"),
        ("echo", "load", "[]", "the body is no JSON object"),
    ],
)
def test_what_cannot_be_loaded(guarded: Server, name: str, what: str, body: str, words: str) -> None:
    answer = change(guarded, name, what, content=body)
    assert answer.status_code in (400, 404)
    assert words in answer.json()["error"]
    rows = guarded.client.post("/v2/repository/index", headers=CLIENT).json()
    assert {row["name"] for row in rows} == {"mine", "echo"}


def test_the_token_of_clients_changes_no_models(guarded: Server) -> None:
    """Nor does a password, nor a browser that has logged in with it; and the other token opens nothing else."""
    login = httpx.post(f"{guarded.url}/login", headers=CLIENT, timeout=30)
    assert login.status_code == 204
    cookie = {"cookie": login.headers["set-cookie"].partition(";")[0]}
    for headers in ({}, CLIENT, cookie, {"authorization": f"Basic {CONTROL}"}, {"authorization": "Bearer"}):
        for what in ("load", "unload"):
            answer = httpx.post(f"{guarded.url}/v2/repository/models/echo/{what}", headers=headers, timeout=30)
            assert answer.status_code == 401, headers
            assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/models/echo/predict", "/predict", "/v2/repository/index"):
        assert guarded.client.post(path, json=1, headers=ADMIN).status_code == 401
    assert guarded.client.get("/metrics", headers=ADMIN).status_code == 401
    assert guarded.client.post("/predict", json=1, headers=CLIENT).json()["model"] == "mine"
    assert change(guarded, "echo", "unload").status_code == 200
    assert guarded.client.post("/models/echo/predict", json=1, headers=CLIENT).status_code == 404
    assert change(guarded, "echo", "load").status_code == 200
    assert guarded.client.post("/models/echo/predict", json=1, headers=CLIENT).status_code == 200


def test_models_are_loaded_and_unloaded_over_grpc(guarded: Server) -> None:
    """By the token of whoever runs the server, and no other."""
    rpc = Rpc(guarded, token=TOKEN)

    def changed(method: str, name: str, token: str, **more: Any) -> grpc.StatusCode:
        metadata = [("authorization", f"Bearer {token}")] if token else None
        request = rpc.kind(f"{method}Request")(model_name=name, **more)
        try:
            rpc.call(method, request, metadata=metadata)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def states() -> dict[str, str]:
        return {row.name: row.state for row in rpc.call("RepositoryIndex").models}

    assert states() == {"mine": "READY", "echo": "READY"}
    for token in ("", TOKEN, "wrong"):
        for method in ("RepositoryModelLoad", "RepositoryModelUnload"):
            assert changed(method, "echo", token) == grpc.StatusCode.UNAUTHENTICATED
    assert changed("RepositoryModelUnload", "echo", CONTROL) == grpc.StatusCode.OK
    assert states() == {"mine": "READY", "echo": "UNAVAILABLE"}
    with pytest.raises(grpc.RpcError) as caught:
        rpc.call("ModelInfer", rpc.tensors("echo", x=[1.0]))
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert changed("RepositoryModelLoad", "echo", CONTROL) == grpc.StatusCode.OK
    assert rpc.call("ModelInfer", rpc.tensors("echo", x=[1.0])).model_name == "echo"
    for name in ("nothing", "mine", "../etc"):
        assert changed("RepositoryModelLoad", name, CONTROL) == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.RpcError) as caught:
        rpc.call("RepositoryIndex", metadata=[("authorization", f"Bearer {CONTROL}")])
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    rpc.close()


def test_the_document_says_how_models_are_changed(guarded: Server) -> None:
    document = guarded.client.get("/openapi.json", headers=CLIENT).json()
    validate(document)
    for what in ("load", "unload"):
        about = document["paths"][f"/v2/repository/models/{{model}}/{what}"]
        assert about["post"]["security"] == [{"admin": []}]
        assert about["parameters"][0]["name"] == "model"
    assert document["paths"]["/v2/repository/index"]["post"]["security"] == [{"token": []}]
    assert set(document["components"]["securitySchemes"]) == {"token", "admin"}


EXAMPLES = {"{model}": "echo", "{version}": "1", "{name}": "some"}


def places() -> Iterator[tuple[str, str, str]]:
    """Method, path and declared access of everything that the guarded server answers to."""
    for page in app.ROUTES:
        path = page.path.replace("{model}", "nothing") if page.access == CONTROL_ACCESS else page.path
        for word, example in EXAMPLES.items():
            path = path.replace(word, example)
        if path != "/status/events":
            yield from ((method, path, page.access) for method in page.methods)
    for start in ("", "/models/echo", "/models/echo/versions/1", "/models/mine", "/models/mine/versions/1"):
        yield "POST", f"{start}/predict", INFER
    for start in ("/v2/models/echo", "/v2/models/echo/versions/1", "/v2/models/mine"):
        yield "POST", f"{start}/infer", INFER


def test_every_route_asks_for_the_token_it_declares(guarded: Server) -> None:
    for method, path, access in places():
        asked = {name: httpx.request(method, guarded.url + path, headers=headers, timeout=30).status_code
                 for name, headers in (("nobody", {}), ("client", CLIENT), ("admin", ADMIN))}  # fmt: skip
        may = {
            "nobody": access == PUBLIC,
            "client": access != CONTROL_ACCESS,
            "admin": access in (PUBLIC, CONTROL_ACCESS),
        }
        assert {name: status != 401 for name, status in asked.items()} == may, (method, path, asked)


def test_without_admin_nobody_changes_models(tmp_path: Path) -> None:
    write_model(tmp_path / "echo")
    with serving(all_of(tmp_path), env={"PANGLOT_ADMIN_TOKEN": CONTROL}) as server:
        answer = change(server, "echo", "unload")
        assert answer.status_code == 403
        assert "start it with --admin" in answer.json()["error"]
        assert server.client.post("/models/echo/predict", json=1).status_code == 200
    for env, words in (
        ({}, "--admin needs a token of its own (fix: set PANGLOT_ADMIN_TOKEN or --admin-token-file"),
        ({"PANGLOT_TOKEN": "same", "PANGLOT_ADMIN_TOKEN": "same"}, "the token of --admin must differ"),
    ):
        done = panglot("serve", "--models", str(tmp_path), "--admin", "--port", "0", env=env)
        assert done.returncode == 3
        assert words in done.stderr
