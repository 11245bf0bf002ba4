"""The processes a server starts: each is waited for by whoever started it, and signalled only while it is there."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from panglot.engine.processes.output import LINES_A_TURN, ScriptOutput
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


def test_others_have_their_turn_among_the_lines_of_a_worker() -> None:
    """However many lines come in one piece: the event loop turns to others after a hundred of them."""

    async def story() -> None:
        said: list[str] = []
        output = ScriptOutput(said.append, lambda count: None, lambda: 0.0, longest=1000, rate=1 << 30)
        ours, theirs = os.pipe()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: output, os.fdopen(ours, "rb"))
        output.data_received(b"".join(b"%d\n" % number for number in range(5000)))
        at_turns = []
        while len(said) < 5000:
            at_turns.append(len(said))
            await asyncio.sleep(0)
        steps = [after - before for before, after in itertools.pairwise([0, *at_turns, len(said)])]
        assert max(steps) == LINES_A_TURN
        transport.close()
        os.close(theirs)

    asyncio.run(asyncio.wait_for(story(), 60))
