"""A request that kills its worker costs nobody else an answer, however often it is repeated; after three deaths its
kind is refused for a while."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.after import unharmed
from support.server import Server, serving, wait_until
from support.traffic import Gate, answers, ask_all, send, send_as_batch

NORMAL, EXPECTED = {"id": 1}, {"id": 1, "twice": 2}
SINGLE, BATCH, OVERLAPPING = (f"fault_script/{name}.py" for name in ("single", "batch", "overlapping"))
POISON = {"id": 5, "op": "crash"}
SAME_LENGTH = {"id": 2, "x": 123456789}


def deaths(server: Server) -> float:
    return server.metric("panglot_worker_restarts_total", reason="died")


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_innocents_are_answered_while_poison_is_repeated(script: str) -> None:
    """A client repeats a deadly body; it costs three deaths in all, and every other request is answered."""
    with serving(script) as server, unharmed(server, NORMAL, EXPECTED):
        ended = threading.Event()
        with ThreadPoolExecutor(2) as threads:
            innocent = threads.submit(ask_innocently, server, ended)
            poisoned = [server.predict(POISON) for _ in range(20)]
            ended.set()
            statuses = innocent.result(60)
        assert set(statuses) == {200}, statuses
        codes = [(answer.status_code, answer.json()["error"]["code"]) for answer in poisoned]
        assert set(codes[:3]) <= {(500, "worker_died"), (422, "poisonous")}
        assert set(codes[3:]) == {(422, "poisonous")}
        assert deaths(server) <= 6
        server.wait_log("requests like .* have ended 3 workers and are refused for 600 s")
        assert server.metric("panglot_dropped_total", reason="poisonous") >= 17


def ask_innocently(server: Server, ended: threading.Event) -> Counter[int]:
    statuses: Counter[int] = Counter()
    with server.new_client() as client:
        while not ended.is_set() or statuses.total() < 10:
            for innocent in (NORMAL, SAME_LENGTH):
                answer = client.post("/predict", json=innocent)
                statuses[answer.status_code] += 1
            time.sleep(0.02)
    return statuses


def test_one_death_is_followed_by_no_refusals() -> None:
    """Whoever comes while a worker is replaced waits for the next one, also at the default pauses."""
    with serving(SINGLE) as server:
        for code in range(3):
            assert server.predict({"id": 5, "op": "vanish", "code": code}).status_code == 500
            assert [answer.status for answer in ask_all(server, [NORMAL] * 8)] == [200] * 8


def test_bodies_that_differ_are_other_requests() -> None:
    """What is refused is the very same request: route, query, content type and body."""
    with serving(SINGLE) as server:
        for _ in range(2):
            last = server.predict(POISON)
        assert last.status_code == 422
        assert server.predict(POISON, params={"a": "b"}).status_code == 500
        assert server.predict({"id": 6, "op": "crash"}).status_code == 500
        assert server.predict(POISON).status_code == 422
        assert server.predict(SAME_LENGTH).status_code == 200


def test_equal_requests_that_wait_are_refused_with_it() -> None:
    with serving(SINGLE) as server, unharmed(server, NORMAL, EXPECTED):
        codes = Counter(answer.code for answer in ask_all(server, [POISON] * 20))
        assert set(codes) == {"worker_died", "poisonous"}
        assert codes["worker_died"] <= 2
        assert deaths(server) <= 4


def test_an_answer_between_deaths_acquits(tmp_path: Path) -> None:
    """A request that kills only now and then is never refused."""
    (tmp_path / "model.py").write_text(
        "import os, pathlib\n"
        "def predict(item):\n"
        "    if pathlib.Path(item).exists():\n"
        "        os._exit(1)\n"
        "    return 3\n"
    )
    flag = tmp_path / "deadly"
    with serving(tmp_path) as server:
        for _ in range(4):
            flag.touch()
            assert server.predict(str(flag)).status_code == 500
            flag.unlink()
            assert server.predict(str(flag)).json() == 3


def test_deaths_from_outside_do_not_count(tmp_path: Path) -> None:
    """Whoever kills workers from outside makes no request poisonous."""
    with serving(SINGLE) as server:
        for number in range(3):
            gate = Gate(tmp_path / "gate")
            mark = len(server.lines)
            asked = send(server, gate.holding(7))
            for _ in range(2):
                server.wait_log(r"single/0 \| item 7 waits", after=mark)
                mark = len(server.lines)
                server.workers()[0].kill()
            assert [answer.code for answer in answers(server, [asked])] == ["worker_died"], number
        gate.open()
        assert ask_all(server, [gate.holding(7)])[0].status == 200


def test_batch_mates_do_not_count(tmp_path: Path) -> None:
    """Items that share a batch with poison are answered each time."""
    with serving(BATCH) as server:
        for number in range(3):
            mates = [{"id": 10, "op": "note"}, POISON, {"id": 11, "op": "note"}]
            one, guilty, other = answers(server, send_as_batch(server, Gate(tmp_path / str(number)), mates))
            assert (one.status, guilty.status, other.status) == (200, 500, 200)
        statuses = [answer.status for answer in ask_all(server, [POISON, {"id": 10, "op": "note"}])]
        assert statuses == [422, 200]


def test_it_is_refused_for_a_while() -> None:
    with serving(SINGLE, "--poison-deaths", "1", "--poison-time", "4") as server:
        assert server.predict(POISON).status_code == 422
        died = deaths(server)
        assert server.predict(POISON).status_code == 422
        assert deaths(server) == died
        wait_until(lambda: server.predict(POISON) and deaths(server) > died)


def test_it_can_be_turned_off() -> None:
    with serving(SINGLE, "--poison-deaths", "0") as server:
        assert [server.predict(POISON).status_code for _ in range(4)] == [500] * 4


def test_a_reload_forgets(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text("import os\ndef predict(item):\n    os._exit(1)\n")
    with serving(tmp_path) as server:
        assert [server.predict(3).status_code for _ in range(3)] == [500, 422, 422]
        script.write_text("def predict(item):\n    return item + 1  # mended\n")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.predict(3).status_code == 200)


def test_a_reload_that_comes_while_no_worker_is_ready(tmp_path: Path) -> None:
    """A worker that was loading the old version when the reload was asked for does not stay."""
    script = tmp_path / "model.py"
    text = "import time\nVERSION = {}\ntime.sleep({})\ndef predict(item):\n    return VERSION\n"
    script.write_text(text.format(1, 0))
    with serving(tmp_path) as server:
        script.write_text(text.format(2, 1.5))
        mark = len(server.lines)
        server.workers()[0].kill()
        wait_until(lambda: len(server.workers()) == 1)
        time.sleep(0.7)
        script.write_text(text.format(3, 0))
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("SIGHUP", after=mark)
        wait_until(lambda: server.predict(0).json() == 3, 20, lambda: server.log)
