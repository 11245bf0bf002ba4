"""Progress bars of a script that knows nothing of us: clients of its job see how far it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.server import serving, wait_until


@pytest.mark.document("cog.25")
def test_a_progress_bar_tells_how_far_a_prediction_is(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving("cog_bars", "--workers", "1") as server:
        body = {"input": {"gate": str(gate)}}
        job = server.client.post("/predictions", json=body, headers={"prefer": "respond-async"}).headers["location"]
        wait_until(lambda: server.client.get(job).json()["progress"] == {"progress": 0.5, "text": "drawing 4/8"})
        gate.touch()
        wait_until(lambda: server.client.get(job).json()["state"] == "done")
        logs = server.client.get(f"{job}/result").json()["logs"]
        assert logs.startswith("\rdrawing:   0%|")
        assert "100%|##########| 8/8" in logs
        events = server.client.get(f"{job}/events").text
        assert "event: end" in events
