"""Starts that are slow, wrong or keep failing."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from support.after import unharmed
from support.server import PACKAGES, panglot, serving, wait_until
from support.traffic import Gate, answers, ask_all, send

QUICK = ("--restart-delay", "0.1", "--restart-delay-max", "0.2")


def test_slow_load(tmp_path: Path) -> None:
    """While loading the server is alive, not ready, and says 503 with Retry-After; it does not start over."""
    gate = Gate(tmp_path / "gate")
    flags = ("--timeout", "1.5", "--kill-grace", "0.1", "--load-timeout", "60", *QUICK)
    with serving("fault_load", *flags, env={"FAULT_GATE": str(gate)}, ready=False) as server:
        wait_until(lambda: len(server.workers()) == 1)
        (worker,) = server.workers()
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            assert server.client.get("/v2/health/live").status_code == 200
            ready = server.client.get("/v2/health/ready")
            assert (ready.status_code, ready.json()) == (503, {"ready": False, "state": "loading"})
            (refused,) = ask_all(server, [{"id": 1}])
            assert (refused.status, refused.code) == (503, "loading")
            assert int(refused.headers["retry-after"]) >= 1
            time.sleep(0.1)
        gate.open()
        server.wait_ready()
        assert [process.pid for process in server.workers()] == [worker.pid]
        with unharmed(server, 3, 3):
            pass


def test_load_that_never_ends(tmp_path: Path) -> None:
    """Before the first ready, a load that hangs ends the server with exit code 3 at the load timeout."""
    done = panglot(
        "serve", str(PACKAGES / "fault_load"), "--port", "0", "--load-timeout", "1",
        env={"FAULT_GATE": str(tmp_path / "never")}, seconds=30,
    )  # fmt: skip
    assert done.returncode == 3
    assert "not loaded after 1 s" in last_line(done.stderr)


WRONG_SCRIPTS = {
    "syntax error": ({"model.py": "import os\n\ndef predict(request:\n"}, r"model.py:3: syntax error"),
    "import error": (
        {"model.py": "import json\nimport no_such_module\n\ndef predict(request): ...\n"},
        "model.py:2: the package 'no_such_module' is not installed",
    ),
    "import that raises": (
        {"model.py": "import helper\n\ndef predict(request): ...\n", "helper.py": "\n\n1 / 0\n"},
        "helper.py:3: ",
    ),
    "name that does not exist": (
        {"model.py": "from json import no_such_name\n\ndef predict(request): ...\n"},
        "model.py:1: ",
    ),
    "no predict": ({"model.py": "def infer(request): ...\n"}, "model.py: there is no predict in it"),
    "no predict in the class": ({"model.py": "class Model:\n    def load(self): ...\n"}, "there is no predict in it"),
    "two candidates": (
        {"a.py": "def predict(request): ...\n", "b.py": "def predict(request): ...\n"},
        "a.py and b.py could both be the script",
    ),
    "too many arguments": (
        {"model.py": "\ndef predict(left, right): ...\n"},
        "model.py:2: predict(left, right) must take exactly one argument",
    ),
    "no argument in the class": (
        {"model.py": "class Model:\n    def predict_batch(self): ...\n"},
        "model.py:2: predict_batch(self) must take exactly one argument",
    ),
    "wrong signature found only by running": (
        {"model.py": "from helper import predict\n", "helper.py": "\n\ndef predict(): ...\n"},
        "helper.py:3: predict() must take exactly one argument",
    ),
    "load raises": (
        {"model.py": "class Model:\n    def load(self):\n        open('none.bin')\n    def predict(self, item): ...\n"},
        "model.py:3: ",
    ),
    "exits while importing": ({"model.py": "import sys\nsys.exit(0)\ndef predict(request): ...\n"}, "model.py:2: "),
    "crashes while importing": (
        {"model.py": "import ctypes\nctypes.string_at(0)\ndef predict(request): ...\n"},
        "was killed by SIGSEGV",
    ),
}


@pytest.mark.parametrize("name", WRONG_SCRIPTS)
def test_wrong_scripts(name: str, tmp_path: Path) -> None:
    """Exit code 3, quickly, with one last line that names the file, the line and the problem."""
    files, expected = WRONG_SCRIPTS[name]
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    done = panglot("serve", str(tmp_path), "--port", "0", seconds=15)
    assert done.returncode == 3, done.stderr
    assert last_line(done.stderr).startswith("error: ")
    assert expected in last_line(done.stderr)
    assert str(tmp_path) in last_line(done.stderr)


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_crash_loop_and_recovery(tmp_path: Path) -> None:
    """A script that no longer loads: 503 with Retry-After during the pauses, then recovery without help."""
    flag = tmp_path / "dies"
    # In the pause there has to be time for a request: one that comes after it is kept until the script loads again.
    flags = ("--restart-delay", "4", "--restart-delay-max", "4")
    with serving("fault_load", *flags, env={"FAULT_DIES": str(flag)}) as server, unharmed(server, 3, 3):
        flag.touch()
        server.workers()[0].kill()
        wait_until(lambda: not server.workers() and server.ready() == 503)
        wait_until(lambda: server.client.get("/v2/health/ready").json().get("state") == "back-off")
        refused = next(answer for answer in (ask_all(server, [4])[0] for _ in range(5)) if answer.status == 503)
        assert refused.code == "back_off"
        assert int(refused.headers["retry-after"]) >= 1
        assert server.client.get("/v2/health/live").status_code == 200
        flag.unlink()
        wait_until(lambda: server.ready() == 200)


def test_crash_loop_keeps_what_was_accepted(tmp_path: Path) -> None:
    """A request accepted before the script stopped loading is answered once it loads again."""
    flag = tmp_path / "dies"
    gate = Gate(tmp_path / "gate")
    with serving("fault_load", *QUICK, env={"FAULT_DIES": str(flag)}) as server, unharmed(server, 3, 3):
        accepted = [send(server, {"gate": str(gate), "id": id}) for id in range(4)]
        server.wait_log("predict waits")
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 4)
        flag.touch()
        gate.open()
        server.workers()[0].kill()
        server.wait_log("is started again in 0.2 s")
        flag.unlink()
        assert [answer.json()["id"] for answer in answers(server, accepted)] == [0, 1, 2, 3]


def test_crash_loop_outlasts_a_deadline(tmp_path: Path) -> None:
    """A request accepted before the pause, whose deadline comes in it, is told the same as those that come later."""
    flag = tmp_path / "dies"
    flags = ("--restart-delay", "60", "--restart-delay-max", "60")
    with serving("fault_load", *flags, env={"FAULT_DIES": str(flag)}) as server:
        accepted = send(server, {"gate": str(tmp_path / "gate"), "id": 1}, 6000)
        server.wait_log("predict waits")
        flag.touch()
        server.workers()[0].kill()
        server.wait_log("is started again in 60 s")
        for answer in answers(server, [accepted, send(server, 2)]):
            assert (answer.status, answer.code) == (503, "back_off")
            assert int(answer.headers["retry-after"]) > 10


def test_port_in_use(tmp_path: Path) -> None:
    """A port in use is one line and exit code 3, before the script is loaded."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refuses(tmp_path, f"127.0.0.1:{port}: address already in use", "--port", str(port))


@pytest.mark.parametrize("host", ["256.256.256.256", "no such host", "192.0.2.1"])
def test_bad_host(host: str, tmp_path: Path) -> None:
    """An address that cannot be listened on is one line and exit code 3, before the script is loaded."""
    refuses(tmp_path, host, "--port", "0", "--host", host, "--no-auth")


@pytest.mark.parametrize("port", ["65536", "-1", "http", "80.5"])
def test_bad_port(port: str, tmp_path: Path) -> None:
    """So is a port that is none."""
    refuses(tmp_path, "--port", "--port", port)


def refuses(folder: Path, words: str, *flags: str) -> None:
    (folder / "model.py").write_text("open('loaded', 'w')\n\ndef predict(request): ...\n")
    done = panglot("serve", str(folder), *flags, seconds=15)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert words in line
    assert not (folder / "loaded").exists()


def test_port_0_takes_a_free_one() -> None:
    """Port 0 is not an error: the log tells which port was taken."""
    with serving("fault_load") as first, serving("fault_load") as second:
        assert first.port != second.port
        assert first.predict(3).json() == second.predict(3).json() == 3
