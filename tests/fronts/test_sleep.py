"""Models that sleep and wake in a server with several fronts: one decision for all of them, and no call is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from support.models import all_of, write_model
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import answers, burst, times

FRONTS = ("--fronts", "2", "--restart-delay", "0.1")
SOON = ("--sleep-after", "0.5s")
CONTROL = "of-whoever-runs-it"
ADMIN = {"authorization": f"Bearer {CONTROL}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = str(tmp_path_factory.mktemp("state"))
    flags = (*FRONTS, *SOON, "--workers", "0:2", "--state-folder", folder)
    with serving("sleeper", *flags) as running:
        assert len(running.fronts()) == 2
        yield running


def fall_asleep(server: Server, **labels: str) -> None:
    wait_until(
        lambda: server.metric("panglot_model_state", state="asleep", **labels) == 1 and not server.workers(),
        60,
        message=lambda: server.log,
    )


def complete(server: Server) -> bool:
    """Whether both fronts tell their figures."""
    with contextlib.suppress(httpx.TransportError):
        return 'panglot_fronts{state="answering"} 2' in httpx.get(f"{server.url}/metrics", timeout=10).text
    return False


def test_a_model_without_requests_sleeps_in_all_fronts_and_is_ready(server: Server) -> None:
    assert "0:2" in str(server.process.args)
    sleeps = server.metric("panglot_sleeps_total", reason="idle")
    fall_asleep(server)
    wait_until(lambda: server.metric("panglot_sleeps_total", reason="idle") >= max(1, sleeps))
    for _ in range(4):
        assert httpx.get(f"{server.url}/v2/health/ready").status_code == 200
        assert httpx.get(f"{server.url}/v2/models/predict/ready").status_code == 200
        index = httpx.post(f"{server.url}/v2/repository/index", json={}).json()
        assert index == [{"name": "predict", "version": "1", "state": "READY", "reason": "asleep"}]
        assert "Double a number" in httpx.get(f"{server.url}/openapi.json").text
    assert server.client.get("/status.json").json()["state"] == "asleep"
    assert not server.workers()


def test_the_first_requests_of_all_fronts_wake_the_model_once(server: Server) -> None:
    fall_asleep(server)
    wakes, sleeps = server.metric("panglot_wakes_total"), server.metric("panglot_sleeps_total", reason="idle")
    given = answers(server, burst(server, [{"number": number} for number in range(16)]))
    assert [answer.json()["doubled"] for answer in given] == [2 * number for number in range(16)]
    assert server.metric("panglot_wakes_total") == wakes + 1
    fall_asleep(server)
    wait_until(lambda: server.metric("panglot_sleeps_total", reason="idle") == sleeps + 1)


def test_a_model_that_one_front_uses_sleeps_in_none(server: Server) -> None:
    """The other front, which has no request, decides nothing."""
    with server.new_client() as client, ThreadPoolExecutor(1) as threads:
        assert client.post("/predict", json={"number": 1}).status_code == 200
        long = threads.submit(client.post, "/predict", json={"number": 1, "sleep": 2.0})
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1 or long.done())
        # Not before: on a busy machine the model may sleep between the two requests.
        sleeps = server.metric("panglot_sleeps_total", reason="idle")
        while not long.done():
            slept = server.metric("panglot_sleeps_total", reason="idle")
            # Only what was seen before the answer counts.
            assert long.done() or slept == sleeps
        assert long.result().json()["doubled"] == 2


def test_a_front_that_dies_while_the_model_sleeps_comes_back_asleep(server: Server) -> None:
    fall_asleep(server)
    for victim in server.fronts():
        victim.kill()
        wait_until(lambda victim=victim: victim.pid not in {front.pid for front in server.fronts()})
        wait_until(lambda: len(server.fronts()) == 2 and complete(server), 60)
        for _ in range(4):
            assert "Double a number" in httpx.get(f"{server.url}/openapi.json").text
    fall_asleep(server)
    given = answers(server, burst(server, [{"number": number} for number in range(8)]))
    assert [answer.json()["doubled"] for answer in given] == [2 * number for number in range(8)]


def test_fronts_and_workers_die_while_eight_clients_wake_the_model(tmp_path: Path) -> None:
    flags = (*FRONTS, "--sleep-after", "0.1s", "--workers", "2", "--state-folder", str(tmp_path))
    outcomes: Counter[str] = Counter()
    over = threading.Event()
    kills: list[int] = []

    def ask(number: int) -> None:
        client = server.new_client()
        while not over.is_set():
            try:
                answer = client.post("/predict", json={"number": number})
                right = answer.status_code == 200 and answer.json()["doubled"] == 2 * number
                outcomes["200" if right else f"{answer.status_code} {answer.text}"] += 1
            except httpx.TransportError:
                outcomes["reset"] += 1
                client.close()
                client = server.new_client()
            # All of them pause at about the same time: the model sleeps in between.
            over.wait(0.8)
        client.close()

    with serving("sleeper", *flags) as server:
        with ThreadPoolExecutor(8) as threads:
            asking = [threads.submit(ask, number) for number in range(8)]
            try:
                for turn in range(times(4, 100)):
                    time.sleep(0.9)
                    victims = server.fronts() if turn % 2 else server.workers()
                    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
                        victims[turn // 2 % 2].kill()
                        kills.append(1)
                    wait_until(lambda: len(server.fronts()) == 2 and complete(server), 60)
            finally:
                over.set()
            for asked in asking:
                asked.result()
        assert outcomes["200"] > 0.5 * outcomes.total(), outcomes
        assert set(outcomes) <= {"200", "reset"}, outcomes
        assert outcomes["reset"] <= 8 * len(kills)
        assert server.metric("panglot_wakes_total") >= 1
        fall_asleep(server)
        assert server.predict({"number": 4}).json()["doubled"] == 8


def test_too_many_requests_for_a_model_that_wakes_are_refused_over_all_fronts(tmp_path: Path) -> None:
    flags = (*FRONTS, *SOON, "--workers", "2", "--wake-queue", "2", "--state-folder", str(tmp_path))
    with serving("sleeper", *flags, env={"SLOW_LOAD": "3"}) as server:
        fall_asleep(server)
        statuses: list[int] = []

        def ask(number: int) -> None:
            answer = httpx.post(f"{server.url}/predict", json={"number": number}, timeout=60)
            statuses.append(answer.status_code)
            if answer.status_code == 503:
                assert answer.json()["error"]["code"] == "waking"
                assert 1 <= int(answer.headers["retry-after"]) <= 300

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for number, thread in enumerate(threads):
            thread.start()
            # The fronts see each other's queues on the board, a moment later.
            wait_until(lambda number=number: len(statuses) + waiting(server) > number or statuses)
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200] * 2 + [503] * 6


def waiting(server: Server) -> float:
    return server.metric("panglot_requests_in_progress")


def test_models_of_all_fronts_stay_within_one_budget(tmp_path: Path) -> None:
    """Two models, each with a worker in both fronts, of which one fits: eight clients ask them in turn."""
    heavy, seconds = PACKAGES / "heavy", times(6, 60)
    flags = (*FRONTS, "--workers", "2", "--memory-budget", "350MiB", "--state-folder", str(tmp_path))
    used, ended = [], threading.Event()

    def watch() -> None:
        while not ended.is_set():
            used.append(len(server.workers()))
            ended.wait(0.05)

    def client(number: int) -> list[int]:
        until, statuses = time.monotonic() + seconds, list[int]()
        with server.new_client() as connection:
            while time.monotonic() < until:
                for model in ("predict", "b"):
                    answer = connection.post(f"/models/{model}/predict", json={"id": number})
                    assert answer.status_code != 200 or answer.json()["id"] == number
                    statuses.append(answer.status_code)
        return statuses

    with serving(heavy, f"b={heavy}", *flags) as server:
        assert len(server.fronts()) == 2
        watcher = threading.Thread(target=watch)
        watcher.start()
        with ThreadPoolExecutor(8) as clients:
            statuses = [status for of_client in clients.map(client, range(8)) for status in of_client]
        ended.set()
        watcher.join()
        assert set(statuses) == {200}
        assert max(used) <= 2, "never both models at once"
        slept = sum(server.metric("panglot_sleeps_total", model=model, reason="budget") for model in ("predict", "b"))
        assert 1 <= slept <= 4 * seconds
        # It is the need of the whole model.
        assert server.metric("panglot_memory_need_bytes", model="b", kind="memory") > 2 * 96 << 20


def test_a_model_that_is_loaded_later_sleeps_and_wakes_too(tmp_path: Path) -> None:
    models = tmp_path / "models"
    write_model(models / "echo")
    flags = (*FRONTS, "--admin", "--workers", "2", "--state-folder", str(tmp_path / "state"))
    with serving(all_of(models), *flags, env={"PANGLOT_ADMIN_TOKEN": CONTROL}) as server:
        write_model(models / "late")
        (models / "late" / "panglot.toml").write_text('sleep_after = "0.5s"\n')
        for _ in range(2):
            assert change(server, "late", "load") == 200
            wait_until(lambda: server.metric("panglot_model_state", state="asleep", model="late") == 1, 60)
            wait_until(lambda: len(server.workers()) == 2)
            for number in range(6):
                answer = httpx.post(f"{server.url}/models/late/predict", json=number, timeout=60)
                assert answer.json() == {"model": "late", "got": number}
        server.fronts()[0].kill()
        wait_until(lambda: len(server.fronts()) == 2 and complete(server), 60)
        assert httpx.post(f"{server.url}/models/late/predict", json=1, timeout=60).status_code == 200
        wait_until(lambda: server.metric("panglot_model_state", state="asleep", model="late") == 1, 60)
        assert change(server, "late", "unload") == 200
        assert httpx.post(f"{server.url}/models/late/predict", json=1).status_code == 404


def change(server: Server, name: str, what: str) -> int:
    return httpx.post(f"{server.url}/v2/repository/models/{name}/{what}", headers=ADMIN, timeout=60).status_code
