"""The processes a server starts: each is waited for by whoever started it, and signalled only while it is there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from panglot.engine.processes.output import ScriptOutput
from panglot.engine.workers.worker import DEAD, Worker


class Pool:
    """A pool that only listens."""

    title = "worker"

    def on_death(self, worker: Worker) -> None: ...


def test_a_worker_that_has_ended_is_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may be another process's by then; and it is not said to have hung when it died by itself."""

    async def story() -> None:
        worker = Worker(cast(Any, Pool()), 0, 1, time.monotonic)
        output = ScriptOutput(lambda line: None, lambda count: None, time.monotonic, longest=1000, rate=100_000)
        await worker.start("", tmp_path, os.environ, {}, output)
        os.kill(worker.pid, signal.SIGTERM)
        while worker.state != DEAD:
            await asyncio.sleep(0.01)
        signalled: list[object] = []
        for function in ("kill", "killpg"):
            monkeypatch.setattr(os, function, lambda *about: signalled.append(about))
        worker.kill()
        worker.kill_hung("was killed: it ran for too long")
        assert not signalled
        assert worker.cause() in ("was killed by SIGTERM", "ended with exit code 143")

    asyncio.run(asyncio.wait_for(story(), 60))


BURIAL = """
import os
import subprocess
import sys
import time

from panglot.engine.processes import family

family.adopt_orphans()
own = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
orphan = "import subprocess; print(subprocess.Popen(['sleep', '0.5'], stdout=-3, start_new_session=True).pid)"
worker = subprocess.Popen([sys.executable, "-c", orphan], stdout=subprocess.PIPE, text=True, start_new_session=True)
left = int(worker.stdout.read())
worker.wait()


def is_dead(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z"


if "orphan alone" in sys.argv:
    own.wait()
while not is_dead(left) or ("orphan alone" not in sys.argv and not is_dead(own.pid)):
    time.sleep(0.01)
family.bury_orphans(set())
print(own.wait(), os.path.exists(f"/proc/{left}"))
"""


def buried(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BURIAL, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.split()


def test_orphans_of_workers_are_buried() -> None:
    assert buried("orphan alone") == ["3", "False"]


def test_what_the_front_has_started_itself_is_left_to_whoever_waits_for_it() -> None:
    """Such as nvidia-smi: who waits for it must learn how it ended."""
    assert buried()[0] == "3"
