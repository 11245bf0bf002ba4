"""A connection that is lost after the request went out: sent again only where that does no harm."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from panglot import CallError, Client
from support.ports import free_port
from support.server import Server, serving

COUNTING = """
import os, time

def predict(request):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write("%d\\n" % request["number"])
    time.sleep(0.02)
    return request["number"]
"""


@pytest.mark.parametrize("retry", [False, True], ids=["never twice", "none lost"])
def test_what_a_lost_connection_may_have_run(retry: bool, tmp_path: Path) -> None:
    """Without `retry` nothing runs twice, and what may have been lost is an error; with it, nothing is lost."""
    package, notes = tmp_path / "counting", tmp_path / "notes"
    package.mkdir()
    (package / "model.py").write_text(COUNTING)
    inputs = [{"number": number} for number in range(100)]
    outcomes = []
    with (
        # Not a port of the kernel's choice: while nobody listens, the client that tries again could be given it.
        serving(package, "--port", str(free_port()), env={"NOTES": str(notes)}) as server,
        Client(server.url, retry=retry, connect_timeout=60) as client,
    ):
        for outcome in client.map(inputs, concurrency=4, return_errors=True):
            outcomes.append(outcome)
            if len(outcomes) == 40:
                server.stop(signal.SIGKILL)
                again = Server(package, "--port", str(server.port), env={"NOTES": str(notes)})
        again.stop()
    ran = Counter(int(line) for line in notes.read_text().split())
    lost = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, CallError)]
    assert all(outcome == number for number, outcome in enumerate(outcomes) if number not in lost)
    if retry:
        assert not lost
        assert set(ran) == set(range(100))
    else:
        assert max(ran.values()) == 1
        assert {outcomes[number].code for number in lost} <= {"connection_lost"}
        assert set(range(100)) - set(lost) <= set(ran)
