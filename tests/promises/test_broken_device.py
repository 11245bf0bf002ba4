"""A worker in which nothing can succeed any more is replaced: at once the first time, then later and later."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.server import Server, serving, wait_until
from support.traffic import answers, send

ONE = """
import sys
import types

torch = types.ModuleType("torch")
exec("class AcceleratorError(RuntimeError): pass", torch.__dict__)
broken = False


class OfTheScript(Exception):
    pass


def predict(item):
    global broken
    broken = broken or item in ("break", "break always")
    if broken and item != "spared":
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")
    if item == "fail":
        raise OfTheScript
    return item
"""
MANY = ONE.replace("def predict(item):", "def predict_one(item):") + (
    "\n\ndef predict_batch(items):\n    return [predict_one(item) for item in items]\n"
)
ASYNC = ONE.replace("def predict(item):", "def predict_one(item):") + (
    "\n\nimport asyncio\n\nasync def predict(item):\n    await asyncio.sleep(0.05)\n    return predict_one(item)\n"
)


def package(folder: Path, script: str) -> Path:
    (folder / "model.py").write_text(script)
    return folder


def pid(server: Server) -> list[int]:
    return [process.pid for process in server.workers()]


@pytest.mark.parametrize("script", [ONE, MANY, ASYNC], ids=["one", "many", "async"])
def test_a_device_that_stays_broken(script: str, tmp_path: Path) -> None:
    """Of 200 requests after the fault a few fail, not all; the worker has an obituary."""
    with serving(package(tmp_path, script)) as server:
        (first,) = pid(server)
        assert server.predict("break").status_code == 500
        statuses = [server.predict(number).status_code for number in range(50)]
        assert statuses.count(500) <= 1, statuses
        assert set(statuses) <= {200, 500}
        server.wait_log(r"worker 0 is replaced: its device stays broken \(AcceleratorError\)")
        wait_until(lambda: first not in pid(server))
        # It has ended; that the front has noticed comes a moment later.
        wait_until(lambda: server.metric("panglot_worker_restarts_total", reason="sick") == 1)


def test_what_waits_behind_it_is_not_lost(tmp_path: Path) -> None:
    """Requests already in the broken worker run in the next one."""
    slow = ONE.replace("    if broken and", "    import time\n    time.sleep(0.02)\n    if broken and")
    with serving(package(tmp_path, slow)) as server:
        sent = [send(server, "break")]
        time.sleep(0.01)
        sent += [send(server, number) for number in range(30)]
        statuses = [answer.status for answer in answers(server, sent)]
        assert statuses[0] == 500
        assert statuses.count(500) <= 2, statuses


def test_then_later_and_later(tmp_path: Path) -> None:
    """A device that breaks in every new worker: the pauses grow, and requests are told to come back."""
    with serving(package(tmp_path, ONE), "--restart-delay", "1", "--restart-delay-max", "2") as server:
        seen = set()
        ends = time.monotonic() + 20
        while "back_off" not in seen and time.monotonic() < ends:
            seen.add(server.predict("break always").json()["error"]["code"])
            # Whoever comes before the pause has begun waits for its end instead.
            time.sleep(0.2)
        assert seen == {"script_error", "back_off"}
        server.wait_log("worker 0 is started again in")
        wait_until(lambda: server.predict("spared").status_code == 200, 20)


@pytest.mark.parametrize("script", [ONE, MANY, ASYNC], ids=["one", "many", "async"])
def test_the_same_failure_again_and_again(script: str, tmp_path: Path) -> None:
    """Whatever the reason, a new worker may do better; the old one serves on until that is ready."""
    with serving(package(tmp_path, script), "--sick-after", "5") as server:
        (first,) = pid(server)
        for _ in range(4):
            assert server.predict("fail").status_code == 500
        assert server.predict(3).json() == 3
        for _ in range(4):
            assert server.predict("fail").status_code == 500
        assert pid(server) == [first]
        assert server.predict("fail").status_code == 500
        server.wait_log("worker 0: 5 calls in a row have raised OfTheScript and none has succeeded")
        wait_until(lambda: first not in pid(server))
        (second,) = pid(server)
        assert [server.predict("fail").status_code for _ in range(20)] == [500] * 20
        assert server.predict(3).json() == 3
        assert pid(server) == [second]


def test_requests_that_are_wrong_are_nobodys_sickness(tmp_path: Path) -> None:
    script = "from panglot import ClientError\ndef predict(item):\n    raise ClientError('no')\n"
    with serving(package(tmp_path, script), "--sick-after", "3") as server:
        (first,) = pid(server)
        assert [server.predict(number).status_code for number in range(20)] == [400] * 20
        assert pid(server) == [first]
