"""How models of Truss load, and what runs for a client that has gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import raw
from support.server import panglot, serving, wait_until
from support.wire import Wire

PREDICT = "/v1/models/model:predict"


LOADED_LATER = """
class Model:
    def __init__(self):
        self.tries = 0

    def load(self):
        self.tries += 1
        if self.tries <= {failures}:
            raise OSError("the hub is busy, try " + str(self.tries))

    def predict(self, request):
        return self.tries
"""


@pytest.mark.document("truss.07")
@pytest.mark.parametrize(("retries", "failures"), [(None, 1), ("3", 3)])
def test_a_load_that_fails_is_tried_again(retries: str | None, failures: int, tmp_path: Path) -> None:
    env = {"NUM_LOAD_RETRIES_TRUSS": retries} if retries is not None else {}
    with serving(loaded_after(failures, tmp_path), env=env) as server:
        assert server.client.post(PREDICT, json={}).json() == failures + 1
    # Only now: a worker's words may come after its answers.
    assert server.log.count("load() failed and is tried again: OSError: the hub is busy, try") == failures


@pytest.mark.document("truss.07")
@pytest.mark.parametrize(("retries", "failures"), [(None, 2), ("0", 1)])
def test_a_load_that_goes_on_to_fail_ends_the_server(retries: str | None, failures: int, tmp_path: Path) -> None:
    env = {"NUM_LOAD_RETRIES_TRUSS": retries} if retries is not None else {}
    done = panglot("serve", str(loaded_after(failures, tmp_path)), "--port", "0", env=env, seconds=60)
    assert done.returncode == 3
    assert f"the hub is busy, try {failures}" in done.stderr
    assert done.stderr.count("is tried again") == failures - 1


def loaded_after(failures: int, folder: Path) -> Path:
    """A truss whose load fails so often, in one process."""
    (folder / "model").mkdir()
    (folder / "config.yaml").write_text("model_name: Later\n")
    (folder / "model" / "model.py").write_text(LOADED_LATER.format(failures=failures))
    return folder


LEFT = """
import os
import time


class Model:
    def __init__(self, **kwargs):
        self.ran = []

    {asynchronous}def preprocess(self, model_input):
        open(model_input["first"], "w").close()
        while not os.path.exists(model_input["go"]):
            {sleep}
        return model_input

    def predict(self, model_input):
        self.ran.append(model_input["name"])
        return self.ran
"""


@pytest.mark.document("truss.47")
@pytest.mark.parametrize(
    ("asynchronous", "sleep"), [("", "time.sleep(0.01)"), ("async ", "await __import__('asyncio').sleep(0.01)")]
)
def test_no_further_step_runs_for_a_client_that_has_gone(asynchronous: str, sleep: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("model_name: left\n")
    (tmp_path / "model" / "model.py").write_text(LEFT.format(asynchronous=asynchronous, sleep=sleep))
    first, go = tmp_path / "first", tmp_path / "go"
    paths = {"first": str(first), "go": str(go)}
    with serving(tmp_path) as server:
        with Wire(server) as client:
            client.send(raw.post(json.dumps({"name": "gone", **paths}).encode(), path=PREDICT))
            wait_until(first.exists)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        go.touch()
        assert server.client.post(PREDICT, json={"name": "here", **paths}).json() == ["here"]
        assert "Traceback" not in server.log
