"""A server that a test ends with must be at rest: what the check finds, and what it does not blame on us."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

import pytest

from support import well
from support.server import serving, wait_until
from support.well import Left

LOSES_REPLIES = """
import sys

if "serve" in sys.orig_argv:
    from panglot.engine.workers import worker
    from panglot_worker.line import wire

    right = worker.Worker.on_frame

    def wrong(self, kind, count, payload):
        if kind != wire.REPLY:
            right(self, kind, count, payload)

    worker.Worker.on_frame = wrong
"""
SLEEPS = "import time\n\ndef predict(seconds):\n    time.sleep(seconds)\n"
FRONT, WORKER, SCRIPT = "/opt/src/panglot/cli.py", "/opt/src/panglot_worker/line/port.py", "/opt/script/model.py"
LIBRARY, PACKAGE = "/opt/lib/python3.8/threading.py", "/opt/lib/python3.8/site-packages/own/own.py"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(well, "PATIENCE", 1.0)


def test_a_worker_whose_answers_nobody_reads_is_found(tmp_path: Path, impatient: None) -> None:
    (tmp_path / "sitecustomize.py").write_text(LOSES_REPLIES)
    (tmp_path / "model.py").write_text(SLEEPS)
    flags = ("--timeout", "0.5", "--run-timeout", "60")
    environment = {"PYTHONPATH": str(tmp_path)}
    with serving(tmp_path / "model.py", *flags, env=environment, leaves=Left.REQUESTS) as server:
        assert server.predict(0).status_code == 504
        wait_until(lambda: well.stuck_workers(server.client))
        with pytest.raises(AssertionError, match=r"worker \d+': 'ready, has 1 calls and waits"):
            well.check(server)


def test_a_script_may_go_on_with_a_call_that_nobody_waits_for(tmp_path: Path, impatient: None) -> None:
    (tmp_path / "model.py").write_text(SLEEPS)
    with serving(tmp_path, "--timeout", "0.5", "--run-timeout", "600", "--drain", "0") as server:
        assert server.predict(600).status_code == 504


def test_what_a_test_leaves_is_excused_and_nothing_else(impatient: None) -> None:
    upload = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nxx"
    for leaves in Left:
        found = contextlib.nullcontext() if leaves is Left.REQUESTS else pytest.raises(AssertionError, match="memory")
        with found, serving("function", "--drain", "0", leaves=leaves) as server:
            lasting = socket.create_connection(("127.0.0.1", server.port))
            lasting.sendall(upload)
            wait_until(lambda server=server: server.metric("panglot_request_memory_bytes") > 0)
        lasting.close()


def traceback(*files: str, code: str = "run()", error: str = "KeyError: 1") -> list[str]:
    frames = (text for file in files for text in (f'  File "{file}", line 7, in run', f"    {code}"))
    return ["Traceback (most recent call last):", *frames, error]


def test_tracebacks_that_end_in_our_files_are_ours_unless_a_script_called_them() -> None:
    faults: dict[tuple[str, ...], bool] = {
        (FRONT,): True,
        (LIBRARY, FRONT): True,
        (LIBRARY, WORKER): True,
        (WORKER, LIBRARY, WORKER): True,
        (WORKER, LIBRARY): False,
        (WORKER, SCRIPT): False,
        (SCRIPT, WORKER): False,
        (WORKER, SCRIPT, WORKER): False,
        (WORKER, PACKAGE, WORKER): False,
    }
    for files, is_ours in faults.items():
        for form, lines in logs(traceback(*files)).items():
            assert bool([*well.own_tracebacks(["12:00:00 begins", *lines])]) is is_ours, (form, files)


def logs(plain: list[str]) -> dict[str, list[str]]:
    """A traceback as it is in a log: told by the front, and printed by a worker."""
    entry, script = {"message": "failed", "traceback": "\n".join(plain)}, {"source": "script", "worker": 0}
    return {
        "told": ["12:00:00 error: failed", *(" " * 9 + line for line in plain), "12:00:01 and so on"],
        "told in JSON": [json.dumps({"time": "12:00", "level": "error", "source": "engine", **entry}), "KeyError: x"],
        "printed": [f"12:00:00 p/0 | {line}" for line in plain],
        "among others": [text for line in plain for text in (f"12:00:00 p/0 | {line}", "12:00:00 p/1 | words")],
        "printed in JSON": [json.dumps({"time": "12:00", "message": line, **script}) for line in plain],
    }


@pytest.mark.parametrize(
    ("code", "error", "is_ours"),
    [
        ("table[1]", "KeyError: 1", True),
        ("raise KeyError(1)", "KeyError: 1", False),
        ("raise WrongResults(3)", "WrongResults: 3 for 4 items", False),
        ("return self.predict(item)", "TypeError: predict() takes 0 arguments", False),
        ("pickle.load(file)", "AttributeError: Can't get attribute 'Net'", False),
        ("bytes(size)", "MemoryError", False),
    ],
)
def test_what_a_worker_refuses_is_no_fault_of_ours(code: str, error: str, is_ours: bool) -> None:
    for form, lines in logs(traceback(WORKER, code=code, error=error)).items():
        assert bool([*well.own_tracebacks(lines)]) is is_ours, form


def test_what_stands_for_a_platforms_library_fails_as_that_does() -> None:
    library = WORKER.replace(WORKER.partition("/panglot_worker/")[2], "dialects/acme/platform/always/acme/handler.py")
    for lines in logs(traceback(WORKER, library)).values():
        assert not [*well.own_tracebacks(lines)]
