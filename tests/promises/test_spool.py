"""The promise: the folder of uploads comes back when it is removed, says why it cannot be used, and only ever goes
with its own server."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest

from support.server import Server, lives, serving, wait_until
from support.two_fronts import FRONTS
from support.videos import made

CLIP = made(5)


def send(server: Server) -> httpx.Response:
    with server.new_client() as client:
        return client.post("/analyze_video", content=CLIP)


def spools(folder: Path) -> list[Path]:
    return sorted(folder.glob("panglot-spool-*"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "disk"
    found.mkdir()
    return found


def test_a_folder_that_a_cleaner_removed_is_made_again(folder: Path) -> None:
    with serving("megflow_video", env={"TMPDIR": str(folder)}) as server:
        assert send(server).status_code == 200
        [before] = spools(folder)
        shutil.rmtree(before)
        assert send(server).status_code == 200
        assert len(spools(folder)) == 1
        shutil.rmtree(folder)
        assert send(server).status_code == 200
    assert spools(folder) == []


def test_a_folder_that_cannot_be_used_is_507_and_a_line_in_the_log(folder: Path) -> None:
    with serving("megflow_video", env={"TMPDIR": str(folder)}) as server:
        assert send(server).status_code == 200
        shutil.rmtree(folder)
        folder.write_text("in the way")
        for _ in range(3):
            answer = send(server)
            assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (507, True)
        server.wait_log(f"uploads cannot be saved below {folder}: Not a directory")
        assert server.client.get("/list").status_code == 200
        folder.unlink()
        folder.mkdir()
        assert send(server).status_code == 200
        assert server.workers()
    assert 1 <= server.log.count("uploads cannot be saved") <= int(FRONTS or 1), "once, not for every request"


def test_sweeping_goes_by_locks(folder: Path) -> None:
    """A server in another container has another number for its process, or the same; its lock is the same for all."""
    left, held = folder / "panglot-spool-1-left", folder / f"panglot-spool-{2**30}-held"
    for entry in (left, held):
        entry.mkdir()
        (entry / "1").write_bytes(b"a video")
    lock = os.open(held, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with serving("megflow_video", env={"TMPDIR": str(folder)}) as server:
        assert send(server).status_code == 200
        assert not left.exists()
        assert (held / "1").exists()
    assert spools(folder) == [held]
    os.close(lock)


def test_what_a_killed_server_left_goes_with_the_next(folder: Path) -> None:
    """The next one starts at once, takes away what the dead one left, and nothing of one that lives."""
    env = {"TMPDIR": str(folder)}
    with serving("megflow_video", env=env) as living:
        assert send(living).status_code == 200
        [kept] = spools(folder)
        with serving("megflow_video", env=env) as doomed:
            assert send(doomed).status_code == 200
            assert len(spools(folder)) == 2
            workers = doomed.workers()
            doomed.process.send_signal(signal.SIGKILL)
            doomed.process.wait(10)
            wait_until(lambda: not any(lives(worker) for worker in workers))
        with serving("megflow_video", env=env) as heir:
            assert send(heir).status_code == 200
            assert kept in spools(folder)
            assert len(spools(folder)) == 2, "its own and that of the living"
        assert send(living).status_code == 200
        assert spools(folder) == [kept]
    assert spools(folder) == []
