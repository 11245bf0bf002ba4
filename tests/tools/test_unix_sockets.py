"""Every tool that asks a server asks one on a Unix socket too: `unix:PATH`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot import AsyncClient, Client
from support.server import PACKAGES, ROOT, panglot, wait_until

PACKAGE = PACKAGES / "function"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a server on a socket, and its process."""
    url = f"unix:{tmp_path_factory.mktemp('socket') / 'panglot.sock'}"
    words = ["serve", f"first={PACKAGE}", f"second={PACKAGE}", "--host", url]
    process = subprocess.Popen([sys.executable, "-m", "panglot", *words], stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        with Client(url, connect_timeout=60) as client:
            wait_until(lambda: client.about().path, 60)
        yield url, process.pid
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_both_clients(served: tuple[str, int]) -> None:
    url, _ = served

    async def asked() -> object:
        async with AsyncClient(f"{url}:/models/second/predict") as client:
            return await client.ask(3)

    with Client(f"{url}:/models/first/predict") as client:
        assert client.ask(2) == {"got": 2}
    assert asyncio.run(asked()) == {"got": 3}


def test_call_and_top(served: tuple[str, int]) -> None:
    url, _ = served
    done = panglot("call", f"{url}:/models/first/predict", "-1.5")
    assert json.loads(done.stdout)["answer"] == {"got": -1.5}, done.stderr
    assert [model["name"] for model in json.loads(panglot("top", url, "--json").stdout)["about"]["models"]] == [
        "first", "second",
    ]  # fmt: skip


def test_bench_knows_the_cost_of_the_server(served: tuple[str, int]) -> None:
    url, _ = served
    flags = ("--concurrency", "2", "--duration", "0.4", "--warmup", "0.1", "--json")
    done = panglot("bench", f"{url}:/models/first/predict", "[1]", *flags)
    (level,) = json.loads(done.stdout)["levels"]
    assert set(level["statuses"]) == {"200"}, done.stderr
    assert level["cost"]["processes"] == 3, "the front and a worker of each model"


def test_check_against_it(served: tuple[str, int]) -> None:
    url, _ = served
    done = panglot("check", str(PACKAGE), "[1, 2]", "--against", f"{url}:/models/first/predict", "--json")
    assert done.returncode == 0, done.stderr
    assert "first difference" not in done.stdout


@pytest.mark.parametrize("words", [("call",), ("bench",), ("top",), ("check", str(PACKAGE), "1", "--against")])
def test_a_socket_that_is_not_there(words: tuple[str, ...], tmp_path: Path) -> None:
    more = ("--wait", "0.1") if words[0] == "call" else ()
    done = panglot(*words, f"unix:{tmp_path / 'none.sock'}", *more)
    assert done.returncode == 3, done.stdout
    assert "none.sock" in done.stderr
    assert "No such file" in done.stderr
    done = panglot(*words, "unix:")
    assert done.returncode == 3
    assert "unix: names no socket" in done.stderr


def test_who_listens_on_it(served: tuple[str, int]) -> None:
    from panglot.tools.listening import socket_listener

    url, pid = served
    assert socket_listener(url.removeprefix("unix:")) == pid
