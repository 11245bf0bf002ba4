"""From the script to a loaded model: what counts as loaded, which class, and what is said when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.side_by_side import differs
from support.tiinfer import Heard, last_line, model, ours, run, workers, write

WAITS = "import os, time\n        while not os.path.exists('go'): time.sleep(0.02)\n        return True"


def test_while_loading_the_port_is_open_and_says_so(tmp_path: Path) -> None:
    differs("Port while loading")
    folder = write(tmp_path / "own", model(load=WAITS))
    with ours(folder, ready=False) as server:
        assert server.get("/") == Heard(200, "MOSEC service")
        assert server.get("/v1/models/m") == Heard(503, {"name": "m", "ready": False})
        assert server.get("/v1/models") == Heard(200, ["m"])
        answer = server.client.post("/inference", json=1)
        assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert int(answer.headers["retry-after"]) >= 1
        (folder / "go").touch()
        server.wait_ready()
        assert server.get("/v1/models/m") == Heard(200, {"name": "m", "ready": True})


LOADS = {
    "returns True": (model(), r"load\(\) returned True"),
    "returns something true": (model(load="return 'yes'"), r"load\(\) returned 'yes'"),
    "sets ready and returns nothing": (model(load="self.ready = True"), "self.ready is true"),
    "ready is set before the parent's __init__": (
        model("__init__(self, model_dir): self.ready = True; super().__init__(model_dir)", load="pass"),
        "self.ready is true",
    ),
}


@pytest.mark.document("tiinfer.10")
@pytest.mark.parametrize("name", LOADS)
def test_loads_that_succeed(name: str, tmp_path: Path) -> None:
    script, line = LOADS[name]
    with ours(write(tmp_path / "own", script)) as server:
        server.wait_log(line)
        assert server.ask({"a": 1}) == Heard(200, {"a": 1})


FAILED = {
    "returns False": (model(load="return False"), "model_service.py:4: load() returned False"),
    "returns False while ready": (model(load="self.ready = True; return False"), "load() returned False"),
    "returns nothing": (model(load="pass"), "load() returned None (fix: return True"),
    "is not there": ("import tiinfer\nclass Own(tiinfer.Model): ...\n", "load() returned None"),
    "raises": (model(load="open('weights')"), "model_service.py:5: running load() failed: FileNotFoundError"),
    "constructor takes nothing": (
        model("__init__(self): pass"),
        "model_service.py:6: Own.__init__ must take the model's folder",
    ),
    "constructor raises": (
        model("__init__(self, model_dir): 1 / 0"),
        "model_service.py:7: constructing Own failed: ZeroDivision",
    ),
    "no class": ("import tiinfer\n", "there is no subclass of tiinfer.Model in it"),
    "no package": (model(before="import tiacc_inference"), "model_service.py:2: the package 'tiacc_inference' is not"),
    "hidden by a file": (model(), "tiinfer.py: this file hides the platform's tiinfer"),
    "wrong worker": ("import tiinfer\ntiinfer.append_worker(int)\n", "append_worker needs a subclass of mosec.Worker"),
    "no workers": (workers("W: return data", W="num=0"), "num and max_batch_size of W must be 1 or more"),
    "too few variables": (workers("W: return data", W="num=2, env=[{}]"), "env of W must be a list of 2 dicts"),
    "count too small": (
        model(before="tiinfer.set_ti_inference_nums(0)"),
        "TI_INFERENCE_NUMS is 0; it must be at least 1",
    ),
}


@pytest.mark.document("tiinfer.10")
@pytest.mark.parametrize("name", FAILED)
def test_loads_that_fail(name: str, tmp_path: Path) -> None:
    script, words = FAILED[name]
    hiding = {"tiinfer__py": "class Model: ...\n"} if name == "hidden by a file" else {}
    folder = write(tmp_path / "own", script, **hiding)
    done = run("tiinfer", "--port", "0", folder=folder)
    assert done.returncode == 3, done.stderr
    assert words in last_line(done.stderr)


@pytest.mark.document("tiinfer.15")
def test_a_failed_load_shows_what_the_script_logged_and_its_traceback(tmp_path: Path) -> None:
    script = model(load="import logging; logging.error('no weights here'); raise ValueError('why')")
    done = run("serve", str(write(tmp_path / "own", script)), "--port", "0")
    assert "no weights here" in done.stderr
    assert "Traceback" in done.stderr
    assert 'model_service.py", line 5, in load' in done.stderr


BASE = model("predict: return 'Abc'", name="Abc")
ALPHA = "class Alpha(Own):\n    def predict(self, request):\n        return 'Alpha'\n"
CHOICES = {
    "the one the script defines before one it imports": (
        model("predict: return 'Own'", before="from base import Abc"),
        "Own",
    ),
    "an imported one when there is no other": ("from base import *\n", "Abc"),
    "code-point order": (model() + ALPHA, "Alpha"),
    "an alias is one class": (model("predict: return 'Zed'", name="Zed") + "Alias = Zed\n", "Zed"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_class_choice(name: str, tmp_path: Path) -> None:
    script, expected = CHOICES[name]
    with ours(write(tmp_path / "own", script, base__py=BASE)) as server:
        assert server.ask(1) == Heard(200, expected)
    assert ("several models" in server.log) is ("before" in name or "order" in name)


def test_call_may_be_overridden(tmp_path: Path) -> None:
    with ours(write(tmp_path / "own", model("__call__: return ['own', request]"))) as server:
        assert server.ask(1) == Heard(200, ["own", 1])


def test_a_generator_between_steps_is_the_scripts_own_affair(tmp_path: Path) -> None:
    script = model("predict: return (n for n in range(3))", "postprocess: return sum(request)")
    with ours(write(tmp_path / "own", script)) as server:
        assert server.ask(1) == Heard(200, 3)
