"""Models that do not fit into memory together take turns in it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import times

SMI = f"""#!{sys.executable}
import psutil, os
for worker in psutil.process_iter(["ppid"]):
    if worker.info["ppid"] == os.getppid() and worker.pid != os.getpid():
        print(f"{{worker.pid}}, 600")
"""
SECONDS = times(6, 60)
"""For how long two models are asked in turn."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two models, each of which needs more than half of the budget."""
    heavy = PACKAGES / "heavy"
    flags = ("--memory-budget", "200MiB", "--state-folder", str(tmp_path_factory.mktemp("state")))
    with serving(heavy, f"b={heavy}", *flags) as running:
        yield running


def ask(server: Server, model: str, number: int, sleep: float = 0.0) -> int:
    """The status of a request, whose answer must be its own."""
    answer = server.client.post(f"/models/{model}/predict", json={"id": number, "sleep": sleep})
    assert answer.status_code != 200 or answer.json() == {"id": number, "bytes": 96 << 20}
    return answer.status_code


def sleeping(server: Server) -> list[str]:
    models = server.client.get("/status.json").json()["about"]["models"]
    return [model["name"] for model in models if model["state"] == "asleep"]


def test_the_need_of_a_model_is_what_it_was_seen_to_use(server: Server) -> None:
    for model in ("predict", "b"):
        assert ask(server, model, 1) == 200
        wait_until(lambda model=model: server.metric("panglot_memory_need_bytes", model=model) > 96 << 20)
    assert len(sleeping(server)) == 1


def test_a_busy_model_is_not_put_to_sleep(server: Server) -> None:
    assert ask(server, "predict", 1) == 200
    with ThreadPoolExecutor(2) as clients:
        long = clients.submit(ask, server, "predict", 1, 2.0)
        wait_until(lambda: server.metric("panglot_requests_in_progress", model="predict") == 1)
        other = clients.submit(ask, server, "b", 2)
        while not long.done():
            asleep = sleeping(server)
            # Only what was seen before the answer counts.
            assert long.done() or "predict" not in asleep
            time.sleep(0.05)
        assert (long.result(), other.result()) == (200, 200)
    server.wait_log("predict goes to sleep: b needs its memory")


def test_a_model_that_is_never_idle_lets_another_wait_no_longer_than_its_deadline(server: Server) -> None:
    assert ask(server, "predict", 1) == 200
    ended = threading.Event()

    def never_idle(number: int) -> list[int]:
        statuses = []
        while not ended.is_set():
            statuses.append(ask(server, "predict", number, 0.5))
        return statuses

    with ThreadPoolExecutor(3) as clients:
        busy = [clients.submit(never_idle, number) for number in range(3)]
        try:
            # One worker and three clients: there is a request at every moment from here on.
            wait_until(lambda: server.metric("panglot_requests_in_progress", model="predict") == 3)
            sleeps, mark = server.metric("panglot_sleeps_total", model="predict", reason="budget"), len(server.lines)
            refusals = [
                server.client.post("/models/b/predict", json={"id": 2}, headers={"x-timeout-ms": "1500"})
                for _ in range(2)
            ]
            assert server.metric("panglot_sleeps_total", model="predict", reason="budget") == sleeps
        finally:
            ended.set()
        statuses = [status for of_client in busy for status in of_client.result()]
    for refused in refusals:
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "waking")
        assert "memory" in refused.json()["error"]["message"]
        assert int(refused.headers["retry-after"]) >= 1
    assert set(statuses) == {200}
    server.wait_log("b warning: cannot wake: predict is in use, and there is no memory for both", after=mark)
    # It has not been awake: it did not sleep too shortly either.
    assert not [line for line in server.lines[mark:] if "b warning: slept for" in line]
    wait_until(lambda: ask(server, "b", 3) == 200, message=lambda: server.log)


def test_two_models_that_are_asked_in_turn_answer_all_and_stay_within_the_budget(server: Server) -> None:
    before = sum(server.metric("panglot_sleeps_total", model=model, reason="budget") for model in ("predict", "b"))
    used, ended = [], threading.Event()

    def watch() -> None:
        while not ended.is_set():
            used.append(len(server.workers()))
            ended.wait(0.05)

    def client(number: int) -> list[int]:
        until, statuses = time.monotonic() + SECONDS, []
        while time.monotonic() < until:
            statuses += [ask(server, model, number) for model in ("predict", "b")]
        return statuses

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(8) as clients:
        statuses = [status for of_client in clients.map(client, range(8)) for status in of_client]
    ended.set()
    watcher.join()
    assert set(statuses) == {200}
    assert max(used) == 1
    after = sum(server.metric("panglot_sleeps_total", model=model, reason="budget") for model in ("predict", "b"))
    assert 1 <= after - before <= 4 * SECONDS
    server.wait_log("from now on it stays awake")


def test_a_model_that_needs_more_than_the_budget_is_loaded_alone(tmp_path: Path) -> None:
    flags = ("--memory-budget", "50MiB", "--memory", "60MiB", "--state-folder", str(tmp_path))
    with serving("heavy", *flags) as server:
        server.wait_log("needs 60 MiB, which is more than the memory budget")
        assert server.predict({"id": 1}).json()["id"] == 1


def test_a_model_that_can_no_longer_be_loaded_does_not_keep_the_memory(tmp_path: Path) -> None:
    fickle = tmp_path / "fickle"
    shutil.copytree(PACKAGES / "heavy", fickle)
    script = fickle / "predict.py"
    flags = ("--memory-budget", "200MiB", "--state-folder", str(tmp_path / "state"))
    with serving("heavy", f"fickle={fickle}", *flags) as server:
        assert ask(server, "predict", 1) == 200
        wait_until(lambda: sleeping(server) == ["fickle"], message=lambda: server.log)
        script.write_text("raise SystemError('broken')\n" + script.read_text())
        late = server.client.post("/models/fickle/predict", json={"id": 1}, headers={"x-timeout-ms": "4000"})
        assert late.status_code == 503
        assert ask(server, "predict", 2) == 200
        script.write_text(script.read_text().partition("\n")[2])
        wait_until(lambda: ask(server, "fickle", 3) == 200, message=lambda: server.log)


def test_models_take_turns_on_a_gpu_by_what_nvidia_smi_tells(tmp_path: Path) -> None:
    """By a program of its name: there is no GPU where tests run. Every worker holds 600 MiB, it says."""
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    flags = ("--gpu-memory-budget", "1000MiB", "--state-folder", str(tmp_path / "state"))
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with serving("sleeper", f"b={PACKAGES / 'sleeper'}", *flags, env=path) as server:
        for model, other in (("predict", "b"), ("b", "predict")):
            answer = server.client.post(f"/models/{model}/predict", json={"number": 1})
            assert answer.json()["doubled"] == 2
            assert sleeping(server) == [other]
            about = {"model": model, "kind": "gpu_memory"}
            wait_until(lambda about=about: server.metric("panglot_memory_need_bytes", **about) > 599 << 20)


def test_a_request_that_waits_for_memory_is_answered_while_the_server_stops(tmp_path: Path) -> None:
    flags = ("--memory-budget", "200MiB", "--state-folder", str(tmp_path))
    with serving("heavy", f"b={PACKAGES / 'heavy'}", *flags) as server:
        assert ask(server, "predict", 1) == 200
        wait_until(lambda: sleeping(server) == ["b"], message=lambda: server.log)
        with ThreadPoolExecutor(2) as clients:
            long = clients.submit(ask, server, "predict", 1, 1.0)
            wait_until(lambda: server.metric("panglot_requests_in_progress", model="predict") == 1)
            other = clients.submit(ask, server, "b", 2)
            wait_until(lambda: server.metric("panglot_requests_in_progress", model="b") == 1)
            server.process.terminate()
            assert (long.result(), other.result()) == (200, 200)
        assert server.stop() == 0
