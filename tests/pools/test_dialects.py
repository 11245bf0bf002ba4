"""Pools in the platforms' own words, and by our setting for the dialects whose platforms had none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.server import ROOT, Server, panglot, serving

MODEL = """
import os
import tiinfer
{before}

class Own(tiinfer.Model):
    def __init__(self, model_dir):
        super().__init__(model_dir)
        self.loaded = False

    def load(self):
        self.loaded = True
        return True

    def preprocess(self, request):
        return {{"n": request["n"] + 1, "pre": [os.getpid(), self.loaded]}}

    def predict(self, request):
        if isinstance(request, list):
            return [self.one(value, len(request)) for value in request]
        return self.one(request, 0)

    def one(self, value, size):
        return {{**value, "n": value["n"] * 10, "inference": [os.getpid(), self.loaded], "batch": size}}

    def postprocess(self, request):
        return {{**request, "post": [os.getpid(), self.loaded]}}
"""
WORKERS = """
import json, os
import tiinfer
from mosec import Worker

class Own(Worker):
    def serialize_ipc(self, data):
        return json.dumps(["by hand", data]).encode()
    def deserialize_ipc(self, data):
        mark, value = json.loads(data)
        assert mark == "by hand"
        return value

class First(Own):
    def forward(self, data):
        return {"n": data["n"] + 1, "pids": [os.getpid()], "first": os.environ.get("PLACE")}

class Second(Own):
    def forward(self, data):
        return [{**value, "n": value["n"] * 10, "pids": value["pids"] + [os.getpid()]} for value in data]

class Third(Own):
    def forward(self, data):
        return {**data, "pids": data["pids"] + [os.getpid()]}

tiinfer.append_worker(First, num=2, env=[{"PLACE": "a"}, {"PLACE": "b"}])
tiinfer.append_worker(Second, max_batch_size=4)
tiinfer.append_worker(Third)
"""


def write(folder: Path, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model_service.py").write_text(script)
    return folder


def post(server: Server, value: Any) -> Any:
    answer = server.client.post("/v1/models/m:predict", json=value)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_platforms_counts_start_pools(tmp_path: Path) -> None:
    env = {"TI_PREPROCESS_NUMS": "2", "TI_POSTPROCESS_NUMS": "1", "TI_INFERENCE_MAX_BATCH_SIZE": "4"}
    with serving(write(tmp_path / "own", MODEL.format(before="")), env=env) as server:
        got = post(server, {"n": 1})
        assert (got["n"], got["batch"]) == (20, 1)
        assert [got[name][1] for name in ("pre", "inference", "post")] == [False, True, False]
        assert len({got[name][0] for name in ("pre", "inference", "post")}) == 3
        server.wait_log("preprocess x 2")


def test_a_count_set_by_the_script(tmp_path: Path) -> None:
    script = MODEL.format(before="tiinfer.set_ti_preprocess_nums(2)\ntiinfer.set_ti_postprocess_nums(1)")
    with serving(write(tmp_path / "own", script)) as server:
        got = post(server, {"n": 1})
        assert len({got[name][0] for name in ("pre", "inference", "post")}) == 3


@pytest.mark.parametrize(("count", "beside"), [("TI_PREPROCESS_NUMS", "post"), ("TI_POSTPROCESS_NUMS", "pre")])
def test_only_one_of_the_two_counts(count: str, beside: str, tmp_path: Path) -> None:
    with serving(write(tmp_path / "own", MODEL.format(before="")), env={count: "1"}) as server:
        got = post(server, {"n": 1})
        assert got["n"] == 20
        assert got[beside] == got["inference"] == [got["inference"][0], True]
        server.wait_log("process runs beside inference")


def test_workers_of_ones_own_are_pools(tmp_path: Path) -> None:
    with serving(write(tmp_path / "own", WORKERS)) as server:
        places = set()
        for _ in range(60):
            got = post(server, {"n": 1})
            assert got["n"] == 20
            assert len(set(got["pids"])) == 3
            places.add(got["first"])
        assert places <= {"a", "b"}
        assert server.metric("panglot_workers", pool="First_1", state="ready") >= 1
        assert server.metric("panglot_workers", pool="Third_3", state="ready") == 1


def test_pools_by_setting_do_not_fit_workers_of_ones_own(tmp_path: Path) -> None:
    done = panglot("serve", str(write(tmp_path / "own", WORKERS)), "--port", "0", "--pools", "preprocess=2")
    assert done.returncode == 3
    assert "the script's own stages are First_1, Second_2, Third_3" in done.stderr
    assert "num of append_worker says how many processes each has" in done.stderr


def test_inline_keeps_all_in_one_process(tmp_path: Path) -> None:
    env = {"TI_PREPROCESS_NUMS": "1", "TI_POSTPROCESS_NUMS": "1"}
    with serving(write(tmp_path / "own", MODEL.format(before="")), "--inline", env=env) as server:
        got = post(server, {"n": 1})
        assert [got[name] for name in ("pre", "inference", "post")] == [[server.process.pid, True]] * 3


MODELARTS = """
import os
from model_service.pytorch_model_service import PTServingBaseService

class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        self.model = 1
    def _preprocess(self, data):
        return {"n": data["n"] + 1, "pids": [os.getpid()]}
    def _inference(self, data):
        if data["n"] == 8:
            raise KeyError("eight")
        return {"n": data["n"] * 10, "pids": data["pids"] + [os.getpid()]}
    def _postprocess(self, data):
        return {"n": data["n"], "pids": data["pids"] + [os.getpid()]}
"""


def test_modelarts(tmp_path: Path) -> None:
    (tmp_path / "customize_service.py").write_text(MODELARTS)
    (tmp_path / "config.json").write_text('{"model_type": "PyTorch", "model_algorithm": "x", "apis": []}')
    with serving(tmp_path, "--pools", "preprocess=1,postprocess=1") as server:
        got = server.client.post("/", json={"n": 1}).json()
        assert got["n"] == 20
        assert len(set(got["pids"])) == 3
        failed = server.client.post("/", json={"n": 7})
        assert (failed.status_code, failed.json()["erno"]) == (400, "MR.0105")


@pytest.mark.parametrize(
    ("dialect", "route", "field", "picture", "expected"),
    [
        ("evals", "/v1/eval", "file", "seven.png", ("result", "confidences", 0, "class", "seven")),
        pytest.param(
            "paddle", "/predict", "image", "images/demo.png", ("class_id", 3), marks=pytest.mark.rest("Paddle")
        ),
    ],
)
def test_other_dialects_by_our_setting(
    dialect: str, route: str, field: str, picture: str, expected: tuple[Any, ...]
) -> None:
    folder = ROOT / "examples" / dialect
    with serving(folder, "--pools", "preprocess=1,postprocess=1") as server:
        answer = server.client.post(route, files={field: (folder / picture).read_bytes()})
        assert answer.status_code == 200, answer.text
        value = answer.json()
        for key in expected[:-1]:
            value = value[key]
        assert value == expected[-1]
        assert "postprocess.run" in answer.headers["server-timing"]
        assert 400 <= server.client.post(route, files={field: b"no picture"}).status_code < 600
        assert server.metric("panglot_worker_restarts_total") == 0
