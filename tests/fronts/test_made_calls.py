"""Models that call each other, with several fronts: which circles are found, and that no others are refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.models import all_of
from support.server import Server, serving

COMPOSED = Path(__file__).parents[1] / "triton" / "composed"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("itself", "back"):
        shutil.copytree(COMPOSED / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def spread(folder: Path) -> Iterator[Server]:
    """Each front has one of the two workers of each model."""
    with serving(all_of(folder), "--fronts", "2", "--workers", "2", ready=False) as started:
        started.wait_ready()
        yield started


def ask(server: Server, *names: str, **headers: str) -> Any:
    """The answer of a model that calls these, each of which calls the next, over a connection of its own."""
    url = f"{server.url}/models/itself/predict"
    return httpx.post(url, json={"NEXT": names}, headers=headers, timeout=60)


def test_a_worker_of_another_front_is_a_worker_for_the_next_level(spread: Server) -> None:
    for names in (["itself"], ["back"], ["back", "itself"]):
        for _ in range(4):
            answer = ask(spread, *names)
            assert (answer.status_code, answer.json()) == (200, {"SAID": ["the end"]}), names


def test_a_circle_over_several_fronts_ends_at_its_deadline(spread: Server) -> None:
    assert ask(spread, "itself", "itself", **{"x-timeout-ms": "1500"}).status_code == 504
    assert ask(spread, "itself").json() == {"SAID": ["the end"]}


@pytest.mark.parametrize("names", [["itself"], ["back", "itself"]])
def test_models_with_all_workers_in_the_first_front_are_refused_as_with_one_front(
    names: list[str], folder: Path
) -> None:
    with serving(all_of(folder), "--fronts", "2", "--workers", "1", ready=False) as server:
        server.wait_ready()
        for _ in range(4):
            answer = ask(server, *names)
            assert (answer.status_code, "would wait for ever: it calls itself" in answer.text) == (503, True)
            assert ask(server).json() == {"SAID": ["the end"]}
