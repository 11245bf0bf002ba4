"""Whatever a script raises, its request gets one answer and its worker lives on: also where the exception cannot say
what it is, or says it in something other than text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, serving

SCRIPT = """
from panglot import ClientError


class Mute(Exception):
    def __str__(self):
        raise ValueError("no words")


class MuteClient(Mute):
    status = 422


class Numbered(Exception):
    def __str__(self):
        return 7


class Odd(Exception):
    @property
    def status(self):
        raise KeyError("status")


class Endless(Exception):
    def __str__(self):
        return str(self)


class Leaving(Exception):
    def __str__(self):
        raise SystemExit(1)


ERRORS = {kind.__name__: kind for kind in (Mute, MuteClient, Numbered, Odd, Endless, Leaving)}


class Model:
    def HOOK(self, item):
        PICK
        if isinstance(item, str):
            raise ERRORS[item]("x")
        if isinstance(item, dict):
            raise ClientError(item)
        RETURN
"""
ONE = SCRIPT.replace("HOOK", "predict").replace("        PICK\n", "").replace("RETURN", "return item")
MANY = (
    SCRIPT.replace("HOOK", "predict_batch")
    .replace("PICK", "items, item = item, next((one for one in item if not isinstance(one, int)), 0)")
    .replace("RETURN", "return items")
)
ASYNC = ONE.replace("def predict", "async def predict")


@pytest.fixture(params=["one", "many", "async"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    script = {"one": ONE, "many": MANY, "async": ASYNC}[request.param]
    (tmp_path / "model.py").write_text(script)
    with serving(tmp_path) as server:
        yield server


def test_exceptions_without_words(server: Server) -> None:
    (worker,) = server.workers()
    for name in ("Mute", "Numbered", "Odd", "Endless", "Leaving"):
        answer = server.predict(name)
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "script_error"), name
        server.wait_log(f"{name}")
    answer = server.predict("MuteClient")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_request")
    assert "MuteClient" in answer.json()["error"]["message"]
    answer = server.predict({"field": "x"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "x")
    assert server.predict(3).json() == 3
    assert [process.pid for process in server.workers()] == [worker.pid]


EVALS = """
from evals.utils import create_net_handler, net_inference_handler


class Mute(Exception):
    def __str__(self):
        raise ValueError


@create_net_handler
def create_net(configs):
    return {}, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    if any(req["data"].get("attribute", {}).get("mute") for req in reqs):
        raise Mute
    return [{"code": 0, "message": "", "result": 3} for req in reqs], 0, ""
"""


def test_the_same_in_the_words_of_a_platform(tmp_path: Path) -> None:
    (tmp_path / "eval.py").write_text(EVALS)
    with serving(tmp_path) as server:
        (worker,) = server.workers()
        request = {"data": {"uri": "data:application/octet-stream;base64,eA==", "attribute": {"mute": True}}}
        answer = server.client.post("/v1/eval", json=request)
        assert (answer.status_code, list(answer.json())) == (599, ["error"])
        assert "Mute" in answer.json()["error"]
        request["data"]["attribute"] = {}
        assert server.client.post("/v1/eval", json=request).status_code == 200
        assert [process.pid for process in server.workers()] == [worker.pid]
