"""A result that cannot be sent: the log names function, line and fix, and shows nothing of the server's code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.server import panglot, serving

SCRIPT = """\
from panglot import route


class Thing:
    def __bytes__(self):
        raise RuntimeError("no bytes today")


def predict(kind: str):
    return {"a": [1, {2, 3}]} if kind == "set" else Thing()


@route("/parts")
def parts(kind: str):
    yield {"a": {1, 2}}
"""
FIX = "(fix: return dicts, lists, texts, numbers, arrays, images or bytes)"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(SCRIPT)
    return tmp_path


def test_the_log_names_function_line_and_fix(package: Path) -> None:
    with serving(package) as server:
        answer = server.client.post("/predict", json={"kind": "set"})
        assert answer.json()["error"]["code"] == "bad_result"
        wrong = f"predict: the result cannot be sent: $.a[1]: JSON cannot hold a value of type set {FIX}"
        server.wait_log(re.escape(f"{package}/model.py:9: {wrong}"))
        server.client.post("/parts", json={"kind": "set"})
        server.wait_log(re.escape(f"{package}/model.py:13: parts: the result cannot be sent: $.a: "))
        assert "panglot_worker" not in server.log


def test_code_of_the_script_that_raises_has_its_traceback(package: Path) -> None:
    with serving(package) as server:
        assert server.client.post("/predict", json={"kind": "thing"}).status_code == 500
        server.wait_log("RuntimeError: no bytes today")
        assert "line 6, in __bytes__" in server.log


def test_run_says_it_too(package: Path) -> None:
    done = panglot("run", str(package), '{"kind": "set"}')
    assert done.returncode == 1
    assert (
        f"model.py:9: predict: the result cannot be sent: $.a[1]: JSON cannot hold a value of type set {FIX}"
        in done.stderr
    )
    assert "panglot_worker" not in done.stdout + done.stderr
