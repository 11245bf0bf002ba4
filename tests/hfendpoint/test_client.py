"""Hugging Face's own client asks this server, with a token, and finds what it knows from the platform."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support import originals
from support.server import serving

SCRIPT = Path(__file__).with_name("clients") / "inference_client.py"
TOKEN = "hf_a-token-of-the-tests"


@pytest.mark.document("hfendpoint.46")
@pytest.mark.rest("installs huggingface_hub")
@pytest.mark.timeout(900)
def test_the_inference_client_finds_everything_as_on_the_platform() -> None:
    python = originals.interpreter("huggingface-hub", "huggingface_hub==2.4.0", "pillow", "numpy")
    with serving("hfendpoint_tasks", env={"PANGLOT_TOKEN": TOKEN}) as server:
        command = [python, str(SCRIPT), server.url, TOKEN]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert {name: text for name, text in said.items() if text != "passed"} == {}
    assert len(said) == 8
