"""`--workers MIN:MAX`: more workers while requests wait, fewer when they are idle, and no request lost by it."""

from __future__ import annotations

import itertools
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import browsing
from support.load import Busy
from support.server import PACKAGES, Server, panglot, serving, wait_until
from support.traffic import Gate, answers, send, times

SOON = ("--scale-wait", "100ms", "--scale-idle", "1s", "--restart-delay", "100ms", "--restart-delay-max", "500ms")
GATED = """
import asyncio, os

async def predict(request):
    print(request["id"], "runs in", os.getpid(), flush=True)
    while not os.path.exists(request["gate"]):
        await asyncio.sleep(0.01)
    return request["id"]
"""


def wanted(server: Server, **labels: str) -> int:
    return int(server.metric("panglot_workers_wanted", **labels))


def has(server: Server, count: int) -> None:
    """Wait until there are so many workers, all of them ready."""

    def is_so() -> bool:
        return wanted(server) == len(server.workers()) == count == server.metric("panglot_workers", state="ready")

    wait_until(is_so, 60, lambda: f"not {count} workers:\n{server.log}")


def size(server: Server) -> dict[str, Any]:
    (pool,) = server.client.get("/status.json").json()["pools"]
    return dict(pool)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(PACKAGES / "life_echo", tmp_path_factory.mktemp("scaling") / "echo"))


@pytest.fixture(scope="module")
def server(package: Path) -> Iterator[Server]:
    with serving(package, "--workers", "1:4", *SOON) as server:
        yield server


def test_grows_and_shrinks_while_workers_are_killed(server: Server) -> None:
    """Every request is answered, whoever is killed, and in the end the least is left."""
    chance = random.Random(0)
    has(server, 1)
    known = len(size(server)["changes"])
    before = {way: server.metric("panglot_workers_scaled_total", direction=way) for way in ("up", "down")}
    with Busy(server, clients=12, rate=2000, sleep=0.1) as busy:
        has(server, 4)
        for _ in range(times(2, 50)):
            victims = [worker for worker in server.workers() if worker.cmdline()]
            chance.choice(victims).send_signal(signal.SIGKILL)
            wait_until(lambda victims=victims: len(set(server.workers()) - set(victims)) > 0, 20)
            has(server, 4)
    assert (busy.lost, busy.wrong) == ([], [])
    assert set(busy.statuses) == {200}
    has(server, 1)
    told = size(server)
    assert (told["workers"], told["wanted"], told["ready"]) == ("1:4", 1, 1)
    sizes = [(change["before"], change["after"]) for change in told["changes"][known:]]
    assert sizes[0][0] == sizes[-1][1] == 1
    assert all(left == right for (_, left), (right, _) in itertools.pairwise(sizes))
    server.wait_log(r"2 workers instead of 1, of 1:4: requests waited \d+\.\d s for one")
    server.wait_log(r"1 worker instead of \d, of 1:4: 1 was enough for \d+ s")
    up, down = (server.metric("panglot_workers_scaled_total", direction=way) - before[way] for way in ("up", "down"))
    assert up == down >= 3
    assert server.metric("panglot_worker_restarts_total", reason="retired") == 0, "none of them was replaced"


def test_a_reload_keeps_the_number(server: Server, package: Path) -> None:
    with Busy(server, clients=12, rate=2000, sleep=0.1) as busy:
        has(server, 4)
        before = {worker.pid for worker in server.workers()}
        text = (package / "model.py").read_text()
        (package / "model.py").write_text(text.replace("VERSION = 1", "VERSION = 2"))
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not before & {worker.pid for worker in server.workers()}, 60, lambda: server.log)
        has(server, 4)
    assert (busy.lost, busy.wrong, set(busy.statuses)) == ([], [], {200})
    assert busy.versions == {1, 2}
    has(server, 1)


def has_scaled(server: Server) -> None:
    """That there is a change to show does not depend on the test before: it may run in another process."""
    if not size(server)["changes"]:
        with Busy(server, clients=12, rate=2000, sleep=0.1):
            wait_until(lambda: wanted(server) > 1)
    has(server, 1)


def test_the_range_is_shown(server: Server, package: Path) -> None:
    server.wait_log(r"echo is ready on \S+ \(plain, 1:4 workers\)")
    has_scaled(server)
    done = panglot("top", server.url, "--once")
    assert "workers 1 of 1:4" in done.stdout
    assert "→ 1: 1 was enough for" in done.stdout
    done = panglot("inspect", str(package), "--workers", "1:8")
    assert "workers       1:8" in done.stdout


@pytest.mark.rest("a browser")
def test_the_range_is_shown_on_the_page(server: Server) -> None:
    with Busy(server, clients=12, rate=2000, sleep=0.1):
        wait_until(lambda: wanted(server) > 1)
    has(server, 1)
    with browsing() as browser:
        browser.open(server.url + "/status")
        browser.wait("document.querySelector('.workers .hint').innerText.includes('1 of 1:4')")
        last = browser.run("document.querySelector('.sizes tbody tr').innerText")
        assert "→ 1" in last
        assert "1 was enough for" in last


def test_a_worker_that_is_let_go_first_answers_what_it_holds(tmp_path: Path) -> None:
    """Three workers of two slots each, and one request left in two of them: one worker is enough for both."""
    (tmp_path / "model.py").write_text(GATED)
    with serving(tmp_path, "--workers", "1:3", "--slots", "2", *SOON) as server:
        gates = {number: Gate(tmp_path / f"gate{number}") for number in range(6)}
        sent = {number: send(server, {"id": number, "gate": str(gate)}) for number, gate in gates.items()}
        places: dict[str, list[int]] = {}
        for number in gates:
            places.setdefault(server.wait_log(rf"{number} runs in (\d+)", 60)[1], []).append(number)
        (first, left), (second, kept), last = places.values()
        for number in (first, second, *last):
            gates[number].open()
        answers(server, [sent[number] for number in (first, second, *last)])
        wait_until(lambda: wanted(server) == 1, 30, lambda: server.log)
        wait_until(lambda: len(server.workers()) == 2)
        # A worker that has ended is one of them until the front has noticed.
        wait_until(lambda: server.metric("panglot_workers", state="retiring") == 1)
        assert not sent[left].done()
        assert not sent[kept].done()
        gates[left].open()
        gates[kept].open()
        assert [answer.json() for answer in answers(server, [sent[left], sent[kept]])] == [left, kept]
        has(server, 1)


def test_goes_on_with_what_it_has_when_no_more_can_be_had(tmp_path: Path) -> None:
    """The script cannot be loaded any more: the worker that is there serves on, alone, until it can."""
    broken = tmp_path / "broken"
    check = f"import os\nif os.path.exists({str(broken)!r}):\n    raise OSError('the weights are gone')\n"
    (tmp_path / "model.py").write_text(check + (PACKAGES / "life_echo" / "model.py").read_text())
    with serving(tmp_path, "--workers", "1:3", *SOON) as server:
        (only,) = server.workers()
        broken.touch()
        with Busy(server, clients=6, rate=2000, sleep=0.1) as busy:
            server.wait_log(r"1 worker instead of 2, of 1:3: one more could not be started", 30)
            server.wait_log("the weights are gone")
            assert server.ready() == 200
            assert only.is_running()
            broken.unlink()
            has(server, 3)
        assert (busy.lost, busy.wrong, set(busy.statuses)) == ([], [], {200})
        assert server.ready() == 200


def test_of_a_row_only_the_pool_that_is_short_grows() -> None:
    pools = ("--pools", "preprocess=1:4,inference=1:4", "--max-batch", "1")
    with serving("row_script", *pools, *SOON, "--scale-wait", "500ms") as server:
        server.wait_log(r"\(plain, preprocess 1:4, inference 1:4 workers\)")
        slow = {"inference": "sleep", "seconds": 0.2, "brief": True}
        for _ in range(100):
            sent = [send(server, {"id": id, **slow}) for id in range(24)]
            assert [answer.json()["twice"] for answer in answers(server, sent, 60)] == [2.0 * id for id in range(24)]
            if wanted(server, pool="inference") == 4:
                break
        assert wanted(server, pool="inference") == 4
        assert wanted(server, pool="preprocess") < 4, "what it does is held back by the next pool"
        wait_until(lambda: wanted(server, pool="inference") == 1, 60)


def test_each_of_several_models_has_its_own_range(tmp_path: Path) -> None:
    for name, workers in (("busy", "1:2"), ("idle", "2:3")):
        shutil.copytree(PACKAGES / "life_echo", tmp_path / name)
        (tmp_path / name / "panglot.toml").write_text(f'workers = "{workers}"\n')
    with serving(tmp_path / "busy", str(tmp_path / "idle"), *SOON) as server:
        server.wait_log(r"busy is ready on \S+ \(plain, the default, 1:2 workers\)")
        with Busy(server, clients=4, rate=2000, sleep=0.1) as busy:
            wait_until(lambda: wanted(server, model="busy") == 2, 30, lambda: server.log)
        assert set(busy.statuses) == {200}
        assert wanted(server, model="idle") == 2
        pools = server.client.get("/status.json").json()["pools"]
        assert {(pool["model"], pool["workers"]) for pool in pools} == {("busy", "1:2"), ("idle", "2:3")}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("8:1", "the least comes first; write 1:8"),
        ("0:0", "the most is at least 1; write 0:1"),
        ("a:b", "expected a whole number such as 4, or MIN:MAX such as 1:8"),
    ],
)
def test_what_is_no_range_is_refused(given: str, words: str) -> None:
    done = panglot("serve", str(PACKAGES / "life_echo"), "--workers", given)
    assert (done.returncode, done.stderr) == (3, f"error: --workers '{given}': {words}\n")
