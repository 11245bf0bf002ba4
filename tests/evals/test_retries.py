"""Codes that say "try again": the header, and another worker's turn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.evals import ask, package, returning, single
from support.server import serving

ROLES = """
import os


def role(folder):
    '''The first worker that starts is the one that cannot.'''
    try:
        os.close(os.open(os.path.join(folder, "taken"), os.O_CREAT | os.O_EXCL))
        return 571
    except FileExistsError:
        return 0


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
def test_42_another_worker_is_tried(tmp_path: Path, tries: int, batch_size: int) -> None:
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


def test_42_tries_are_counted(tmp_path: Path) -> None:
    toml = "workers = 3\n[evals]\nretry_57x = 2\n"
    with serving(package(tmp_path / "package", script(tmp_path, "570"), panglot__toml=toml)) as server:
        server.wait_log("worker 2 ready")
        answer = ask(server, single())
        assert (answer.status_code, answer.json()) == (570, {"error": "overload"})
        assert (tmp_path / "calls").read_text() == "xxx"


def test_42_a_worker_alone_is_not_tried_twice(tmp_path: Path) -> None:
    toml = "[evals]\nretry_57x = 5\n"
    with serving(package(tmp_path / "package", script(tmp_path, "570"), panglot__toml=toml)) as server:
        assert ask(server, single()).status_code == 570
        assert (tmp_path / "calls").read_text() == "x"
