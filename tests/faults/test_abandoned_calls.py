"""Calls that nobody waits for any more: by `--on-leave` they finish, are interrupted, or their worker is killed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from support.server import Server, lives, serving, wait_until

SINGLE, BATCH = "abandoned/single.py", "abandoned/batch.py"
GRACE = 3.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    flags = ("--on-leave", "interrupt", "--kill-grace", str(GRACE), "--restart-delay", "0.1")
    with serving(SINGLE, "--workers", "1", *flags) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "words"
    path.touch()
    return path


def words(file: Path) -> list[str]:
    return file.read_text().splitlines()


def begin(server: Server, body: dict[str, Any], route: str = "/predict") -> socket.socket:
    """Send a request, and do not wait for its answer."""
    content = orjson.dumps(body)
    connection = socket.create_connection(("127.0.0.1", server.port))
    lines = (f"POST {route} HTTP/1.1", f"host: 127.0.0.1:{server.port}", "content-type: application/json")
    head = "\r\n".join((*lines, f"content-length: {len(content)}", "", ""))
    connection.sendall(head.encode() + content)
    return connection


def abandon(server: Server, way: str, file: Path) -> None:
    """Begin a call, and disconnect once the script runs it."""
    connection = begin(server, {"way": way, "file": str(file)})
    wait_until(lambda: "begun" in words(file))
    time.sleep(0.2)
    connection.close()


def pid(server: Server) -> int:
    """The process that answers a further request."""
    answer = server.predict({}, timeout=30)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["pid"])


def runs(number: int) -> bool:
    """Whether the process of this number still runs."""
    try:
        return lives(psutil.Process(number))
    except psutil.NoSuchProcess:
        return False


def ended(server: Server, how: str) -> float:
    return server.metric("panglot_abandoned_calls_total", end=how)


# Interrupted


@pytest.mark.parametrize("way", ["loop", "nap", "lock", "command", "reports", "catches"])
def test_a_call_is_interrupted_when_its_client_disconnects(server: Server, file: Path, way: str) -> None:
    before, worker = ended(server, "interrupted"), pid(server)
    abandon(server, way, file)
    assert pid(server) == worker, "the worker serves on"
    assert words(file) == ["begun", "interrupted"]
    wait_until(lambda: ended(server, "interrupted") == before + 1)


def test_a_script_has_the_grace_to_clean_up(server: Server, file: Path) -> None:
    worker = pid(server)
    abandon(server, "cleans", file)
    assert pid(server) == worker
    assert words(file) == ["begun", "cleaned", "interrupted"]


def test_a_generator_is_interrupted_between_two_parts(server: Server, file: Path) -> None:
    worker = pid(server)
    connection = begin(server, {"way": "stream", "file": str(file)})
    assert connection.recv(100).startswith(b"HTTP/1.1 200")
    connection.close()
    assert pid(server) == worker
    assert words(file) == ["begun", "interrupted"]


def test_a_call_is_interrupted_at_its_deadline(server: Server, file: Path) -> None:
    worker = pid(server)
    answer = server.predict({"way": "nap", "file": str(file)}, headers={"x-timeout-ms": "1500"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
    assert pid(server) == worker
    assert words(file) == ["begun", "interrupted"]


def test_a_job_that_is_cancelled_is_interrupted(server: Server, file: Path) -> None:
    worker = pid(server)
    body = {"way": "nap", "file": str(file)}
    job = server.predict(body, headers={"prefer": "respond-async"}).json()["id"]
    wait_until(lambda: "begun" in words(file))
    assert server.client.delete(f"/jobs/{job}").json()["state"] == "cancelled"
    wait_until(lambda: words(file) == ["begun", "interrupted"])
    assert pid(server) == worker


def test_calls_that_wait_behind_an_interrupted_one_are_answered(server: Server, file: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        connection = begin(server, {"way": "nap", "file": str(file)})
        wait_until(lambda: "begun" in words(file))
        waiting = [threads.submit(server.predict, {}) for _ in range(8)]
        time.sleep(0.3)
        connection.close()
        assert [answer.result(30).status_code for answer in waiting] == [200] * 8


def test_many_calls_that_are_abandoned_at_any_moment_harm_no_other(server: Server, file: Path) -> None:
    """A signal may come at any moment of a call, before it and after it; no other call may be hit by it."""
    worker = pid(server)
    for number in range(60):
        connection = begin(server, {"way": "nap", "seconds": 0.02, "file": str(file)})
        time.sleep(0.001 * (number % 30))
        connection.close()
        assert pid(server) == worker


# Not to be interrupted: the worker is replaced after the grace


@pytest.mark.parametrize("way", ["native", "swallow"])
def test_a_worker_that_does_not_end_its_call_is_replaced(server: Server, file: Path, way: str) -> None:
    before, worker = ended(server, "killed"), pid(server)
    mark = len(server.lines)
    abandon(server, way, file)
    assert pid(server) != worker
    server.wait_log("was killed: a call went on for 3 s after it was interrupted", after=mark)
    wait_until(lambda: ended(server, "killed") == before + 1)
    assert words(file).count("swallowed") == (way == "swallow"), "it is interrupted once"


def test_a_process_that_an_interrupted_call_has_forked_ends_too(server: Server, file: Path) -> None:
    worker = pid(server)
    abandon(server, "fork", file)
    assert pid(server) != worker
    (child,) = (int(line.split()[1]) for line in words(file) if line.startswith("child"))
    assert "interrupted" in words(file)
    wait_until(lambda: not runs(child))


def test_a_script_that_exits_when_it_is_interrupted_is_started_anew(server: Server, file: Path) -> None:
    worker = pid(server)
    abandon(server, "exits", file)
    assert pid(server) != worker


# Batches


def test_a_batch_is_interrupted_only_when_nobody_waits_for_any_of_its_calls(file: Path) -> None:
    flags = ("--max-batch", "2", "--max-wait-ms", "2000", "--on-leave", "interrupt", "--kill-grace", "20")
    with serving(BATCH, "--workers", "1", *flags) as server:
        body = {"seconds": 2, "file": str(file)}
        with ThreadPoolExecutor(1) as threads:
            stays = threads.submit(server.predict, body)
            leaves = begin(server, body)
            wait_until(lambda: words(file) == ["begun 2"])
            leaves.close()
            assert stays.result(30).json() == {"items": 2}
        assert words(file) == ["begun 2", "finished 2"]
        calls = server.metric("panglot_stage_seconds_count", stage="inference")
        usual = server.metric("panglot_stage_seconds_sum", stage="inference") / calls
        assert usual > 1.5
        began = time.monotonic()
        both = [begin(server, {**body, "seconds": 60}) for _ in range(2)]
        wait_until(lambda: words(file)[2:] == ["begun 2"])
        for connection in both:
            connection.close()
        wait_until(lambda: words(file)[3:] == ["interrupted 2"])
        assert server.predict({}).status_code == 200
        wait_until(lambda: ended(server, "interrupted") == 2)
        waited = time.monotonic() - began
        assert 0 < server.metric("panglot_abandoned_seconds_total", end="interrupted") <= waited
        # A call is expected to take as long as the others did: what it ran of that is not saved.
        assert usual - waited <= server.metric("panglot_saved_seconds_total") <= usual


# The other ways


def test_a_worker_is_killed_at_once_where_the_setting_says_so(file: Path) -> None:
    with serving(SINGLE, "--workers", "1", "--on-leave", "kill", "--kill-grace", "60") as server:
        worker = pid(server)
        abandon(server, "swallow", file)
        assert pid(server) != worker
        assert words(file) == ["begun"]
        wait_until(lambda: ended(server, "killed") == 1)
        assert server.metric("panglot_worker_restarts_total", reason="stopped") == 1


def test_a_call_finishes_by_default(file: Path) -> None:
    with serving(SINGLE, "--workers", "1") as server:
        worker = pid(server)
        connection = begin(server, {"way": "nap", "seconds": 1, "file": str(file)})
        wait_until(lambda: "begun" in words(file))
        connection.close()
        assert pid(server) == worker
        assert words(file) == ["begun", "finished"]
        wait_until(lambda: ended(server, "finished") == 1)
