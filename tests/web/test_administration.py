"""Routes of a dialect that load, unload and scale its models: with `--admin` and its token alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from support.models import all_of
from support.ports import free_port
from support.server import PACKAGES, Server, serving, wait_until

CLIENT, ADMIN = "a-token-of-clients", "a-token-of-the-operator"
AS_CLIENT, AS_ADMIN = {"authorization": f"Bearer {CLIENT}"}, {"authorization": f"Bearer {ADMIN}"}
CHANGES = (("POST", "/registry/second"), ("DELETE", "/registry/second"), ("PUT", "/registry/first/1?min=1&max=1"))


def environment(package: Path) -> dict[str, str]:
    outside = package.parent / "outside"
    place = outside if outside.is_dir() else package.parents[1] / "outside"
    return {"PYTHONPATH": str(place), "PANGLOT_TOKEN": CLIENT, "PANGLOT_ADMIN_TOKEN": ADMIN}


@pytest.fixture(scope="module")
def server(atlas: Callable[..., Path]) -> Iterator[Server]:
    """A folder with two models of the atlas, of which the first is the default, and a plain one."""
    first = atlas("models/first")
    atlas("models/second")
    shutil.copytree(PACKAGES / "function", first.parent / "plain")
    with serving(all_of(first.parent), "--default", "first", "--admin", env=environment(first)) as running:
        yield running


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_changes_need_the_token_of_the_operator(server: Server, method: str, path: str) -> None:
    for headers in ({}, AS_CLIENT):
        answer = server.client.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["atlas"]) == (401, "unauthorized")


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_a_server_without_admin_changes_nothing(atlas: Callable[..., Path], method: str, path: str) -> None:
    package = atlas(f"fixed-{method}")
    with serving(package, env=environment(package)) as running:
        for headers in ({}, AS_CLIENT, AS_ADMIN):
            answer = running.client.request(method, path, headers=headers)
            assert (answer.status_code, answer.json()["atlas"]) == (403, "no_admin")


def test_models_are_listed_unloaded_and_loaded(server: Server) -> None:
    def listed() -> list[dict[str, str]]:
        return server.client.get("/registry", headers=AS_CLIENT).json()["models"]

    both = [{"name": "first", "state": "ready"}, {"name": "second", "state": "ready"}]
    assert server.client.get("/registry").status_code == 401
    assert listed() == both
    gone = server.client.delete("/registry/second", headers=AS_ADMIN)
    assert gone.json() == {"unloaded": "second"}
    assert listed() == both[:1]
    assert server.client.get("/registry", headers=AS_CLIENT).json()["absent"] == {"second": "unloaded"}
    missing = server.client.post("/predictions/second", headers=AS_CLIENT)
    assert (missing.status_code, missing.json()["atlas"]) == (404, "no_model")
    assert server.client.post("/registry/second", headers=AS_ADMIN).json() == {"loaded": "second"}
    assert listed() == both
    assert server.client.post("/predictions/second", headers=AS_CLIENT).json()["model"] == "second"


def test_what_cannot_be_changed_is_answered_in_the_manner_of_the_platform(server: Server) -> None:
    for method, path, status, code in (
        ("POST", "/registry/nothing", 400, "not_loaded"),
        ("DELETE", "/registry/nothing", 404, "no_model"),
        ("DELETE", "/registry/plain", 404, "no_model"),
        ("PUT", "/registry/first/7?min=1&max=1", 404, "no_version"),
        ("PUT", "/registry/first/1?min=0&max=0", 400, "bad_request"),
        ("PUT", "/registry/first/1?min=3&max=2", 400, "bad_request"),
        ("PUT", "/registry/first/1?min=1&max=5000", 400, "bad_request"),
        ("PATCH", "/registry/first", 405, "method_not_allowed"),
    ):
        answer = server.client.request(method, path, headers=AS_ADMIN)
        assert (answer.status_code, answer.json()["atlas"]) == (status, code), (method, path)


def test_a_model_without_a_folder_of_models_is_scaled(atlas: Callable[..., Path]) -> None:
    package = atlas("alone")
    with serving(package, "--admin", env=environment(package)) as running:

        def scale(least: int, most: int) -> dict[str, object]:
            answer = running.client.put(f"/registry/alone/1.0?min={least}&max={most}", headers=AS_ADMIN)
            assert answer.status_code == 200, answer.text
            return answer.json()["sizes"][0]

        pids = {worker.pid for worker in running.workers()}
        assert scale(3, 3)["ready"] == 3
        assert pids < {worker.pid for worker in running.workers()}
        assert scale(1, 4)["workers"] == "1:4"
        assert scale(1, 1)["wanted"] == 1
        wait_until(lambda: len(running.workers()) == 1)
        assert running.client.post("/ask", headers=AS_CLIENT).status_code == 200
        refused = running.client.post("/registry/other", headers=AS_ADMIN)
        assert refused.status_code == 400
        assert "--models" in refused.json()["text"]


def test_fewer_are_wanted_while_the_new_ones_load(atlas: Callable[..., Path]) -> None:
    package = atlas("hasty")
    with serving(package, "--admin", env=environment(package)) as running:
        path = "/registry/hasty/1?min={0}&max={0}"
        # Nobody waits for these four any more; they come all the same.
        with pytest.raises(httpx.TimeoutException):
            running.client.put(path.format(4), headers=AS_ADMIN, timeout=0.02)
        assert running.client.put(path.format(2), headers=AS_ADMIN).status_code == 200
        wait_until(lambda: len(running.workers()) == 2)


def test_the_routes_are_documented_where_they_are(server: Server) -> None:
    paths = server.client.get("/openapi.json", headers=AS_CLIENT).json()["paths"]
    assert paths["/registry/{model}"].keys() == {"post", "delete", "parameters"}
    assert paths["/registry/{model}"]["post"]["security"] == [{"admin": []}]


def test_models_share_a_port_for_administration(atlas: Callable[..., Path]) -> None:
    """Those that are loaded later share it too."""
    first, late = atlas("sharing/first"), atlas("sharing/late")
    atlas("sharing/second")
    port = str(free_port())
    for package in first.parent.iterdir():
        (package / "port.txt").write_text(port)
    beside = first.parents[1] / "late"
    late.rename(beside)
    with serving(all_of(first.parent), "--default", "first", "--admin", env=environment(first)) as running:
        url = running.wait_log(r"listening on (http://\S+) too")[1]
        with httpx.Client(base_url=url, headers=AS_CLIENT, timeout=30) as client:
            assert [model["name"] for model in client.get("/registry").json()["models"]] == ["first", "second"]
            assert client.post("/predictions/second").json()["model"] == "second"
            assert client.post("/whoami").json()["model"] == "first"
            assert client.post("/models/second/whoami").json()["model"] == "second"
            assert client.post("/ask").status_code == 404
            beside.rename(late)
            assert client.post("/registry/late", headers=AS_ADMIN).json() == {"loaded": "late"}
            assert client.post("/predictions/late").json()["model"] == "late"
            assert client.post("/registry/late", headers=AS_ADMIN).json() == {"loaded": "late"}
            assert client.post("/predictions/late").json()["model"] == "late"
            assert client.delete("/registry/second", headers=AS_ADMIN).status_code == 200
            assert client.post("/predictions/second").json()["atlas"] == "no_model"
