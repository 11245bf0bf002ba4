"""What a worker claims of its frames costs the front nothing: more than its calls may return ends it, and memory is
taken only for what arrives."""

from __future__ import annotations

import re
from pathlib import Path

import psutil

from support.server import Server, serving
from support.traffic import ask_all

MIB = 1024 * 1024
SCRIPT = """
import gc
import time

from panglot_worker.line import wire
from panglot_worker.line.port import Port

PORT = next(thing for thing in gc.get_objects() if isinstance(thing, Port))


class Model:
    def predict(self, item):
        if "length" in item:
            PORT.send([wire.HEADER.pack(item["length"], item["kind"], 0, item["count"], PORT.generation)])
            time.sleep(item["seconds"])
        if "size" in item:
            return b"x" * item["size"], "application/octet-stream"
        return item
"""
QUICK = ("--restart-delay", "0.1", "--restart-delay-max", "0.2")


def peak(server: Server) -> int:
    """The most memory the front has ever held."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else psutil.Process(server.process.pid).memory_info().rss


def test_a_frame_longer_than_any_answer_ends_its_worker(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path, *QUICK) as server:
        assert server.predict({"id": 1}).json() == {"id": 1}
        before = peak(server)
        for number, (kind, count) in enumerate([(6, 1), (6, 65535), (10, 0), (77, 1)]):
            mark = len(server.lines)
            item = {"id": number, "length": 4294967040, "kind": kind, "count": count, "seconds": 30}
            (answer,) = ask_all(server, [item])
            assert (answer.status, answer.code) == (500, "worker_died")
            server.wait_log(r"broke the protocol: a \w+ frame of 4294967040 bytes, where at most \d+ may", after=mark)
        assert server.predict({"id": 2}).json() == {"id": 2}
        assert peak(server) - before < 32 * MIB


def test_a_claim_that_is_allowed_takes_no_memory_before_it_is_filled(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path, "--max-output", "2GiB", "--timeout", "2", "--kill-grace", "0.5", *QUICK) as server:
        assert server.predict({"id": 1}).json() == {"id": 1}
        before = peak(server)
        item = {"id": 1, "length": 2000 * MIB, "kind": 6, "count": 1, "seconds": 30}
        assert server.predict(item).status_code == 504
        server.wait_log("one call ran longer than 2 s")
        assert server.predict({"id": 2}).json() == {"id": 2}
        assert peak(server) - before < 32 * MIB


def test_large_answers_arrive_whole_and_too_large_ones_are_refused(tmp_path: Path) -> None:
    """Up to the limit, whatever the frame's way of being read; beyond it that request fails and the worker lives."""
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path, "--max-output", "48MiB") as server:
        (worker,) = server.workers()
        for size in (300_000, 31 * MIB, 33 * MIB, 48 * MIB):
            assert server.predict({"size": size}).content == b"x" * size
        answer = server.predict({"size": 48 * MIB + 1})
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "bad_result")
        assert [process.pid for process in server.workers()] == [worker.pid]


MEGFLOW_LIKE = """
class Model:
    def predict(self, item):
        for size in item:
            yield "x" * size
"""


def test_a_part_of_an_answer_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MEGFLOW_LIKE)
    with serving(tmp_path, "--max-output", "1MiB") as server:
        (worker,) = server.workers()
        assert server.predict([5, 1000]).status_code == 200
        answer = server.predict([2 * MIB])
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "script_error")
        assert server.predict([5]).status_code == 200
        assert [process.pid for process in server.workers()] == [worker.pid]
