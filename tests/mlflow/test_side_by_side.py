"""mlflow's own scoring server and Panglot on the same models and requests: status, content type and body.

A case that differs names the row of docs/dialects/mlflow.md that says why.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import mlflow, originals
from support.originals import Answer, Case

pytestmark = [pytest.mark.rest("mlflow's scoring server in an environment of its own"), pytest.mark.timeout(400)]
JSON = {"Content-Type": "application/json"}
SPLIT = '{"dataframe_split":{"columns":["x","y"],"data":[[1,2],[3,4]]}}'


def sent(content: Any, kind: str = "application/json", differs: str = "", path: str = "/invocations") -> Case:
    """A request with JSON, or with a text of another type."""
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return Case("POST", path, text, {"Content-Type": kind} if kind else {}, differs=differs)


def order(op: str, differs: str = "") -> Case:
    """Have the model without a signature give one of its results."""
    return sent({"dataframe_split": {"columns": ["op"], "data": [[op]]}}, differs=differs)


ANY = [
    Case("GET", "/ping"),
    Case("GET", "/health"),
    Case("GET", "/version"),
    Case("GET", "/invocations"),
    Case("PUT", "/invocations", "x"),
    Case("POST", "/ping", "x"),
    Case("GET", "/nope"),
    Case("POST", "/nope", "x"),
    sent(SPLIT),
    sent({"dataframe_records": [{"x": 1, "y": 2}]}),
    sent({"instances": [[1, 2]]}),
    sent({"inputs": [[1, 2]]}),
    sent({"inputs": {"x": [1], "y": [2]}}),
    sent({"instances": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}),
    sent({"instances": [{"x": [1], "y": [2]}, {"x": 3}]}),
    sent({"inputs": [{"a": 1}]}),
    sent({"inputs": 3}),
    sent({"inputs": [[1, 2]], "other": 1, "params": {"a": 1}}),
    sent({"inputs": [["type", 1]]}),
    sent({"inputs": {"a": ["type", "b"]}}),
    sent({"dataframe_split": {"data": [["type"]]}}),
    sent({"dataframe_split": {"columns": ["x"], "index": [4, 5], "data": [[1], [2]]}}),
    sent({"dataframe_split": {"columns": ["x"], "data": [[1]], "more": 1}}),
    sent({"dataframe_split": {"columns": ["x"]}}),
    sent({"dataframe_split": [1]}),
    sent({"dataframe_records": {"x": [1]}}),
    sent({"a": 1}),
    sent({}),
    sent({"inputs": [[1]], "instances": [[1]]}),
    sent("[1]"),
    sent("1"),
    sent("x"),
    sent(""),
    sent(b"\xff"),
    sent('{"inputs": [[NaN, 1.0]]}', differs="NaN in answers"),
    sent("x,y\n1,2\n", "text/csv"),
    sent("x,y\n1,2\n", "text/csv; charset=utf-8"),
    sent(b"x,y\n\xff,2\n", "text/csv"),
    sent("", "text/csv"),
    sent("x", "text/plain"),
    sent("x", "application/x-www-form-urlencoded"),
    sent(SPLIT, "application/json; charset=utf-8"),
    sent(SPLIT, "application/json; charset=UTF-8"),
    sent(SPLIT, "application/json; charset=latin-1"),
    sent(SPLIT, "application/json; format=pandas-split"),
    sent(SPLIT, "application/json;"),
    sent(SPLIT, "Application/JSON"),
    sent(SPLIT, "", differs="A request without Content-Type"),
    sent("x", "application/vnd.apache.parquet"),
    *(order(op) for op in ("series", "named series", "frame", "dict", "scalar", "numpy scalar", "texts", "arrays")),
    order("empty"),
    order("raise"),
    order("absent"),
    order("type"),
    order("nan", differs="NaN in answers"),
    order("nans", differs="NaN in answers"),
    order("set", differs="Outputs that JSON cannot hold"),
    sent({"messages": [{"role": "user", "content": "hi"}], "t": 1}),
    sent({"input": "hi", "params": {"a": 1}}),
    sent('{"inputs": [[' + "1" * 30 + "]]}", differs="Numbers in requests"),
    sent('{"inputs": ' + "[" * 80 + "]" * 80 + "}", differs="Numbers in requests"),
]
SIGNATURE = [
    sent(SPLIT),
    sent({"dataframe_records": [{"x": 1}]}),
    sent({"dataframe_records": [{"y": 1, "z": "more", "x": 5}]}),
    sent({"dataframe_records": [{"x": "a", "y": 2}]}),
    sent({"dataframe_records": [{"x": "1.5", "y": 2}]}),
    sent({"dataframe_records": [{"x": None, "y": 2}]}, differs="NaN in answers"),
    sent({"inputs": [[1, 2]]}),
    sent({"inputs": {"x": [1.0], "y": [2.0]}}),
    sent({"instances": [{"x": 1.0, "y": 2.0}]}),
    sent({**json.loads(SPLIT), "params": {"t": 0.9}}),
    sent({**json.loads(SPLIT), "params": {"t": "q"}}),
    sent({**json.loads(SPLIT), "params": {"unknown": 1}}),
    sent({**json.loads(SPLIT), "params": 3}),
    sent("x,y\n1,2\n", "text/csv"),
    sent("x\n1\n", "text/csv"),
    sent("x,y\nq,2\n", "text/csv"),
]
TYPES = [
    sent({"dataframe_records": [{"n": 1, "s": "text", "b": True}]}),
    sent({"dataframe_records": [{"n": 1.5, "s": 3, "b": "maybe"}]}),
    sent({"dataframe_records": [{"n": 1, "s": "x", "b": False, "raw": "aGk=", "at": "2024-01-02T03:04:05"}]}),
    sent({"dataframe_records": [{"n": 1, "s": "x", "b": False, "raw": "!!"}]}),
    sent({"dataframe_records": [{"n": 1, "s": "x", "b": False, "list": [1.0, 2.0], "inner": {"k": 1}}]}),
    sent({"dataframe_records": [{"n": 1, "s": "x", "b": False, "inner": {"other": 1}}]}),
    sent({"dataframe_records": [{"n": None, "s": "x", "b": False}]}),
]
TENSOR = [
    sent({"inputs": [[1, 2, 3]]}),
    sent({"instances": [[1, 2, 3], [4, 5, 6]]}),
    sent({"inputs": [[1, 2]]}),
    sent({"inputs": [["a", "b", "c"]]}),
    sent({"dataframe_split": {"columns": ["a", "b", "c"], "data": [[1, 2, 3]]}}),
]
HINTS = [
    sent({"inputs": ["a", "b"]}),
    sent({"inputs": [1]}),
    sent({"inputs": "a"}),
    sent({"dataframe_split": {"data": [["a"]]}}),
    sent({"messages": []}),
]
CHAT = [
    sent({"messages": [{"role": "user", "content": "hello"}], "temperature": 0.5}),
    sent({"messages": [{"role": "user", "content": "hello"}]}),
    sent({"messages": "no list"}),
    sent({"dataframe_records": [{"messages": [{"role": "user", "content": "hello"}]}]}),
]
ARTIFACTS = [sent({"dataframe_records": [{"text": "one three two"}]}), sent({"inputs": [["one"]]})]
LOADER = [sent({"inputs": {"town": ["Ghent"], "size": [2]}}), sent({"inputs": {"town": ["Nowhere"], "size": [2]}})]
HOUSES = [
    sent({"dataframe_records": [{"town": "Ghent", "size": 2.0}, {"size": 1, "town": "Lille"}]}),
    sent({"dataframe_records": [{"town": "Nowhere", "size": 2.0}]}),
    sent({"dataframe_split": {"data": [["Ghent", 2.0]]}}),
    sent("town,size\nGhent,2\n", "text/csv"),
]
CHANCES = [sent({"inputs": [[0.5], [2.5]]}), sent({"inputs": [["a"]]}), sent({"dataframe_split": {"data": [[1]]}})]
PICKLED = [sent({"inputs": [[1, 2]]}), sent({"dataframe_records": [{"a": 1.5, "b": 2}]})]
TABLE: dict[str, list[Case]] = {
    "mlflow_any": ANY,
    "mlflow_signature": SIGNATURE,
    "mlflow_types": TYPES,
    "mlflow_tensor": TENSOR,
    "mlflow_hints": HINTS,
    "mlflow_chat": CHAT,
    "mlflow_artifacts": ARTIFACTS,
    "mlflow_loader": LOADER,
    "houses": HOUSES,
    "chances": CHANCES,
    "pickled": PICKLED,
}
SHOWN = {
    "NaN in answers": lambda original, own: "<NaN>" in str(original.body) and "None" in str(own.body),
    "A request without Content-Type": lambda original, own: (original.status, own.status) == (500, 415),
    "Outputs that JSON cannot hold": lambda original, own: (
        original.body == "Internal Server Error" and own.status == 500 and own.body["error_code"] == "INTERNAL_ERROR"
    ),
    "Numbers in requests": lambda original, own: own.status == 400,
}
"""How each difference shows."""
SET = re.compile(r"\{'(?:dataframe_split|dataframe_records|instances|inputs|columns|data|more)'[^}:]*\}")


@contextlib.contextmanager
def both(name: str) -> Iterator[tuple[str, str]]:
    """The addresses of both servers."""
    package: Path = mlflow.folder_of(name) if name.startswith("mlflow_") else mlflow.saved() / name
    with mlflow.theirs(package) as original, mlflow.ours(package, "--dev") as own:
        yield original.url, own.url


@pytest.fixture(scope="module", params=TABLE)
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[str, str, list[Case]]]:
    with both(request.param) as (theirs, ours):
        yield theirs, ours, TABLE[request.param]


def comparable(answer: Answer) -> Answer:
    """An answer without what differs between two runs of the original: frames of a traceback, the order of a set."""
    body = answer.body
    if isinstance(body, dict):
        body = dict(body)
        if "stack_trace" in body:
            body["stack_trace"] = body["stack_trace"].rstrip().rpartition("\n")[2]
        if isinstance(body.get("message"), str):
            body["message"] = SET.sub("{...}", body["message"])
    return Answer(answer.status, answer.headers, body)


@pytest.mark.document(
    "mlflow.03",
    "mlflow.04",
    "mlflow.05",
    "mlflow.06",
    "mlflow.07",
    "mlflow.08",
    "mlflow.09",
    "mlflow.10",
    "mlflow.11",
    "mlflow.12",
    "mlflow.13",
    "mlflow.14",
    "mlflow.15",
    "mlflow.16",
    "mlflow.22",
    "mlflow.23",
)
def test_every_answer_is_that_of_the_original(servers: tuple[str, str, list[Case]]) -> None:
    theirs, ours, cases = servers
    wrong = []
    for case in cases:
        original, own = (comparable(originals.ask(url, case)) for url in (theirs, ours))
        if case.differs:
            assert SHOWN[originals.differs("mlflow", case.differs)](original, own), f"{case}\n{original}\n{own}"
        elif original != own:
            wrong.append(f"{case}\n  theirs {original}\n  ours   {own}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.document("mlflow.17")
def test_a_call_that_takes_too_long() -> None:
    limit = {"MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT": "1"}
    package = mlflow.folder_of("mlflow_any")
    with mlflow.theirs(package, **limit) as theirs, mlflow.ours(package, env=limit) as ours:
        original, own = (originals.ask(url, order("slow")) for url in (theirs.url, ours.url))
        assert own == original
        assert (own.status, own.headers["content-type"]) == (504, ("application/json",))
        assert own.body == "Request processing time exceeded limit"


@pytest.mark.document("mlflow.07")
def test_a_table_in_parquet(tmp_path: Path) -> None:
    body = parquet(tmp_path)
    case = Case("POST", "/invocations", body, {"Content-Type": "application/vnd.apache.parquet"})
    with both("mlflow_signature") as (theirs, ours):
        answers = [originals.ask(url, case) for url in (theirs, ours)]
    assert answers[0] == answers[1]
    assert answers[1].body == {"predictions": [3.0]}


def parquet(folder: Path) -> bytes:
    """A table of one row, written by the original's environment."""
    script = "import sys, pandas; pandas.DataFrame({'x': [1.0], 'y': [2.0]}).to_parquet(sys.argv[1])"
    subprocess.run([mlflow.python(), "-c", script, folder / "table.parquet"], check=True)
    return (folder / "table.parquet").read_bytes()
