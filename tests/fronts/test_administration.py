"""A platform whose clients scale, load and unload models by requests, in a server with several fronts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.models import all_of
from support.server import PACKAGES, Server, serving, wait_until
from support.torchserve import archive

TOKEN = "admin-token"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("store")
    archive(PACKAGES / "torchserve_echo", folder / "echo.mar", "handler.py", "1.0")
    archive(PACKAGES / "torchserve_batch", folder / "batch.tar.gz", "service.py", "2.0")
    flags = ("--admin", "--fronts", "2", "--workers", "2", "--restart-delay", "0.1")
    with serving(all_of(folder), *flags, env={"PANGLOT_ADMIN_TOKEN": TOKEN}) as running:
        assert len(running.fronts()) == 2
        yield running


def admin(server: Server, method: str, path: str) -> tuple[int, dict[str, object]]:
    """The answer of one front or the other: every request has a connection of its own."""
    answer = httpx.request(method, server.url + path, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)
    return answer.status_code, answer.json()


def shown(server: Server) -> list[int]:
    """How many workers of a model each of four requests is told of."""
    every = [httpx.get(f"{server.url}/models/batch").json()[0]["workers"] for _ in range(4)]
    return [len({worker["pid"] for worker in workers if worker["status"] == "READY"}) for workers in every]


def test_a_model_is_scaled_over_all_fronts_and_stays_so_when_a_front_dies(server: Server) -> None:
    assert shown(server) == [2] * 4
    done = admin(server, "PUT", "/models/batch?min_worker=5&synchronous=true")
    assert done == (200, {"status": "Workers scaled to 5 for model: batch"})
    assert shown(server) == [5] * 4
    # Two of the other model.
    assert len(server.workers()) == 7
    server.fronts()[1].kill()
    wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == 7, 60)
    wait_until(lambda: shown(server) == [5] * 4, 60)
    assert admin(server, "PUT", "/models/batch?min_worker=2&synchronous=true")[0] == 200
    wait_until(lambda: shown(server) == [2] * 4, 60)
    assert admin(server, "PUT", "/models/batch?min_worker=3&max_worker=2")[0] == 400


def test_a_model_is_unregistered_and_registered_in_all_fronts(server: Server) -> None:
    assert admin(server, "DELETE", "/models/batch") == (200, {"status": 'Model "batch" unregistered'})
    for _ in range(4):
        assert httpx.post(f"{server.url}/predictions/batch", content="a").status_code == 404
    status, said = admin(server, "POST", "/models?url=batch.tar.gz&initial_workers=4&synchronous=true")
    assert (status, said) == (200, {"status": 'Model "batch" Version: 2.0 registered with 4 initial workers'})
    assert shown(server) == [4] * 4
    for _ in range(4):
        assert httpx.post(f"{server.url}/predictions/batch", content="a").status_code == 200
    listed = [{entry["modelName"] for entry in httpx.get(f"{server.url}/models").json()["models"]} for _ in range(4)]
    assert listed == [{"batch", "echo"}] * 4
