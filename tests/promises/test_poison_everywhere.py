"""A request that kills is refused in a pipeline too, and every platform words that in its own manner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.server import serving


@pytest.mark.parametrize("stage", ["preprocess", "inference", "postprocess"])
def test_in_a_row_of_pools(stage: str) -> None:
    """Where it does not kill in the first pool, its body is gone by then: it takes a request more to know it."""
    with serving("row_script", "--pools", "preprocess=1,inference=1,postprocess=1") as server:
        poison = {"id": 5, stage: "crash"}
        statuses = [server.predict(poison).status_code for _ in range(6)]
        assert statuses[0] == 500
        assert set(statuses[3:]) == {422}, statuses
        # As long as the poison.
        assert server.predict({"id": 6, stage: "spare"}).status_code == 200
        assert server.metric("panglot_queue_length") == 0
        assert server.metric("panglot_slots_in_use") == 0


EVALS = """
import os
from evals.utils import create_net_handler, net_inference_handler

@create_net_handler
def create_net(configs):
    return {}, 0, ""

@net_inference_handler
def net_inference(model, reqs):
    os._exit(1)
"""
HFENDPOINT = """
import os

class EndpointHandler:
    def __init__(self, path):
        pass

    def __call__(self, data):
        os._exit(1)
"""
MODELARTS = """
import os
from model_service.model_service import SingleNodeService

class Service(SingleNodeService):
    def _inference(self, data):
        os._exit(1)
"""
TIINFER = """
import os
import tiinfer

class Service(tiinfer.Model):
    def load(self):
        return True

    def predict(self, request):
        os._exit(1)
"""
AZUREML = """
import os

def init():
    pass

def run(raw_data):
    os._exit(1)
"""
MESSAGE = "requests like this one have ended the script's process"
FORMS = {
    "azureml": ("score.py", AZUREML, "/score", {"a": 1}, {"message": MESSAGE}),
    "evals": ("eval.py", EVALS, "/v1/eval", {"data": {"uri": "data:;base64,eA=="}}, {"error": MESSAGE}),
    "hfendpoint": ("handler.py", HFENDPOINT, "/", {"inputs": 1}, {"error": MESSAGE}),
    "modelarts": ("customize_service.py", MODELARTS, "/", {"a": 1}, {"erno": "MR.0101", "words_result": {}}),
    "tiinfer": ("model_service.py", TIINFER, "/inference", {"a": 1}, MESSAGE),
}


@pytest.mark.parametrize("platform", FORMS)
def test_in_the_words_of_the_platform(platform: str, tmp_path: Path) -> None:
    file, script, path, request, expected = FORMS[platform]
    (tmp_path / file).write_text(script)
    with serving(tmp_path, "--poison-deaths", "1") as server:
        for _ in range(2):
            answer = server.client.post(path, json=request)
            assert answer.status_code == 422, answer.text
        if isinstance(expected, str):
            assert answer.text.startswith(expected)
            return
        told = json.loads(answer.text)
        for name, value in expected.items():
            assert told[name].startswith(value) if name in ("error", "message") else told[name] == value
