"""Inference pipelines: a chain of models, each with its own content types."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from panglot.errors import StartError
from panglot.serving.planning import Planner
from support.models import all_of
from support.server import Server, panglot, serving, wait_until
from support.well import held

PIPELINES = Path(__file__).parent / "pipelines"
CSV = {"content-type": "text/csv"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(all_of(PIPELINES), ready=False) as started:
        started.wait_ready()
        yield started


def invoked(server: Server, model: str, body: str, **headers: str) -> Any:
    return server.client.post(f"/models/{model}/invocations", content=body, headers={**CSV, **headers})


@pytest.mark.document("sagemaker.35")
def test_what_one_container_answers_the_next_is_asked(server: Server) -> None:
    answer = invoked(server, "chain", "1,2\n3,\n4,5\n")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {"from": "text/csv", "sums": [3, 9]}
    answer = invoked(server, "chain", "1,2\n4,5", accept="text/csv")
    assert (answer.text, answer.headers["content-type"].partition(";")[0]) == ("3\n9", "text/csv")
    # The environment of a container says what it answers those behind it.
    assert invoked(server, "long", "1,2").json() == {"from": "application/x-rows", "sums": [3]}
    named = {"x-amzn-sagemaker-target-model": "chain"}
    assert server.client.post("/endpoints/any/invocations", content="1,2", headers={**CSV, **named}).json()["sums"] == [
        3
    ]
    assert server.client.get("/models/chain/ping").status_code == 200


@pytest.mark.parametrize("rows", [1, 20_000, 200_000])
def test_bodies_of_every_size_pass(rows: int, server: Server) -> None:
    body = "\n".join(f"{number},1" for number in range(rows))
    for _ in range(3):
        assert invoked(server, "chain", body).json()["sums"] == [number + 1 for number in range(rows)]


def test_the_answer_of_a_container_that_fails_is_the_answer(server: Server) -> None:
    kind = {"content-type": "application/json"}
    alone, refused = (invoked(server, model, "{}", **kind) for model in ("clean", "chain"))
    assert (alone.status_code, alone.content) == (500, b"not application/json")
    assert (refused.status_code, refused.content) == (alone.status_code, alone.content)
    assert refused.headers["x-panglot-container"] == "1 clean"
    second = invoked(server, "chain", "1,x")
    assert (second.status_code, second.headers["x-panglot-container"]) == (500, "2 score")
    died = invoked(server, "chain", "die")
    assert (died.status_code, "Worker died" in died.text) == (500, True)
    late = invoked(server, "chain", "wait", **{"x-timeout-ms": "500"})
    assert late.status_code == 500


def test_a_large_body_is_released_when_its_client_leaves(server: Server) -> None:
    mark, body = len(server.lines), ("wait\n" + "1,2\n" * 100_000).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        lines = ["POST /models/chain/invocations HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
        connection.sendall("\r\n".join([*lines, "content-type: text/csv", "\r\n"]).encode() + body)
        server.wait_log("clean waits", after=mark)
    kill(server, "clean")
    wait_until(lambda: not held(server))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("killed", ["clean", "score", "chain"])
def test_any_worker_dies_under_load(killed: str, server: Server) -> None:
    under_way = threading.Event()

    def ask(number: int) -> list[float]:
        if number == 20:
            under_way.set()
        answer = invoked(server, "chain", f"{number},1")
        assert answer.status_code == 200, answer.text
        return list(answer.json()["sums"])

    with ThreadPoolExecutor(6) as crowd:
        sums = crowd.map(ask, range(80))
        assert under_way.wait(60)
        kill(server, killed)
        assert list(sums) == [[number + 1] for number in range(80)]


def kill(server: Server, model: str) -> None:
    def pids() -> list[int]:
        workers = server.client.get("/status.json").json()["workers"]
        return [int(one["pid"]) for one in workers if one["model"] == model and one["state"] == "ready"]

    wait_until(lambda: bool(pids()), 60)
    os.kill(pids()[0], signal.SIGKILL)


# Before anything is loaded


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            {"Containers": [{"ContainerHostname": "clean"}, {"ContainerHostname": "scor"}]},
            "no model 'scor'.*mean score",
        ),
        ({"Containers": [{"ContainerHostname": "clean"}, {"ContainerHostname": "long"}]}, None),
        ({"Containers": [{"ContainerHostname": "clean"}, {"ContainerHostname": "chain"}]}, "leads back to 'chain'"),
        ({"Containers": [{"ContainerHostname": "clean"}]}, "Containers must be a list of 2 to 15"),
        ({"Containers": [{}, {}]}, "container 1 names no model"),
        ([], "Containers must be a list"),
    ],
)
def test_what_cannot_work_ends_the_start(content: object, said: str | None, tmp_path: Path) -> None:
    shutil.copytree(PIPELINES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "chain" / "pipeline.json").write_text(json.dumps(content))
    planner = Planner({"models": str(tmp_path)}, {})
    if said is None:
        planner.server_plan([])
        return
    with pytest.raises(StartError, match=said) as raised:
        planner.server_plan([])
    assert raised.value.file == str(tmp_path / "chain" / "pipeline.json")


def test_a_pipeline_alone_says_what_is_missing() -> None:
    ended = panglot("serve", str(PIPELINES / "chain"), "--port", "0")
    assert (ended.returncode, "this server has no model 'clean'" in ended.stderr) == (3, True), ended.stderr
