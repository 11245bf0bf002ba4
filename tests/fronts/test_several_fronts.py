"""A server with several fronts: connections spread, deaths contained, reload and drain in order, one log."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from support.fronts import status_of
from support.server import PACKAGES, Server, lives, panglot, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("life_echo", "--workers", "2", "--fronts", "2") as server:
        yield server


def ask(client: httpx.Client, number: int = 0, **more: object) -> dict[str, int]:
    answer = client.post("/predict", json={"id": number, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def of_both(server: Server) -> tuple[httpx.Client, httpx.Client]:
    """A client whose connection the first worker answers, and one of the second."""
    clients: dict[int, httpx.Client] = {}

    def has_both() -> bool:
        client = server.new_client()
        clients.setdefault(ask(client)["pid"], client)
        return len(clients) == 2

    wait_until(has_both)
    first, second = clients.values()
    return first, second


def test_connections_are_spread_over_the_fronts(server: Server) -> None:
    # Its connection would count, until its front has noticed that it is closed.
    server.client.close()
    server.client = server.new_client()
    wait_until(lambda: not connections(server))
    clients = [server.new_client() for _ in range(8)]
    pids = Counter(ask(client)["pid"] for client in clients)
    assert len(server.fronts()) == 2
    assert sorted(pids.values()) == [4, 4], "each front has half of the connections, and one worker"
    assert set(pids) == {worker.pid for worker in server.workers()}
    for client in clients:
        client.close()


def connections(server: Server) -> list[int]:
    """The ports of the clients whose connections the fronts have, those too that are closed at the other end."""
    return [each.raddr.port for front in server.fronts() for each in front.net_connections("tcp") if each.raddr]


def test_the_start_is_told_once_and_workers_have_numbers_of_their_own(server: Server) -> None:
    server.wait_log("life_echo is ready on")
    for number in (0, 1):
        server.wait_log(f"life_echo worker {number} ready")
    assert server.log.count("life_echo is ready on") == 1
    assert server.log.count("listening on http") == 1


def test_a_killed_front_costs_its_own_connections_alone(server: Server) -> None:
    first, second = of_both(server)
    front = psutil.Process(ask(first)["pid"]).parent()
    assert front in server.fronts()
    worker = psutil.Process(ask(first)["pid"])
    mark = len(server.lines)
    front.kill()
    for number in range(20):
        assert ask(second, number)["id"] == number
    # Until it has ended, its connection looks as if it could be used.
    wait_until(lambda: not lives(front))
    assert ask(first)["pid"] != worker.pid, "its connection is gone, and the client makes another one"
    server.wait_log(r"front \d ended \(signal 9\): another one starts", after=mark)
    wait_until(lambda: not lives(worker))
    wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == 2)
    of_both(server)


def test_a_stopped_front_gets_no_connection_and_nobody_waits_for_it(server: Server) -> None:
    first, _ = of_both(server)
    front = psutil.Process(ask(first)["pid"]).parent()
    front.suspend()
    try:
        time.sleep(1.5)
        for number in range(10):
            with server.new_client() as client:
                assert ask(client, number)["id"] == number
    finally:
        front.resume()
    assert ask(first, 7)["id"] == 7
    of_both(server)


def test_a_front_that_hangs_is_said_in_the_log_and_goes_on_later(server: Server) -> None:
    first, second = of_both(server)
    front = psutil.Process(ask(first)["pid"]).parent()
    assert front is not None
    mark = len(server.lines)
    front.suspend()
    try:
        server.wait_log(rf"front \d \(pid {front.pid}\) does not respond for \d+ s: its requests wait", after=mark)
        assert ask(second, 5)["id"] == 5
    finally:
        front.resume()
    server.wait_log(r"front \d responds again, after \d+ s", after=mark)
    assert ask(first, 7)["id"] == 7
    assert sum("does not respond" in line for line in server.lines[mark:]) == 1


def test_a_reload_replaces_the_workers_of_all_fronts(server: Server) -> None:
    of_both(server)
    before = {worker.pid for worker in server.workers()}
    mark = len(server.lines)
    server.process.send_signal(signal.SIGHUP)
    server.wait_count("is being replaced: reload", 2, after=mark)
    wait_until(lambda: len(server.workers()) == 2 and not before & {worker.pid for worker in server.workers()})
    # Each front has a pipe for its log: whose line comes first in the log tells nothing about the order of reloads.
    server.wait_count(" ready after", 2, after=mark)
    mark = len(server.lines)
    with server.new_client() as client:
        assert client.post("/reload").status_code == 202
    server.wait_count("is being replaced: reload", 2, after=mark)


def test_requests_of_all_fronts_are_answered_before_the_server_ends() -> None:
    with serving("life_echo", "--workers", "2", "--fronts", "2") as server:
        answers: list[int] = []
        clients = of_both(server)
        threads = [
            threading.Thread(target=lambda client=client: answers.append(ask(client, 1, sleep=3.0)["pid"]))
            for client in clients
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 2)
        server.process.send_signal(signal.SIGTERM)
        server.wait_log(r"stopping; 2 requests to finish")
        for thread in threads:
            thread.join()
        assert len(set(answers)) == 2
        assert server.process.wait(20) == 0


def test_a_second_signal_ends_all_fronts_at_once() -> None:
    with serving("life_echo", "--workers", "2", "--fronts", "2") as server:
        client, _ = of_both(server)

        def wait_in_vain() -> None:
            with pytest.raises(httpx.TransportError):
                ask(client, 1, sleep=30)

        thread = threading.Thread(target=wait_in_vain)
        thread.start()
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        server.process.send_signal(signal.SIGINT)
        server.wait_log(r"stopping; 1 request to finish")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 1
        thread.join()
        server.wait_log("1 accepted request was not answered")


def test_a_script_that_cannot_load_ends_the_server_and_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(x):\n    return x\n\nraise RuntimeError('no weights')\n")
    result = panglot("serve", str(tmp_path), "--port", "0", "--workers", "2", "--fronts", "2")
    assert result.returncode == 3, result.stderr
    assert result.stderr.count("RuntimeError: no weights") == 1 or "no weights" in result.stderr
    assert "ready" not in result.stderr


def test_a_unix_socket_is_shared_and_its_file_removed(tmp_path: Path) -> None:
    path = tmp_path / "panglot.sock"
    words = ["serve", str(PACKAGES / "life_echo"), "--host", f"unix:{path}", "--workers", "2", "--fronts", "2"]
    process = subprocess.Popen([sys.executable, "-m", "panglot", *words], stderr=subprocess.DEVNULL)
    try:
        wait_until(path.exists)
        with httpx.Client(base_url="http://localhost", transport=httpx.HTTPTransport(uds=str(path))) as client:
            wait_until(lambda: client.get("/v2/health/ready").status_code == 200)
            assert ask(client, 3)["id"] == 3
    finally:
        process.terminate()
        assert process.wait(20) == 0
    assert not path.exists()


def test_the_port_is_closed_once_the_server_drains() -> None:
    with serving("life_echo", "--workers", "2", "--fronts", "2") as server:
        first, _ = of_both(server)
        thread = threading.Thread(target=ask, args=(first, 1), kwargs={"sleep": 3})
        thread.start()
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        server.process.send_signal(signal.SIGTERM)
        server.wait_log("stopping; 1 request")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.url}/v2/health/live", timeout=2)
        thread.join()


def test_figures_are_those_of_all_fronts_whichever_is_asked_and_outlive_a_front() -> None:
    with serving("life_echo", "--workers", "2", "--fronts", "2") as server:
        first, second = of_both(server)
        before = server.metric("panglot_requests_total", route="/predict", status="200")
        for _ in range(5):
            ask(first)
            ask(second)
        for client in (first, second):
            # A front leaves out the figures of one that takes half a second to tell them.
            wait_until(lambda client=client: counted(client) == before + 10)
        # The page samples once a second.
        wait_until(lambda: first.get("/status.json").json()["answered"] == before + 10)
        status = status_of(server)
        assert status["pid"] == server.process.pid
        assert {front["front"] for front in status["fronts"]} == {0, 1}
        assert {front["pid"] for front in status["fronts"]} == {front.pid for front in server.fronts()}
        assert {worker["front"] for worker in status["workers"]} == {0, 1}
        assert {worker["pid"] for worker in status["workers"]} == {worker.pid for worker in server.workers()}
        shown = panglot("top", server.url, "--once").stdout
        assert "borrowed" in shown
        assert all(str(front.pid) in shown for front in server.fronts())
        # What a front has counted is saved once a second.
        time.sleep(2.5)
        psutil.Process(ask(first)["pid"]).parent().kill()
        wait_until(lambda: server.metric("panglot_fronts", state="answering") == 2)
        wait_until(lambda: len(server.workers()) == 2)
        wait_until(lambda: counted(second) >= before + 10, message=lambda: "at most the last second's is lost")
        assert counted(second) <= before + 11
        assert server.metric("panglot_front_restarts_total", reason="died") == 1


def counted(client: httpx.Client) -> float:
    """How many requests were answered, as the front of this client says."""
    lines = client.get("/metrics").text.splitlines()
    series = 'panglot_requests_total{route="/predict",status="200"} '
    return sum(float(line.removeprefix(series)) for line in lines if line.startswith(series))
