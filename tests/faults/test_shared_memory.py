"""Whatever dies while bodies lie in shared memory: each answer belongs to its request, and nothing is left behind."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from support.server import Server, lives, serving, wait_until
from support.traffic import ask_all, times
from support.wire import Wire

SIZES = (100, 5000, 16383, 16384, 16385, 40_000, 65536, 65537, 200_000, 1_100_000)
QUICK = ("--restart-delay", "0.05", "--restart-delay-max", "0.1", "--max-batch", "8", "--poison-deaths", "0")


class Clients(threading.Thread):
    """Sends bodies of all sizes, gives some of them up, and compares what the script saw of the others."""

    def __init__(self, server: Server, seed: int, count: int) -> None:
        super().__init__()
        self.server, self.chance, self.count = server, random.Random(seed), count
        self.right, self.wrong, self.failed = 0, [""][:0], Counter[str]()

    def run(self) -> None:
        try:
            while self.count > 0:
                with Wire(self.server, patience=90) as client:
                    self.talk(client)
        except AssertionError as error:
            self.wrong.append(str(error))

    def talk(self, client: Wire) -> None:
        for _ in range(20):
            self.count -= 1
            body = self.chance.randbytes(self.chance.choice(SIZES))
            echo = self.chance.random() < 0.2
            kind = self.chance.choice(["echo" if echo else "y", "keep", "view"]) if self.chance.random() < 0.3 else "y"
            lines = ("POST /predict HTTP/1.1", "Host: localhost", f"Content-Type: x/{kind}")
            head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()
            if self.chance.random() < 0.1:
                client.send(head + body[: self.chance.randrange(len(body))])
                return
            client.send(head + body)
            reply = client.reply()
            if reply.status != 200:
                self.failed[f"{reply.status} {json.loads(reply.body)['error']['code']}"] += 1
                if reply.headers.get("connection") == "close":
                    return
                continue
            own = hashlib.blake2b(body, digest_size=16).hexdigest()
            good = reply.body == body if kind == "echo" else own.encode() in reply.body
            self.right += good
            if not good:
                self.wrong.append(f"{kind} of {len(body)}: {reply.body[:100]!r}")


def harm(server: Server, chance: random.Random) -> None:
    """Kill a worker, stop one for a moment, or load the script anew."""
    workers = server.workers()
    if not workers:
        return
    victim = chance.choice(workers).pid
    what = chance.randrange(4)
    try:
        if what < 2:
            os.kill(victim, signal.SIGKILL)
        elif what == 2:
            os.kill(victim, signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(victim, signal.SIGCONT)
        else:
            (Path(server.package) / "script.py").touch()
    except ProcessLookupError:
        pass


def all_have_let_go(server: Server, asked: set[int]) -> bool:
    """Ask for what scripts keep, which they let go then. Whether every worker that runs the script has been asked."""
    for answer in ask_all(server, [{"check": 1}] * 8, 60):
        assert answer.status == 200, answer
        assert answer.json()["wrong"] == []
        asked.add(answer.json()["pid"])
    workers = server.client.get("/status.json").json()["workers"]
    return asked >= {worker["pid"] for worker in workers if worker["pool"] != "preprocess"}


def shared_files(pid: int) -> int:
    """How many open memory files of ours a process has."""
    found = 0
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += "panglot-buffers" in str(fd.readlink())
        except FileNotFoundError:
            continue
    return found


@pytest.mark.timeout(times(120, 7200))
@pytest.mark.parametrize(
    "flags", [(), ("--pools", "preprocess=1,inference=2"), ("--max-batch", "2")], ids=["one pool", "a row", "ahead"]
)
def test_nothing_is_mixed_up_or_left_when_workers_die(flags: tuple[str, ...], tmp_path: Path) -> None:
    package = tmp_path / "body_digests"
    package.mkdir()
    (package / "script.py").write_text((Path(__file__).parents[1] / "packages/body_digests/script.py").read_text())
    with serving(str(package), "--workers", "2", *QUICK, "--reload", *flags) as server:
        server.package = package  # type: ignore[attr-defined]
        wanted = 3 if "--pools" in flags else 2

        def is_whole() -> bool:
            return server.ready() == 200 and len(server.workers()) == wanted

        wait_until(is_whole, 60)
        before = shared_files(server.process.pid), psutil.Process(server.process.pid).num_fds()
        clients = [Clients(server, seed, times(40, 10_000)) for seed in range(10)]
        for client in clients:
            client.start()
        chance = random.Random(7)
        while any(client.is_alive() for client in clients):
            time.sleep(chance.uniform(0.1, 0.5))
            harm(server, chance)
        failed = sum((client.failed for client in clients), Counter[str]())
        right = sum(client.right for client in clients)
        assert [wrong for client in clients for wrong in client.wrong] == [], (right, failed, server.log[-5000:])
        assert right > failed.total(), (right, failed)
        wait_until(is_whole, 60, lambda: server.log[-5000:])
        asked: set[int] = set()
        wait_until(lambda: all_have_let_go(server, asked), 60)
        nothing_is_left(server, *before)
    for ours in ("Traceback", "broke the protocol", "the server itself failed", "could not be"):
        assert ours not in server.log


def nothing_is_left(server: Server, files: int, descriptors: int) -> None:
    """Neither bytes nor shared memory nor open files."""
    names = (
        "request_memory_bytes",
        "requests_in_progress",
        "shared_bodies",
        "slots_in_use",
        "queue_ahead",
        "shared_memory_bytes",
    )
    for name in (f"panglot_{name}" for name in names):
        wait_until(lambda name=name: server.metric(name) == 0, 60, lambda name=name: f"{name} {server.metric(name)}")
    pid = server.process.pid
    wait_until(lambda: shared_files(pid) <= files, 60, lambda: f"{shared_files(pid)} memory files, {files} before")
    front = psutil.Process(pid)
    wait_until(lambda: front.num_fds() <= descriptors + 2, 60, lambda: f"{front.num_fds()} fds, {descriptors} before")


def test_a_worker_that_stands_still_is_ended_and_its_memory_is_used_again(tmp_path: Path) -> None:
    """Not before: until it is dead it could look at the body, and write the answer it was lent room for."""
    flags = ("--run-timeout", "1", "--timeout", "3", "--kill-grace", "0.2", "--no-rerun", "--request-memory", "2MiB")
    body = random.Random(8).randbytes(900_000)
    with serving("body_digests", *QUICK, *flags) as server, Wire(server, patience=60) as client:
        before = server.workers()[0]
        assert server.client.post("/predict", content=body, headers={"content-type": "x/echo"}).content == body
        before.suspend()
        wait_until(lambda: before.status() == psutil.STATUS_STOPPED)
        client.send(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: x/echo\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body) + body)  # fmt: skip
        wait_until(lambda: server.metric("panglot_shared_bodies") == 1)
        assert client.reply().status == 504
        wait_until(lambda: server.metric("panglot_shared_bodies") == 0, 60)
        assert not lives(before), "a body is let go when its worker is dead"
        for _ in range(6):
            assert server.client.post("/predict", content=body, headers={"content-type": "x/echo"}).content == body


def test_a_front_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    with serving("body_digests", "--workers", "2") as server:
        wait_until(lambda: len(server.workers()) == 2)
        workers = server.workers()
        with Wire(server) as client:
            client.send(
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: x/y\r\nContent-Length: 900000\r\n\r\n"
            )
            client.send(bytes(400_000))
            server.process.kill()
            server.process.wait()
        wait_until(lambda: not any(map(lives, workers)))


def test_memory_that_is_shared_is_not_the_workers_own() -> None:
    """A worker that looks at bodies does not count as one that has grown."""
    with serving("body_digests", "--worker-memory", "300MiB", "--max-body", "64MiB") as server:
        pid = server.workers()[0].pid
        body = bytes(50 << 20)
        for _ in range(12):
            assert server.client.post("/predict", content=body, headers={"content-type": "x/y"}).status_code == 200
        time.sleep(1.5)
        assert [worker.pid for worker in server.workers()] == [pid]
