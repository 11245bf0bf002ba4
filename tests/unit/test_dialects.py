"""Every dialect has the shape of one: ours are checked as those that other distributions bring."""

from __future__ import annotations

import dataclasses
import secrets
from pathlib import Path

import pytest

from panglot import dialects
from panglot.dialects.base import Dialect, check
from panglot.errors import StartError
from panglot.web.contract import (
    PUBLIC,
    AdminRoute,
    Contract,
    InferRoute,
    Listener,
    ModelName,
    Page,
    RpcMethod,
    RpcService,
    TokenForm,
    neutral_error,
)
from panglot.web.contract_check import problems

OURS = sorted(dialects.known())


@pytest.mark.parametrize("name", OURS)
def test_our_dialects_have_the_shape_of_one(name: str) -> None:
    assert check(dialects.find(name)) == []


def test_a_folder_without_a_worker_half_is_no_dialect(tmp_path: Path) -> None:
    (tmp_path / "detect.py").write_text("LOOKS_FOR = ''\ndef detect(path): ...\n")
    (tmp_path / "contract.py").write_text("def contract(package, settings): ...\n")
    (tmp_path / "request.py").write_text("def ask(about, given): ...\n")
    wrong = check(Dialect("x", "x", tmp_path, "somebody"))
    assert wrong == ["request.py must define make_request", "worker/__init__.py is missing"]


def test_a_folder_among_ours_without_a_worker_half_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "detect.py").write_text("LOOKS_FOR = ''\ndef detect(path): ...\n")
    monkeypatch.setattr(dialects, "HERE", tmp_path)
    with pytest.raises(StartError, match=r"dialect 'half' cannot be used: contract.py is missing; .*half/__init__.py"):
        dialects.known.__wrapped__()


@pytest.mark.parametrize(
    ("module", "text", "problem"),
    [
        ("detect", "def detect(path): ...", "detect.py must define LOOKS_FOR"),
        ("detect", "LOOKS_FOR = ''\ndef detect(): ...", r"detect.py detect\(\) must take 1 or 2 arguments"),
        ("contract", "def contract(a, b, c): ...", r"contract.py contract\(a, b, c\) must take 2 arguments"),
        ("settings", "", "settings.py must define Settings"),
    ],
)
def test_a_module_of_ours_is_checked_when_it_is_loaded(
    module: str, text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"ours_{secrets.token_hex(4)}"
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StartError, match=f"'x' cannot be used: {problem}"):
        Dialect("x", name, tmp_path / name).load(module)


GOOD = Contract(routes=(InferRoute("/a", "/a"),), error=neutral_error)
SERVICE = RpcService("p", "S", (RpcMethod("M", "In", "Out"),), {"In": ("a 1 string",), "Out": ()})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"routes": (InferRoute("a", "a"),)}, "must begin with a slash"),
        ({"routes": (InferRoute("/{a}/{a}", "x"),)}, "two free segments have one name"),
        ({"routes": (InferRoute("/{a...}/b", "x"),)}, "only the end of a path"),
        ({"routes": (InferRoute("/a", "x", methods=("post",)),)}, "methods are some of GET"),
        ({"routes": (InferRoute("/a", "x", methods="POST"),)}, "methods are some of GET"),  # type: ignore[arg-type]
        ({"routes": (InferRoute("/a", "x", access="anyone"),)}, "access is one of"),
        ({"routes": (InferRoute("/a/{b}", "x", model=ModelName(segment="c")),)}, "no free segment {c}"),
        ({"routes": (InferRoute("/a/{b}", "x", model=ModelName(field="model")),)}, "in no field of a body"),
        ({"routes": (InferRoute("/a", "x", spooled=True, model=ModelName(field="m")),)}, "a body in memory"),
        ({"pages": (Page("/a", PUBLIC, lambda model, request: None, model=ModelName(field="m")),)}, "reads no field"),
        ({"admin": (AdminRoute("/a", lambda models, request: None, methods=()),)}, "methods are some of GET"),
        ({"token_forms": (TokenForm(header="X-Api-Key"),)}, "in lower case"),
        ({"services": (dataclasses.replace(SERVICE, messages={}),)}, "there is no message In"),
        ({"services": (dataclasses.replace(SERVICE, messages={"In": ("a string",), "Out": ()}),)}, "is not like"),
        ({"listeners": (Listener(1, dataclasses.replace(GOOD, routes=(InferRoute("a", "a"),))),)}, "port 1: the path"),
    ],
)  # fmt: skip
def test_a_contract_that_cannot_be_kept_says_what_to_mend(change: dict[str, object], words: str) -> None:
    assert list(problems(dataclasses.replace(GOOD, services=(SERVICE,)))) == []
    (problem, *_) = problems(dataclasses.replace(GOOD, **change))  # type: ignore[arg-type]
    assert words in problem
