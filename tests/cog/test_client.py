"""Replicate's own client, with a token."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support import originals
from support.server import serving

CLIENT = Path(__file__).with_name("clients") / "replicate_client.py"


def test_odd_notes_about_a_file_are_refused() -> None:
    with serving("cog_ops", "--workers", "1") as server:
        for metadata in ("[" * 5_000, '{"a":' * 300 + "1" + "}" * 300, "[]", "no JSON"):
            answer = server.client.post("/v1/files", files={"content": b"abc"}, data={"metadata": metadata})
            assert (answer.status_code, "metadata" in answer.text) == (400, True)
        assert server.client.post("/v1/files", files={"content": b"abc"}, data={"metadata": '{"a": 1}'}).is_success
    assert "Traceback" not in server.log


@pytest.mark.document("cog.17")
@pytest.mark.rest("installs Replicate's client")
@pytest.mark.timeout(900)
def test_replicates_client_creates_waits_streams_and_cancels() -> None:
    python = originals.interpreter("replicate", "replicate==1.0.7")
    with (
        serving("cog_ops", "--workers", "1", env={"PANGLOT_TOKEN": "r8_secret"}) as ops,
        serving("cog_stream", "--workers", "1", env={"PANGLOT_TOKEN": "r8_secret"}) as words,
    ):
        command = [python, str(CLIENT), ops.url, words.url, "r8_secret"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert {name: text for name, text in said.items() if text != "passed"} == {}
    assert len(said) == 9
