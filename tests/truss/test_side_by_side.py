"""Truss's own server and Panglot on the same packages and requests: status, headers that matter, and body.

A case that differs names the row of docs/dialects/truss.md that says why.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import originals, truss
from support.originals import Case
from support.server import PACKAGES, Server, serving

pytestmark = [pytest.mark.rest("installs Truss's server"), pytest.mark.timeout(900)]

JSON = {"Content-Type": "application/json"}
OCTETS = {"Content-Type": "application/octet-stream"}
PREDICT = "/v1/models/model:predict"
HEADERS = ("content-type", "x-baseten-error-source", "x-baseten-error-code", "x-own")


def op(act: str, differs: str = "", accept: str = "", **more: Any) -> Case:
    headers = {**JSON, **({"Accept": accept} if accept else {})}
    return Case("POST", PREDICT, json.dumps({"op": act, **more}), headers, differs=differs)


def sent(content: bytes | str, kind: str = "application/json", path: str = PREDICT, differs: str = "") -> Case:
    return Case("POST", path, content, {"Content-Type": kind} if kind else {}, differs=differs)


ECHO = [
    Case("GET", "/"),
    Case("GET", "/v1/models/model"),
    Case("GET", "/v1/models/any"),
    Case("GET", "/v1/models/model/loaded"),
    Case("GET", "/v1/models/model/schema"),
    Case("GET", "/v1/models/model:predict"),
    Case("GET", "/ping"),
    Case("GET", "/nope"),
    Case("POST", "/nope", "x"),
    Case("PUT", PREDICT, "x"),
    Case("POST", "/v1/models/model", "x"),
    Case("GET", "/invocations"),
    Case("GET", "/v1/embeddings"),
    sent('{"a": 1}'),
    sent('{"a": 1}', ""),
    sent('{"a": 1}', "application/x-www-form-urlencoded"),
    sent('{"a": 1}', "text/plain; charset=utf-8"),
    sent('{"a": 1}', path="/v1/models/other:predict"),
    sent('{"a": 1}', path="/v1/models/model:predict_binary"),
    sent('{"a": 1}', path="/invocations"),
    *(sent(text) for text in ("[1, 2.5, true, null, -1e3]", '"text"', "5", "null", '"caf\\u00e9"', "{}", "[]")),
    *(sent(text) for text in ("x", "", "{", '{"a": }', "[1,]")),
    sent("[NaN]", differs="Numbers in requests"),
    sent(b'"\xff"', differs="Bodies that are no UTF-8"),
    *(op(name) for name in ("raise", "tea", "detail", "starlette", "numpy", "bytes", "set", "tuple", "none")),
    *(op(name) for name in ("letters", "json", "text", "empty", "events", "given_names", "stream", "bytestream")),
    op("nan", differs="NaN in answers"),
    op("stream", accept="application/json"),
    op("halves", accept="application/json"),
    op("stream", accept="application/json, text/plain"),
    op("breaks", accept="application/json"),
    op("events", accept="application/json"),
    op("about"),
    op("secret", name="spare"),
    op("secret", name="api_key"),
    op("secret", name="other"),
    op("secret", name="*"),
    *(sent("{}", path=f"/v1/{path}") for path in ("chat/completions", "completions", "embeddings", "messages")),
    sent("{}", path="/v1/responses"),
    sent("{", path="/v1/responses", differs="Bodies for a method that is missing"),
]


@contextlib.contextmanager
def both(package: str, app: Path) -> Iterator[tuple[str, Server]]:
    with truss.theirs(PACKAGES / package, app) as original, serving(package) as own:
        yield original.url, own


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Server]]:
    with both("truss_echo", tmp_path_factory.mktemp("app")) as urls:
        yield urls


def compare(urls: tuple[str, Server], case: Case) -> None:
    theirs, own = (originals.ask(url, case, HEADERS) for url in (urls[0], urls[1].url))
    if not case.differs:
        assert own == theirs
        return
    originals.differs("truss", case.differs)
    assert own != theirs


@pytest.mark.parametrize("case", ECHO, ids=str)
def test_echo(echo: tuple[str, Server], case: Case) -> None:
    compare(echo, case)


def test_a_stream_that_breaks_is_seen_to_break(echo: tuple[str, Server]) -> None:
    originals.differs("truss", "Streams that break")
    body = {"op": "breaks"}
    theirs = httpx.post(echo[0] + PREDICT, json=body)
    assert (theirs.status_code, theirs.text) == (200, "a")
    with pytest.raises(httpx.RemoteProtocolError), httpx.stream("POST", echo[1].url + PREDICT, json=body) as own:
        assert own.status_code == 200
        own.read()
