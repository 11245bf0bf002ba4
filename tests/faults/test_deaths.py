"""Workers that die: only the guilty request fails, and it fails at once.

The timeouts of these servers are far beyond what the tests allow an answer to take.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import resource
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from support.after import unharmed
from support.descent import children, zombies
from support.pool import Lend
from support.ports import free_port
from support.server import Server, lives, serving, wait_until
from support.traffic import Answer, Caller, Gate, answers, ask_all, occupy, rounds, send, send_as_batch, stopped, times

NORMAL, EXPECTED = {"id": 1}, {"id": 1, "twice": 2}
SINGLE, BATCH, OVERLAPPING = (f"fault_script/{name}.py" for name in ("single", "batch", "overlapping"))
QUICK = ("--restart-delay", "0.1", "--restart-delay-max", "0.2")


def assert_own(answered: list[Answer], ids: list[int]) -> None:
    """Every request got its own, right answer."""
    assert [answer.status for answer in answered] == [200] * len(ids), [answer.body for answer in answered]
    assert [answer.json() for answer in answered] == [{"id": id, "twice": 2 * id} for id in ids]


def kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def test_worker_killed_in_mid_batch(tmp_path: Path, lend: Lend) -> None:
    """All four items of a batch whose worker is killed are answered, and soon."""
    with lend(BATCH, *QUICK) as server:
        for number, chance in enumerate(rounds()):
            with unharmed(server, NORMAL, EXPECTED):
                mark = len(server.lines)
                # All wait for the gate: however late we learn that the batch has begun, it has not ended.
                running = Gate(tmp_path / f"running{number}")
                # Others each time: the words of the second run of those before may be heard late.
                ids = range(10 + 4 * number, 14 + 4 * number)
                sent = send_as_batch(server, Gate(tmp_path / str(number)), [running.holding(id) for id in ids])
                server.wait_log(f"item {ids[0]} waits", after=mark)
                time.sleep(chance.uniform(0, 0.1))
                kill(server.workers()[0])
                running.open()
                assert_own(answers(server, sent), list(ids))
                server.wait_log(r"was killed by SIGKILL; it held 4 requests", after=mark)
        assert server.metric("panglot_reruns_total", reason="worker_died") == 4 * len(rounds())


def test_segfault(lend: Lend) -> None:
    """A segfault is a 500 at once; the crash trace is in the log and not in the answer."""
    with lend(SINGLE, "--workers", "2", *QUICK) as server:
        for number, _ in enumerate(rounds()):
            with unharmed(server, NORMAL, EXPECTED):
                mark = len(server.lines)
                # Another body each time: the same would soon be refused.
                crash = {"id": 5, "op": "crash", "number": number}
                guilty, *others = ask_all(server, [crash, *({"id": id} for id in range(10, 20))])
                assert (guilty.status, guilty.code) == (500, "worker_died")
                assert_own(others, list(range(10, 20)))
                server.wait_log("Fatal Python error: Segmentation fault", after=mark)
                server.wait_log(r"harm\.py.*in crash", after=mark)
                assert b"Segmentation" not in guilty.body
                assert b"harm.py" not in guilty.body


def test_fatal_signals(lend: Lend) -> None:
    """A script that dies of a signal gives its own request a 500, and the log names the signal."""
    with lend(SINGLE, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTERM"):
            (guilty,) = ask_all(server, [{"id": 5, "op": "signal", "signal": name}])
            assert (guilty.status, guilty.code) == (500, "worker_died")
            server.wait_log(f"was killed by {name}")
            server.wait_ready()


ENDS = {
    "os._exit(0)": ({"op": "vanish", "code": 0}, "worker_died"),
    "os._exit(7)": ({"op": "vanish", "code": 7}, "worker_died"),
    "SystemExit": ({"op": "leave"}, "script_error"),
    "KeyboardInterrupt": ({"op": "interrupt"}, "script_error"),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_script_ends_the_process(how: str, lend: Lend) -> None:
    """Ending the process costs the request that did it, and nobody else."""
    harm, code = ENDS[how]
    with lend(SINGLE, *QUICK) as server:
        for number, _ in enumerate(rounds()):
            with unharmed(server, NORMAL, EXPECTED):
                before = server.workers()[0].pid
                end = {"id": 5, "number": number, **harm}
                guilty, *others = ask_all(server, [end, *({"id": id} for id in range(10, 16))])
                assert (guilty.status, guilty.code) == (500, code)
                assert_own(others, list(range(10, 16)))
                wait_until(lambda pid=before: pid not in [worker.pid for worker in server.workers()])


@pytest.mark.parametrize("how", ENDS)
def test_the_script_ends_the_process_inside_a_batch(how: str, tmp_path: Path, lend: Lend) -> None:
    """The batch-mates of an item that ends the process are answered."""
    harm, code = ENDS[how]
    with lend(BATCH, *QUICK) as server:
        for number, _ in enumerate(rounds()):
            with unharmed(server, NORMAL, EXPECTED):
                items = [{"id": 10}, {"id": 5, "number": number, **harm}, {"id": 11}, {"id": 12}]
                one, guilty, *others = answers(server, send_as_batch(server, Gate(tmp_path / str(number)), items))
                assert (guilty.status, guilty.code) == (500, code)
                assert_own([one, *others], [10, 11, 12])


def test_killed_while_writing_its_answer(tmp_path: Path, lend: Lend) -> None:
    """Half an answer is dropped, for good; the request is run again; the other worker never notices."""
    size = 8_000_000
    with lend(SINGLE, "--workers", "2", *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        for number, chance in enumerate(rounds(5)):
            gate = Gate(tmp_path / str(number))
            # A worker that starts at the same time wakes up too, and one more would be there at the second look.
            wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
            mark = len(server.lines)
            # Another each time: the words of the second run of the one before may be heard late.
            id = 1 + number % 250
            asked = send(server, {"id": id, "op": "large", "size": size, "gate": str(gate)})
            server.wait_log(f"item {id} waits", after=mark)
            busy = writer(server)
            with stopped(server):
                gate.open()
                wait_until(Path(f"{gate}.passed").exists)
                time.sleep(chance.uniform(0.1, 0.2))
                kill(busy)
            (answer,) = answers(server, [asked])
            assert (answer.status, answer.body) == (200, bytes([id]) * size)
            assert_own(ask_all(server, [{"id": 8}, {"id": 9}]), [8, 9])


def writer(server: Server) -> psutil.Process:
    """The worker that runs the only request there is: it is the one that wakes up to look for its gate."""
    moved = {process.pid: process.num_ctx_switches().voluntary for process in server.workers()}
    time.sleep(0.2)
    return max(server.workers(), key=lambda process: process.num_ctx_switches().voluntary - moved[process.pid])


def test_killed_at_any_moment_of_a_large_answer(tmp_path: Path, lend: Lend) -> None:
    """Wherever in its answer a worker is killed, the client gets a whole one."""
    size = 8_000_000
    with lend(SINGLE, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        for number, chance in enumerate(rounds(8)):
            gate = Gate(tmp_path / str(number))
            mark = len(server.lines)
            # Another each time: the words of the second run of the one before may be heard late.
            id = 1 + number % 250
            asked = send(server, {"id": id, "op": "large", "size": size, "gate": str(gate)})
            server.wait_log(f"item {id} waits", after=mark)
            (worker,) = server.workers()
            gate.open()
            wait_until(Path(f"{gate}.passed").exists)
            time.sleep(chance.uniform(0, 0.01))
            kill(worker)
            (answer,) = answers(server, [asked])
            assert (answer.status, answer.body) == (200, bytes([id]) * size)
            wait_until(
                lambda deaths=number + 1: server.metric("panglot_worker_restarts_total", reason="died") == deaths
            )


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_crash_while_idle(script: str, lend: Lend) -> None:
    """A request that arrives around the death of an idle worker waits for the next one; it does not fail."""
    with lend(script, *QUICK) as server:
        for chance in rounds(2):
            with unharmed(server, NORMAL, EXPECTED):
                kill(server.workers()[0])
                time.sleep(chance.choice((0, 0.002, 0.02, 0.2)))
                assert_own(ask_all(server, [{"id": id} for id in range(10, 20)]), list(range(10, 20)))


def test_all_workers_die_together_while_idle(lend: Lend) -> None:
    """Requests that arrive while no worker is left wait for the first new one."""
    with lend(SINGLE, "--workers", "2", *QUICK) as server:
        for _ in rounds():
            with unharmed(server, NORMAL, EXPECTED):
                kill_all_together(server)
                assert_own(ask_all(server, [{"id": id} for id in range(10, 30)]), list(range(10, 30)))


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_all_workers_die_together_while_busy(script: str, lend: Lend) -> None:
    """No accepted request is lost, neither those that ran nor those that waited."""
    with lend(script, "--workers", "2", *QUICK) as server:
        for chance in rounds():
            with unharmed(server, NORMAL, EXPECTED):
                ids = list(range(10, 22))
                sent = [send(server, {"id": id, "op": "sleep", "seconds": 0.1}) for id in ids]
                wait_until(lambda: server.metric("panglot_requests_in_progress") >= 4)
                time.sleep(chance.uniform(0, 0.1))
                kill_all_together(server)
                assert_own(answers(server, sent), ids)


def kill_all_together(server: Server) -> None:
    """The front learns of all deaths in one moment, so that nothing is run again by a worker that dies next."""
    with stopped(server):
        workers = server.workers()
        for worker in workers:
            kill(worker)
        wait_until(lambda: not any(map(lives, workers)))


@pytest.mark.parametrize("doing", ["idle", "hold_gil", "loading"])
def test_main_process_killed(doing: str, tmp_path: Path) -> None:
    """All children and grandchildren end by themselves, the port is free, and a restart works."""
    for number, _ in enumerate(rounds(1, 20)):
        gate = Gate(tmp_path / f"{doing}{number}")
        load = doing == "loading"
        script = "fault_load" if load else SINGLE
        port = str(free_port())
        server = start(script, "--port", port, "--workers", "2", *QUICK, env={"FAULT_GATE": str(gate)}, ready=not load)
        if load:
            wait_until(lambda server=server: len(server.workers()) == 1)
        else:
            ask_all(server, [{"id": id, "op": "children"} for id in range(6)])
            wait_until(lambda server=server: len(server.family()) == len(server.fronts()) + 2 + 6 * 3)
        if doing == "hold_gil":
            send(server, {"id": 5, "op": "hold_gil"}).add_done_callback(lambda future: future.exception())
            server.wait_log("holds the interpreter")
        family = server.family()
        server.stop(signal.SIGKILL)
        # The kernel kills whoever has begun; a worker whose interpreter is still starting finds out by itself then.
        wait_until(lambda family=family: not any(map(lives, family)), message=lambda: "children outlive the server")
        assert is_free(server.port)
        again = start(SINGLE, "--port", port, *QUICK)
        assert again.port == server.port
        assert again.predict(NORMAL).json() == EXPECTED
        assert again.stop() == 0


def start(script: str, *flags: str, env: dict[str, str] | None = None, ready: bool = True) -> Server:
    from support.server import PACKAGES

    server = Server(PACKAGES / script, *flags, env=env)
    return server.wait_ready() if ready else server


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
    return True


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_restart_storm(script: str, lend: Lend) -> None:
    """While workers are killed again and again under load, every request is answered, nearly all with success."""
    chance = random.Random(94)
    with lend(script, "--workers", "2", *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        ended = threading.Event()
        with ThreadPoolExecutor(8) as threads:
            asking = [threads.submit(ask_until, server, ended, 1000 * number) for number in range(8)]
            for _ in range(times(8, 1500)):
                time.sleep(chance.uniform(0.1, 0.3))
                # On a starved machine none would come up between two kills: requests would wait, or be killed twice.
                wait_until(lambda: server.metric("panglot_workers", state="ready") == 2, 60)
                for worker in server.workers()[:1]:
                    kill(worker)
            ended.set()
            statuses = Counter(itertools.chain(*(future.result(60) for future in asking)))
        assert set(statuses) <= {200, 500, 503}, statuses
        # On a starved machine workers hardly come up between the kills, and few requests are asked at all.
        assert statuses.total() - statuses[200] <= max(2, 0.1 * statuses.total()), statuses
        front = server.process.pid
        # The last of the killed may not have been waited for yet.
        wait_until(lambda: not zombies(front), message=lambda: f"nobody waited for {zombies(front)}")


def ask_until(server: Server, ended: threading.Event, first: int) -> list[int]:
    """Ask one after the other; the status of each answer, which must be one's own where it is 200."""
    statuses = []
    with Caller(server) as caller:
        for id in itertools.count(first):
            if ended.is_set():
                return statuses
            answer = caller.post({"id": id, "op": "sleep", "seconds": 0.01})
            assert answer.status != 200 or answer.json() == {"id": id, "twice": 2 * id}
            statuses.append(answer.status)
    return statuses


def test_children_of_a_dead_worker_die_with_it(lend: Lend) -> None:
    """What a script started does not outlive its worker."""
    with lend(SINGLE, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        ask_all(server, [{"id": 5, "op": "children"}])
        (worker,) = server.workers()
        wait_until(lambda: len(children(worker, recursive=True)) == 3)
        started = children(worker, recursive=True)
        kill(worker)
        wait_until(lambda: not any(map(lives, started)))


def test_reruns_can_be_turned_off(tmp_path: Path) -> None:
    """With `--no-rerun` nothing is executed twice: a batch that fails or dies fails as a whole, at once."""
    with serving(BATCH, "--no-rerun", *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        mark = len(server.lines)
        items = [{"id": 10, "op": "note"}, {"id": 5, "op": "fail"}, {"id": 11, "op": "note"}]
        failed = answers(server, send_as_batch(server, Gate(tmp_path / "raise"), items))
        assert [(answer.status, answer.code) for answer in failed] == [(500, "script_error")] * 3
        items = [{"id": 12, "op": "note"}, {"id": 6, "op": "sleep", "seconds": 30}, {"id": 13, "op": "note"}]
        sent = send_as_batch(server, Gate(tmp_path / "die"), items)
        server.wait_log("item 12 was executed", after=mark)
        kill(server.workers()[0])
        failed = answers(server, sent)
        assert [(answer.status, answer.code) for answer in failed] == [(500, "worker_died")] * 3
    log = server.log_after(mark)
    assert [log.count(f"| item {id} was executed") for id in (10, 11, 12, 13)] == [1, 0, 1, 0]


def test_without_reruns_nothing_async_runs_twice_either(tmp_path: Path) -> None:
    """With `--no-rerun`, what an async worker was busy with when another item ended it has failed."""
    with serving(OVERLAPPING, "--no-rerun", *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        gate = Gate(tmp_path / "gate")
        busy = occupy(server, gate, 10)
        assert ask_all(server, [{"id": 5, "op": "leave"}])[0].status == 500
        assert answers(server, [busy])[0].status == 500
        gate.open()
    assert server.log.count("| item 10 waits") == 1


def test_two_poisons_never_cost_an_innocent_its_answer(lend: Lend) -> None:
    """Requests that share an async worker with one that crashes are run again alone, not beside the next crash."""
    with lend(OVERLAPPING, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        mark = len(server.lines)
        innocent = [send(server, {"id": id, "op": "sleep", "seconds": 1.5}) for id in range(10, 14)]
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 4)
        guilty = [send(server, {"id": 5, "op": "crash"})]
        server.wait_log("worker 0 ready", after=mark)
        guilty += [send(server, {"id": id, "op": "crash"}) for id in (6, 7)]
        # One after the other they run again, for six seconds, and between them workers start anew.
        assert_own(answers(server, innocent, 50), [10, 11, 12, 13])
        assert [(answer.status, answer.code) for answer in answers(server, guilty, 50)] == [(500, "worker_died")] * 3


def test_a_worker_that_cannot_end_is_ended(tmp_path: Path) -> None:
    """A script that spoils its process and then hangs in close() is replaced all the same."""
    script = tmp_path / "model.py"
    script.write_text(
        "import time\n"
        "class Model:\n"
        "    def predict(self, item):\n"
        "        if item == 'leave':\n"
        "            raise SystemExit\n"
        "        return item\n"
        "    def close(self):\n"
        "        time.sleep(600)\n"
    )
    with serving(tmp_path, "--kill-grace", "0.5", *QUICK) as server, unharmed(server, 3, 3):
        assert ask_all(server, ["leave"])[0].status == 500
        assert ask_all(server, [4])[0].json() == 4


def test_workers_leave_no_core_files() -> None:
    """A crash does not fill the package's folder with memory images, whatever the limits of the shell."""
    with core_files_allowed(), serving(SINGLE) as server:
        limits = Path(f"/proc/{server.workers()[0].pid}/limits").read_text()
        (line,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
        assert line.split()[4] == "0"


@contextlib.contextmanager
def core_files_allowed() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def test_the_front_holds_no_file_of_a_dead_worker(lend: Lend) -> None:
    """Deaths leak nothing: after many of them the front has as many files open as before."""
    with lend(SINGLE, *QUICK) as server, unharmed(server, NORMAL, EXPECTED) as before:
        for _ in rounds(5):
            kill(server.workers()[0])
            assert_own(ask_all(server, [{"id": 4}]), [4])
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) <= before.fds + 4
