"""What is a tiinfer package, decided without running it, and how `panglot inspect` explains it."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from panglot.dialects.tiinfer.detect import takes_a_dict
from panglot.packages.source import functions
from support.server import PACKAGES
from support.tiinfer import last_line, model, run, write

MODEL = "import tiinfer\n\nclass Own(tiinfer.Model):\n    def load(self):\n        return True\n"

IS_ONE = {
    "import tiinfer": (MODEL, "Own", "model_service.py:3 defines class Own(tiinfer.Model)"),
    "from tiinfer import Model": ("from tiinfer import Model\nclass A(Model): ...\n", "A", ":2 defines class A"),
    "as another name": ("from tiinfer import Model as M\nclass A(M): ...\n", "A", ":2 defines class A"),
    "through a class between": (
        "import tiinfer\nclass Zed(tiinfer.Model): ...\nclass Beta(Zed): ...\n",
        "Beta",
        ":3 defines class Beta",
    ),
    "append_worker": (
        "import mosec, tiinfer\nclass W(mosec.Worker): ...\ntiinfer.append_worker(W)\n",
        "append_worker",
        ":3 adds a worker with append_worker",
    ),
    "through a module beside it": ("from base import *\n", "tiinfer.Model", "shows when the script is imported"),
    "inside a function": ("def f():\n    import tiinfer\n", "tiinfer.Model", "shows when the script is imported"),
}


@pytest.mark.document("tiinfer.06")
@pytest.mark.parametrize("name", IS_ONE)
def test_is_one(name: str, tmp_path: Path) -> None:
    script, entry, reason = IS_ONE[name]
    folder = write(tmp_path / "own", script, base__py=MODEL)
    done = run("inspect", str(folder), "--json")
    facts = json.loads(done.stdout)
    assert (facts["dialect"], facts["entry"]) == ("tiinfer", entry)
    assert any(reason in why for why in facts["why"])
    assert "POST /inference" in facts["routes"]
    assert "POST /v1/models/m:predict" in facts["routes"]
    assert "GET / (public)" in facts["routes"]


def test_inspect_runs_nothing_and_shows_the_platforms_variables(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", "print('was run')\n" + MODEL)
    env = {"TI_INFERENCE_NUMS": "2", "TI_PREPROCESS_NUMS": "1", "TI_POSTPROCESS_NUMS": "1", "MOSEC_TIMEOUT": "1500"}
    done = run("inspect", str(folder), "--json", env=env)
    facts = json.loads(done.stdout)
    assert "was run" not in done.stdout + done.stderr
    assert {"TI_INFERENCE_NUMS=2", "TI_PREPROCESS_NUMS=1", "TI_POSTPROCESS_NUMS=1"} <= set(facts["why"])
    assert not facts["problems"]
    assert facts["settings"]["timeout"] == {"value": 1.5, "source": "the dialect", "scope": "model"}
    assert facts["settings"]["worker_net"] == {"value": "guard", "source": "the dialect", "scope": "model"}
    assert facts["settings"]["queue"] == {"value": 1024, "source": "the dialect", "scope": "model"}
    shown = run("inspect", str(folder), env=env).stdout
    assert "TI_INFERENCE_NUMS=2" in shown


def test_what_is_none(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", "def predict(request):\n    return 1\n")
    assert json.loads(run("inspect", str(folder), "--json").stdout)["dialect"] == "plain"
    done = run("serve", str(folder), "--dialect", "tiinfer", "--port", "0")
    assert done.returncode == 3
    assert "this is no tiinfer package (fix: tiinfer needs model_service.py that imports tiinfer)" in last_line(
        done.stderr
    )


def test_a_syntax_error_is_told_by_file_and_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", "import tiinfer\n\nclass Own(tiinfer.Model:\n")
    done = run("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    assert "model_service.py:3: syntax error" in last_line(done.stderr)


def test_only_this_dialect_turns_the_guard_on() -> None:
    facts = json.loads(run("inspect", str(PACKAGES / "function"), "--json").stdout)
    assert facts["settings"]["worker_net"] == {"value": "open", "source": "default", "scope": "model"}


STYLES = {
    "def predict(self, request):\n    return request['images']": True,
    "def predict(self, request):\n    if 'images' not in request: return request": True,
    "def predict(self, r):\n    return r.get('images')": True,
    "def predict(self, r):\n    r.pop('image', '')": True,
    "def predict(self, request):\n    return [item['images'] for item in request]": False,
    "def predict(self, request):\n    return request[0]": False,
    "def predict(self, request):\n    return self.model(request)": False,
    "def predict(self, request):\n    return other['images']": False,
    "def predict(self):\n    return 1": False,
}


@pytest.mark.parametrize("text", STYLES)
def test_dict_style(text: str) -> None:
    (method,) = functions(ast.parse(text).body).values()
    assert takes_a_dict(method) is STYLES[text]


DICT = model("preprocess: return request['images']", "predict: return request")


@pytest.mark.parametrize(
    ("env", "warned"),
    [
        ({}, False),
        ({"TI_INFERENCE_MAX_BATCH_SIZE": "1"}, False),
        ({"TI_INFERENCE_MAX_BATCH_SIZE": "2"}, True),
        ({"TI_INFERENCE_MAX_BATCH_SIZE": "2", "TI_PREPROCESS_NUMS": "1", "TI_POSTPROCESS_NUMS": "1"}, False),
    ],
    ids=str,
)
def test_a_warning_where_batches_meet_a_dict_style_script(env: dict[str, str], warned: bool, tmp_path: Path) -> None:
    """In split mode preprocess gets single items, so its style does not matter then."""
    folder = write(tmp_path / "own", DICT)
    problems = json.loads(run("inspect", str(folder), "--json", env=env).stdout)["problems"]
    assert any("model_service.py:6 preprocess, which seems to expect a dict" in text for text in problems) is warned
