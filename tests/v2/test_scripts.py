"""Tensors and the kinds of plain scripts: asynchronous ones, stages in pools, typed ones, and without numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support import interpreters
from support.server import Server, serving

STAGES = """
def preprocess(request):
    return {name: value + 1 for name, value in request.items()}

def predict(request):
    if "fail" in request:
        raise ValueError("told so")
    return {name: value * 10 for name, value in request.items()}

def postprocess(result):
    return {"result_" + name: value for name, value in result.items()}
"""


def ask(server: Server, *inputs: tuple[str, str, list[Any]], shape: tuple[int, ...] = ()) -> Any:
    """What the only model of a server answers to tensors, in JSON."""
    model = server.client.post("/v2/repository/index").json()[0]["name"]
    given = [
        {"name": name, "datatype": datatype, "shape": list(shape or (len(data),)), "data": data}
        for name, datatype, data in inputs
    ]
    return server.client.post(f"/v2/models/{model}/infer", json={"inputs": given, "id": "7"}).json()


def outputs(answer: Any) -> dict[str, Any]:
    assert answer.get("id") == "7", answer
    return {one["name"]: (one["datatype"], one["shape"], one["data"]) for one in answer["outputs"]}


@pytest.mark.parametrize("flags", [(), ("--pools", "preprocess=1,postprocess=1")], ids=["one pool", "three pools"])
def test_stages_may_be_processes_apart(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """How the answer is wanted travels along, and so does that a failure is told in the protocol's words."""
    (tmp_path / "stages.py").write_text(STAGES)
    with serving(tmp_path / "stages.py", *flags) as server:
        assert outputs(ask(server, ("x", "FP32", [1, 2]))) == {"result_x": ("FP32", [2], [20, 30])}
        assert ask(server, ("fail", "FP32", [1])).keys() == {"error"}
        assert ask(server, ("x", "INT8", [1.5])) == {
            "error": "input 'x' is INT8, which holds whole numbers, not 1.5"
        }  # fmt: skip
        assert server.predict({"x": 1}).json() == {"result_x": 20}


def test_asynchronous_scripts_take_tensors(tmp_path: Path) -> None:
    script = "import asyncio\nasync def predict(request):\n    await asyncio.sleep(0)\n    return request\n"
    (tmp_path / "later.py").write_text(script)
    with serving(tmp_path / "later.py") as server:
        assert outputs(ask(server, ("x", "INT64", [5]))) == {"x": ("INT64", [1], [5])}
        assert "error" in ask(server, ("x", "INT64", [0.5]))


def test_without_numpy_tensors_are_lists(tmp_path: Path) -> None:
    (tmp_path / "lists.py").write_text(
        "def predict(request):\n    return {'kind': type(request['x']).__name__, 'x': request['x']}\n"
    )
    with serving(tmp_path / "lists.py", "--python", interpreters.bare(tmp_path / "venv")) as server:
        answer = outputs(ask(server, ("x", "FP32", [1, 2, 3, 4]), shape=(2, 2)))
        assert answer == {"kind": ("BYTES", [1], ["list"]), "x": ("FP64", [2, 2], [1, 2, 3, 4])}


def test_rows_without_numpy_are_lists_too(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text("def predict_batch(items):\n    return [sum(item['x']) for item in items]\n")
    with serving(tmp_path / "sums.py", "--python", interpreters.bare(tmp_path / "venv")) as server:
        assert outputs(ask(server, ("x", "INT32", [1, 2, 3, 4]), shape=(2, 2))) == {"output": ("INT64", [2], [3, 7])}


def test_hints_are_the_arguments_of_tensors(tmp_path: Path) -> None:
    script = "def predict(names: list[str], scores: list[float], best: bool = True) -> dict:\n"
    script += "    order = sorted(zip(scores, names), reverse=best)\n    return {'first': order[0][1]}\n"
    (tmp_path / "typed.py").write_text(script)
    with serving(tmp_path / "typed.py") as server:
        names, scores = ("names", "BYTES", ["a", "b"]), ("scores", "FP32", [0.1, 0.9])
        assert outputs(ask(server, names, scores)) == {"first": ("BYTES", [1], ["b"])}
        assert outputs(ask(server, names, (*scores[:2], [0.9, 0.1]))) == {"first": ("BYTES", [1], ["a"])}
        said = ask(server, names, ("other", "FP32", [1, 2]))["error"]
        assert "other is not known" in said
        assert "scores is missing" in said
