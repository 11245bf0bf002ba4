"""Models all of whose workers belong to the first front: they come and go, sleep, and retain memory, as any other."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.fronts import client_of, pid_of
from support.models import all_of, write_model
from support.server import Server, serving, wait_until
from support.steady_clients import asked_meanwhile
from support.streams import LONG, ended, listed, start
from support.traffic import times
from support.videos import make

CONTROL = "of-whoever-runs-it"
ADMIN = {"authorization": f"Bearer {CONTROL}"}
FRONTS = ("--fronts", "2", "--restart-delay", "0.1")
FRAMES = 120


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A folder of models with one worker each."""
    write_model(tmp_path / "echo", says="old")
    flags = (*FRONTS, "--admin", "--state-folder", str(tmp_path.parent / f"{tmp_path.name}-state"))
    with serving(all_of(tmp_path), *flags, env={"PANGLOT_ADMIN_TOKEN": CONTROL}) as running:
        assert (len(running.fronts()), len(running.workers())) == (2, 1)
        yield running


def change(server: Server, name: str, what: str) -> int:
    return httpx.post(f"{server.url}/v2/repository/models/{name}/{what}", headers=ADMIN, timeout=120).status_code


def said(server: Server, name: str) -> Counter[str]:
    answers: Counter[str] = Counter()
    for number in range(4):
        answer = httpx.post(f"{server.url}/models/{name}/predict", json=number, timeout=60)
        answers[answer.json()["model"] if answer.status_code == 200 else str(answer.status_code)] += 1
    return answers


def test_a_model_comes_is_replaced_and_goes_under_load(server: Server, tmp_path: Path) -> None:
    with asked_meanwhile(server, "/models/echo/predict") as answers:
        for number in range(times(3, 30)):
            write_model(tmp_path / "echo", says=f"new {number}")
            assert change(server, "echo", "load") == 200
            assert said(server, "echo") == {f"new {number}": 4}
            write_model(tmp_path / "late")
            assert change(server, "late", "load") == 200
            assert said(server, "late") == {"late": 4}
            assert change(server, "late", "unload") == 200
            assert said(server, "late") == {"404": 4}
    assert answers
    assert all(word == "old" or word.startswith("new ") for word in answers), answers
    wait_until(lambda: len(server.workers()) == 1, 60)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_front_that_dies_while_a_model_is_loaded(server: Server, tmp_path: Path, victim: int) -> None:
    """Where it is the one that has the workers, the load begins again."""
    body = "import time\n\ntime.sleep(1.5)\n\n\ndef predict(x):\n    return {'model': 'slow', 'got': x}\n"
    write_model(tmp_path / "slow", body=body)
    asked = client_of(server, 1 - victim, headers=ADMIN)
    processes = {front.pid: front for front in server.fronts()}
    front = processes[pid_of(server, victim)]
    statuses: list[int] = []
    thread = threading.Thread(
        target=lambda: statuses.append(asked.post("/v2/repository/models/slow/load", timeout=120).status_code)
    )
    thread.start()
    wait_until(lambda: len(server.workers()) == 2)
    front.kill()
    thread.join()
    assert statuses == [200]
    wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == 2, 60)
    wait_until(lambda: said(server, "slow") == {"slow": 4}, 60)
    assert said(server, "echo") == {"old": 4}


def test_a_model_sleeps_for_both_fronts_and_either_wakes_it(server: Server, tmp_path: Path) -> None:
    write_model(tmp_path / "late")
    (tmp_path / "late" / "panglot.toml").write_text('sleep_after = "0.5s"\n')
    assert change(server, "late", "load") == 200
    clients = [client_of(server, front) for front in range(2)]
    for number in range(4):
        wait_until(lambda: len(server.workers()) == 1, 60)
        for client in clients:
            # Its worker has ended before both fronts know that it has.
            wait_until(lambda client=client: ("late", "READY", "asleep") in index(client))
            assert client.get("/v2/models/late/ready").status_code == 200
        answer = clients[number % 2].post("/models/late/predict", json=number, timeout=60)
        assert answer.json() == {"model": "late", "got": number}
    assert server.metric("panglot_wakes_total", model="late") >= 4
    assert change(server, "late", "unload") == 200
    assert said(server, "late") == {"404": 4}


def index(client: httpx.Client) -> list[tuple[str, str, str]]:
    rows = client.post("/v2/repository/index", json={}).json()
    return [(row["name"], row["state"], row["reason"]) for row in rows]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("clips") / "clip.mp4", FRAMES)


def test_streams_retain_their_memory_whichever_front_is_asked(clip: Path) -> None:
    flags = (*FRONTS, "--uri-root", str(clip.parent))
    with serving("megflow_video", *flags, env={"TEST_PAUSE": "0.03"}) as server:
        assert (len(server.fronts()), len(server.workers())) == (2, 1)
        other = client_of(server, 1)
        stream = start(server, clip)
        wait_until(lambda: listed(server, stream)["analysed"] > 5, LONG)
        assert [one["id"] for one in other.get("/list").json()] == [stream]
        (worker,) = server.workers()
        worker.kill()
        server.wait_log(rf"stream {stream} \(.*clip.mp4\) goes on at frame \d+: its worker died")
        # The streams are the first front's: the death of another costs them nothing.
        processes = {front.pid: front for front in server.fronts()}
        processes[pid_of(server, 1)].kill()
        wait_until(lambda: has_both(server), 60)
        again = client_of(server, 1)
        assert [one["id"] for one in again.get("/list").json()] in ([stream], [])
        ended(server, stream)
        about = listed(server, stream)
        assert (about["restarts"], about["analysed"], about["lost"]) == (1, FRAMES, 0)


def has_both(server: Server) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return 'panglot_fronts{state="answering"} 2' in httpx.get(f"{server.url}/metrics", timeout=10).text
    return False


def test_texts_that_are_no_valid_unicode_keep_no_front_from_its_description() -> None:
    with serving("documented_hostile", *FRONTS) as server:
        for front in (0, 1):
            assert client_of(server, front).get("/openapi.json").status_code == 200
