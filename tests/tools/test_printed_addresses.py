"""The address of a model as a server prints it: every tool takes it as it is."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.client import AsyncClient, Client
from support.models import all_of, write_model
from support.server import PACKAGES, Server, panglot, serving

TOKEN = "of-clients"
AUTH = {"Authorization": f"Bearer {TOKEN}"}
READY = re.compile(r"(\S+(?: version \d+)?) is ready on (http\S+)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "echo" / "1", says="first")
    write_model(folder / "echo" / "2", says="second")
    (folder / "echo" / "config.pbtxt").write_text("version_policy: { all {} }")
    # Its clients post to `/`.
    shutil.copytree(PACKAGES / "modelarts_echo", folder / "arts")
    with serving(all_of(folder), env={"PANGLOT_TOKEN": TOKEN}) as running:
        yield running


@pytest.fixture(scope="module")
def printed(server: Server) -> dict[str, str]:
    server.wait_count(" is ready on http", 3)
    found = dict(READY.findall(server.log))
    assert set(found) >= {"echo", "echo version 2", "arts"}
    assert found["arts"].endswith("/models/arts")
    return found


def expected(name: str) -> object:
    if name == "arts":
        return {"type": "int", "value": 1}
    return {"model": "second" if name == "echo version 2" else "first", "got": 1}


NAMES = ("echo", "echo version 2", "arts")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("slash", ["", "/"])
def test_call(printed: dict[str, str], name: str, slash: str) -> None:
    done = panglot("call", printed[name] + slash, "1", "--json", env={"PANGLOT_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    assert expected(name) in json.loads(done.stdout.splitlines()[0]).values()


@pytest.mark.parametrize("name", ["echo", "arts"])
def test_bench(printed: dict[str, str], name: str) -> None:
    flags = ("1", "--duration", "0.2", "--concurrency", "1", "--json")
    done = panglot("bench", printed[name], *flags, env={"PANGLOT_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["levels"]) == 1


def test_check(printed: dict[str, str]) -> None:
    here = str(PACKAGES / "modelarts_echo")
    done = panglot("check", here, "1", "--against", printed["arts"], "--json", env={"PANGLOT_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["problem"] == ""


def test_top(server: Server, printed: dict[str, str]) -> None:
    for name in ("echo", "arts"):
        assert server.client.post(
            f"/models/{name}/predict" if name == "echo" else f"/models/{name}", json=1, headers=AUTH
        )
    done = panglot("top", printed["arts"], "--json", env={"PANGLOT_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert {worker["model"] for worker in figures["workers"]} == {"arts"}
    assert {request["model"] for request in figures["recent"]} == {"arts"}
    done = panglot("top", printed["echo"], "--once", env={"PANGLOT_TOKEN": TOKEN, "COLUMNS": "100"})
    assert done.stdout.splitlines()[0].startswith("echo  http")
    whole = panglot("top", server.url, "--once", env={"PANGLOT_TOKEN": TOKEN, "COLUMNS": "100"})
    assert "request" in whole.stdout
    assert "model" in next(line for line in whole.stdout.splitlines() if line.startswith("request "))
    done = panglot("top", f"{server.url}/models/nobody", "--once", env={"PANGLOT_TOKEN": TOKEN})
    assert "has no model 'nobody'" in done.stderr


def test_clients_of_python(printed: dict[str, str]) -> None:
    async def asked() -> object:
        async with AsyncClient(printed["arts"], token=TOKEN) as client:
            return await client.ask(1)

    for name in NAMES:
        with Client(printed[name], token=TOKEN) as client:
            assert client.ask(1) == expected(name)
    assert asyncio.run(asked()) == expected("arts")


def test_a_path_of_a_model_is_asked_as_that_model_wants_it(printed: dict[str, str]) -> None:
    with Client(printed["echo version 2"] + "/predict", token=TOKEN) as client:
        assert client.about().dialect == "plain"
        assert client.ask(1)["model"] == "second"


def test_a_model_that_is_not_there_is_told(server: Server) -> None:
    done = panglot("call", f"{server.url}/models/nobody", "1", env={"PANGLOT_TOKEN": TOKEN})
    assert done.returncode == 1
    assert "there is no model 'nobody'" in done.stdout + done.stderr


def test_it_is_not_asked_where_the_folder_is_one_package(tmp_path: Path) -> None:
    """A server of one package prints its own address, and takes that of its model too."""
    write_model(tmp_path / "alone")
    with serving(tmp_path / "alone") as server, Client(f"{server.url}/models/alone") as client:
        assert client.ask(1) == {"model": "alone", "got": 1}
