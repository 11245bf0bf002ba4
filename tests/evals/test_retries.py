"""Codes that say "try again": the header, and another worker's turn."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.evals import ask, package, returning, single
from support.server import serving, wait_until

ROLES = """
import os


def role(folder):
    '''The first worker that starts is the one that cannot.'''
    try:
        os.close(os.open(os.path.join(folder, "taken"), os.O_CREAT | os.O_EXCL))
        return 571
    except FileExistsError:
        return 0


def refuses(folder):
    '''The first worker that is called is the one that cannot.'''
    path = os.path.join(folder, "refuses")
    try:
        with open(path, "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        pass
    return 571 if open(path).read() == str(os.getpid()) else 0


def note(folder):
    with open(os.path.join(folder, "calls"), "a") as file:
        file.write("x")
"""


def script(tmp_path: Path, code: str) -> str:
    rets = (
        f"(note({str(tmp_path)!r}), [{{'code': {code}, 'message': 'overload', 'result': 1}} for req in reqs])[1], 0, ''"
    )
    return returning(rets, ROLES, f"role({str(tmp_path)!r}), 0, ''")


@pytest.mark.document("evals.37")
@pytest.mark.parametrize("tries", [0, 1])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_another_worker_is_tried(tmp_path: Path, tries: int, batch_size: int) -> None:
    toml = f"workers = 2\n[evals]\nretry_57x = {tries}\nbatch_size = {batch_size}\n"
    folder = package(tmp_path / "package", script(tmp_path, "model"), panglot__toml=toml)
    with serving(folder) as server:
        server.wait_log("worker 1 ready")
        answers = [ask(server, single()) for _ in range(12)]
        statuses = Counter(answer.status_code for answer in answers)
        if tries:
            assert statuses == {200: 12}
            assert server.metric("panglot_reruns_total", reason="retried") > 0
        else:
            assert statuses[571] > 0
            assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status_code == 571)


def test_tries_are_counted(tmp_path: Path) -> None:
    toml = "workers = 3\n[evals]\nretry_57x = 2\n"
    with serving(package(tmp_path / "package", script(tmp_path, "570"), panglot__toml=toml)) as server:
        # The second and the third are started together, and either may be ready first.
        for number in (1, 2):
            server.wait_log(f"worker {number} ready")
        answer = ask(server, single())
        assert (answer.status_code, answer.json()) == (570, {"error": "overload"})
        assert (tmp_path / "calls").read_text() == "xxx"


def test_a_worker_alone_is_not_tried_twice(tmp_path: Path) -> None:
    toml = "[evals]\nretry_57x = 5\n"
    with serving(package(tmp_path / "package", script(tmp_path, "570"), panglot__toml=toml)) as server:
        assert ask(server, single()).status_code == 570
        assert (tmp_path / "calls").read_text() == "x"


ROWS = [
    "preprocess=1,inference=2",
    "inference=2,postprocess=1",
    "preprocess=1,inference=2,postprocess=1",
]


@pytest.mark.document("evals.37")
@pytest.mark.parametrize("pools", ROWS)
@pytest.mark.parametrize("batch_size", [1, 4])
def test_another_worker_of_the_pool_is_tried(tmp_path: Path, pools: str, batch_size: int) -> None:
    """Also with pictures that travel in shared memory, and with many requests at once."""
    toml = f"[evals]\nretry_57x = 1\nbatch_size = {batch_size}\n"
    ret = f"{{'code': refuses({str(tmp_path)!r}), 'message': 'overload', 'result': len(req['data']['body'])}}"
    infer = f"[{ret} for req in reqs], 0, ''"
    folder = package(tmp_path / "package", returning(infer, ROLES), panglot__toml=toml)
    with serving(folder, "--pools", pools) as server:
        server.wait_log("inference worker 1 ready")
        large = single(b"x" * 300_000)
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda _: ask(server, large), range(24)))
        assert Counter(answer.status_code for answer in answers) == {200: 24}
        assert {answer.json()["result"] for answer in answers} == {300_000}
        assert server.metric("panglot_reruns_total", reason="retried") > 0
        wait_until(lambda: server.metric("panglot_slots_in_use") == 0)


@pytest.mark.parametrize("pools", ["", *ROWS])
def test_the_last_answer_counts(tmp_path: Path, pools: str) -> None:
    """Where all say the same, that is the answer."""
    toml = "workers = 2\n[evals]\nretry_57x = 1\n"
    flags = ("--pools", pools) if pools else ()
    with serving(package(tmp_path / "package", script(tmp_path, "570"), panglot__toml=toml), *flags) as server:
        server.wait_log("worker 1 ready")
        answer = ask(server, single(b"x" * 300_000))
        assert (answer.status_code, answer.json()) == (570, {"error": "overload"})
        assert (tmp_path / "calls").read_text() == "xx"


SLOW = """
import time


def worked(folder, req):
    code = refuses(folder)
    time.sleep(0 if code else req["params"].get("sleep", 0))
    return {"code": code, "message": "overload", "result": 1}
"""


def test_who_goes_while_a_worker_is_waited_for_leaves_nothing_behind(tmp_path: Path) -> None:
    infer = f"[worked({str(tmp_path)!r}, req) for req in reqs], 0, ''"
    folder = package(tmp_path / "package", returning(infer, ROLES + SLOW), panglot__toml="[evals]\nretry_57x = 1\n")
    with serving(folder, "--pools", "preprocess=1,inference=2") as server, ThreadPoolExecutor(1) as threads:
        server.wait_log("inference worker 1 ready")
        slow = threads.submit(ask, server, single(b"x" * 300_000, {"sleep": 2}))
        wait_until(lambda: (tmp_path / "refuses").exists() and server.metric("panglot_reruns_total", reason="retried"))
        late = ask(server, single(b"x" * 300_000), headers={"x-timeout-ms": "300"})
        assert late.status_code == 504
        assert slow.result().status_code == 200
        assert ask(server, single(b"x" * 300_000)).status_code == 200
        wait_until(lambda: server.metric("panglot_slots_in_use") == 0)
