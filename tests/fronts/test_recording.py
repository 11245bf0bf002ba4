"""`--record FILE` with several fronts: one file has the traffic of all, and stays readable when any of them dies."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from panglot.recording.recording import Pair, Recording
from support.fronts import client_of, pid_of, pids
from support.server import PACKAGES, Server, lives, panglot, serving, wait_until

TWO = ("--workers", "2", "--fronts", "2", "--restart-delay", "0.1")


def recorded(path: Path) -> tuple[list[Pair], dict[str, Any]]:
    """The pairs of a recording, and the counts at its end."""
    with Recording(path) as recording:
        return list(recording.pairs()), recording.end


def in_all(path: Path) -> Counter[int]:
    """How often each request stands in the file and in those that were put aside."""
    files = sorted(path.parent.glob("*.rec"))
    return Counter(json.loads(pair.request.body) for file in files for pair in recorded(file)[0])


def send(client: httpx.Client, body: Any) -> None:
    assert client.post("/predict", json=body).json() == {"got": body}


def test_the_pairs_of_both_fronts_are_in_one_file_once(tmp_path: Path) -> None:
    path = tmp_path / "today.rec"
    large = os.urandom(3 << 20).hex()
    flags = (*TWO, "--record", str(path), "--record-redact", "/name,x-customer")
    with serving("function", *flags, env={"PANGLOT_TOKEN": "hunter2"}) as server:
        server.client.headers["authorization"] = "Bearer hunter2"
        headers = {"Authorization": "Bearer hunter2", "X-Customer": "hunter2"}
        clients = [client_of(server, front, headers=headers) for front in (0, 1)]
        assert len(server.fronts()) == 2
        for number in range(40):
            send(clients[number % 2], number)
        for client in clients:
            send(client, {"name": "somebody"})
            send(client, large)
            assert client.post("/predict", content=b"{").status_code == 400
        server.stop()
        server.wait_log("recorded 46 pairs in")
        assert server.log.count("recorded ") == 1
    pairs, end = recorded(path)
    assert (end["pairs"], end["dropped"]) == (46, 0)
    assert [pair.number for pair in pairs] == list(range(1, 47))
    assert sorted(int(pair.request.body) for pair in pairs if pair.request.body.isdigit()) == list(range(40))
    assert sum(b"[redacted]" in pair.request.body and pair.answer.status == 200 for pair in pairs) == 2
    assert not any(b"somebody" in pair.request.body for pair in pairs)
    assert sum(pair.answer.body == json.dumps({"got": large}, separators=(",", ":")).encode() for pair in pairs) == 2
    assert "hunter2" not in str(pairs)
    times = [pair.at for pair in pairs]
    assert all(0 <= time < 600 for time in times), "all count from the beginning of the recording"
    assert path.stat().st_mode & 0o777 == 0o600
    done = panglot("replay", str(path), str(PACKAGES / "function"), "--connections", "2")
    assert done.returncode == 0, done.stdout + done.stderr


def test_sampling_and_rotation_hold_over_both_fronts(tmp_path: Path) -> None:
    path = tmp_path / "some.rec"
    flags = ("--record", str(path), "--record-every", "4", "--record-rotate-size", "4KB", "--record-paths", "/predict")
    with serving("function", *TWO, *flags) as server:
        for client in (client_of(server, 0), client_of(server, 1)):
            for _ in range(20):
                send(client, os.urandom(2000).hex())
        server.stop()
        server.wait_log("recorded 10 pairs in")
    files = sorted(tmp_path.glob("some*.rec"))
    ends = [recorded(file)[1] for file in files]
    assert len(files) > 1
    assert sum(end["pairs"] for end in ends) == 10
    assert max(end["skipped"] for end in ends) >= 30, "what both fronts left out"


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_front_leaves_a_readable_file_and_later_requests_are_recorded(tmp_path: Path, victim: int) -> None:
    path = tmp_path / "today.rec"
    with serving("function", *TWO, "--record", str(path)) as server:
        for front in (0, 1):
            client = client_of(server, front)
            for number in range(10):
                send(client, 100 * front + number)
        # Pairs are written within a second.
        wait_until(lambda: len(in_all(path)) == 20, 30)
        kill(server, victim)
        for front in (0, 1):
            client = client_of(server, front)
            for number in range(10):
                send(client, 1000 + 100 * front + number)
        server.stop()
        server.wait_log("recorded ")
    counts = in_all(path)
    assert set(counts.values()) == {1}
    wanted = {start + number for start in (0, 100, 1000, 1100) for number in range(10)}
    assert set(counts) == wanted
    assert len(list(tmp_path.glob("*.rec"))) == (2 if victim == 0 else 1), "the file of a killed front is put aside"


def test_what_is_lost_while_the_writing_front_is_away_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "today.rec"
    flags = ("--restart-delay", "3", "--record", str(path))
    with serving("function", *TWO, *flags) as server:
        client = client_of(server, 1)
        kill(server, 0, lambda: [send(client, number) for number in range(20)])
        send(client, 99)
        server.stop()
        server.wait_log("recorded ")
    pairs, end = recorded(path)
    assert 99 in in_all(path)
    # Load may delay a request until the next front is there.
    assert len(pairs) - 1 + end["dropped"] == 20
    assert "a front died" in server.log


def test_a_full_disk_ends_the_recording_of_all_fronts_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "today.rec"
    with serving("function", *TWO, "--record", str(path), largest_file=200_000) as server:
        clients = [client_of(server, front) for front in (0, 1)]
        noise = os.urandom(300_000).hex()
        send(clients[1], noise)
        server.wait_log("the recording has ended: .*today.rec: File too large")
        for client in clients:
            for number in range(3):
                send(client, number)
    assert recorded(path)[0] == []


def test_a_front_that_cannot_write_the_file_again_serves_without_it(tmp_path: Path) -> None:
    path = tmp_path / "today.rec"
    with serving("function", *TWO, "--record", str(path)) as server:
        path.unlink()
        path.write_text("somebody else's")
        kill(server, 0)
        server.wait_log("the recording has ended: .*today.rec exists and is no recording")
        for front in (0, 1):
            client = client_of(server, front)
            for number in range(3):
                send(client, number)
    assert path.read_text() == "somebody else's"
    assert server.log.count("the recording has ended") == 1


def kill(server: Server, front: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    """End a front, and wait until its successor is connected with the others."""
    before = pid_of(server, front)
    process = psutil.Process(before)
    process.kill()
    # Until it has ended, the others give it what nobody will write or count.
    wait_until(lambda: not lives(process))
    meanwhile()
    wait_until(lambda: pids(server).get(front, before) != before, 60)
    wait_until(lambda: server.metric("panglot_fronts", state="answering") == 2, 60)
