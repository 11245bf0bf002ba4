"""Every dialect has the shape of one: ours are checked as those that other distributions bring."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from panglot import dialects
from panglot.dialects.base import Dialect, check
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
    dialect = dialects.find(name)
    assert check(dialect) == []
    assert (dialect.worker_half / "__init__.py").is_file()


def test_a_folder_without_a_worker_half_is_no_dialect(tmp_path: Path) -> None:
    (tmp_path / "detect.py").write_text("LOOKS_FOR = ''\ndef detect(path): ...\n")
    (tmp_path / "contract.py").write_text("def contract(package, settings): ...\n")
    (tmp_path / "request.py").write_text("def ask(about, given): ...\n")
    wrong = check(Dialect("x", "x", tmp_path, "somebody"))
    assert wrong == ["request.py must define make_request", "worker/__init__.py is missing"]


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
