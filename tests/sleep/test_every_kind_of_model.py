"""Models of every platform, and pipelines, sleep and wake; each platform's own health route says yes meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.rpc import Rpc
from support.server import PACKAGES, Server, panglot, serving, wait_until

HEALTH = {
    "evals_hello": "/health", "modelarts_echo": "/health", "hfendpoint_echo": "/health", "azureml_plain": "/",
    "truss_echo": "/v1/models/model/loaded",
}  # fmt: skip
STATE = "panglot_model_state"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    others = [f"{name}={PACKAGES / name}" for name in HEALTH]
    more = ("--sleep-after", "0.5s", "--grpc-port", "0", "--state-folder", str(tmp_path_factory.mktemp("state")))
    with serving("sleeper", *others, *more) as running:
        wait_until(lambda: len(asleep(running)) == len(HEALTH) + 1, message=lambda: running.log)
        yield running


def asleep(server: Server) -> list[str]:
    return list(server.client.get("/status.json").json()["asleep"])


@pytest.mark.parametrize(("name", "path"), HEALTH.items())
def test_the_health_route_of_a_platform_says_yes_while_its_model_sleeps(server: Server, name: str, path: str) -> None:
    assert server.client.get(f"/models/{name}{path}").status_code == 200
    assert name in asleep(server)


def test_grpc_says_yes_while_a_model_sleeps(server: Server) -> None:
    with contextlib.closing(Rpc(server)) as rpc:
        assert rpc.call("ServerReady").ready
        assert rpc.call("ModelReady", rpc.kind("ModelReadyRequest")(name="evals_hello")).ready


def test_all_models_asleep_is_a_state_of_the_server(server: Server) -> None:
    assert server.client.get("/status.json").json()["state"] == "asleep"
    assert server.ready() == 200


def test_all_that_show_states_agree_on_which_models_sleep(server: Server) -> None:
    with contextlib.closing(Rpc(server)) as rpc, ThreadPoolExecutor(1) as clients:
        # It is awake for as long as it has this request.
        long = clients.submit(server.client.post, "/models/predict/predict", json={"number": 2, "sleep": 5})
        wait_until(lambda: views(server, rpc) == [sorted(HEALTH)] * 4, message=lambda: f"{views(server, rpc)}")
        assert server.client.get("/status.json").json()["state"] == "ready"
        assert long.result().json()["doubled"] == 4
    shown = panglot("top", server.url, "--once").stdout
    assert "asleep: " in shown
    assert "and 2 more" in shown or "and 3 more" in shown


def views(server: Server, rpc: Rpc) -> list[list[str]]:
    """The models that sleep: by the repository index of HTTP and of gRPC, by /status.json and by the metrics."""
    index = server.client.post("/v2/repository/index", json={}).json()
    over_grpc = rpc.call("RepositoryIndex", rpc.kind("RepositoryIndexRequest")()).models
    assert {row["state"] for row in index} | {row.state for row in over_grpc} == {"READY"}
    return [
        sorted(row["name"] for row in index if row["reason"] == "asleep"),
        sorted(row.name for row in over_grpc if row.reason == "asleep"),
        sorted(asleep(server)),
        sorted(name for name in (*HEALTH, "predict") if server.metric(STATE, model=name, state="asleep")),
    ]


def test_all_pools_of_a_pipeline_sleep_and_wake_with_as_many_workers_as_before(tmp_path: Path) -> None:
    flags = ("--pools", "preprocess=2,inference=1:2", "--sleep-after", "0.5s", "--state-folder", str(tmp_path))
    with serving("row_script", *flags) as server:
        for number in (3, 4):
            wait_until(lambda: asleep(server) and not server.workers(), message=lambda: server.log)
            # Each answer keeps it awake for another half second, until the slowest of its workers is there.
            wait_until(lambda number=number: twice(server, number) == 2.0 * number and has_workers(server))


def twice(server: Server, number: int) -> float:
    return float(server.predict({"id": number}).json()["twice"])


def has_workers(server: Server) -> bool:
    ready = server.metric("panglot_workers", pool="preprocess", state="ready")
    return (ready, server.metric("panglot_workers_wanted", pool="inference")) == (2, 1)
