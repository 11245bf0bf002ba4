"""Truss's own server and Panglot on the same packages and requests: status, headers that matter, and body.

A case that differs names the row of docs/dialects/truss.md that says why.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy
import pytest

from panglot_worker.dialects.truss import binary
from support import originals, truss
from support.originals import Case
from support.server import PACKAGES, Server, panglot, serving

pytestmark = [pytest.mark.rest("installs Truss's server"), pytest.mark.timeout(900)]

JSON = {"Content-Type": "application/json"}
PREDICT = "/v1/models/model:predict"
HEADERS = ("content-type", "x-baseten-error-source", "x-baseten-error-code", "x-own")


def op(act: str, differs: str = "", accept: str = "", **more: Any) -> Case:
    headers = {**JSON, **({"Accept": accept} if accept else {})}
    return Case("POST", PREDICT, json.dumps({"op": act, **more}), headers, differs=differs)


def sent(content: bytes | str, kind: str = "application/json", path: str = PREDICT, differs: str = "") -> Case:
    return Case("POST", path, content, {"Content-Type": kind} if kind else {}, differs=differs)


def packed(content: bytes, differs: str = "") -> Case:
    return sent(content, "application/octet-stream", differs=differs)


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


ARRAY = {"image": [[1, 2], [3, 4]], "when": datetime.date(2026, 8, 18), "span": datetime.timedelta(1, 2, 3),
         "price": decimal.Decimal("1.50"), "id": uuid.UUID(int=7), "raw": b"\x00\xff", "n": -70000, "f": 0.5,
         "late": datetime.datetime(2026, 8, 18, 12, tzinfo=datetime.UTC), "noon": datetime.time(12)}  # fmt: skip
MSGPACK = [
    packed(binary.dumps(ARRAY)),
    packed(binary.dumps({"a": numpy.arange(6, dtype="f4").reshape(2, 3), "b": numpy.int64(5)})),
    sent(binary.dumps({"a": 1}), "Application/Octet-Stream; v=1"),
    packed(binary.dumps({"op": "numpy"})),
    packed(binary.dumps({"op": "bytes"})),
    packed(binary.dumps({"op": "tuple"})),
    packed(binary.dumps({"op": "stream"})),
    packed(binary.dumps({"op": "json"})),
    packed(binary.dumps({"op": "raise"})),
    packed(binary.dumps([{b"nd": True, b"kind": b"O", b"type": "|O", b"shape": [1], b"data": b""}])),
    packed(b"\x93\x01", differs="Words of refusals"),
    packed(b""),
    packed(b"\x01\x02"),
    packed(b"{}"),
]
ASYNC = [
    *(op(name) for name in ("echo", "stream", "plain stream", "response", "moved", "raise", "tea")),
    op("stream", accept="application/json"),
    op("breaks", accept="application/json"),
    op("response", accept="application/json"),
    sent("x"),
]
CHAT = {"model": "m", "messages": [{"role": "user", "content": "one two"}]}
OPENAI = [
    sent(json.dumps(CHAT), path="/v1/chat/completions"),
    sent(json.dumps({**CHAT, "stream": True}), path="/v1/chat/completions"),
    Case("POST", "/v1/chat/completions", json.dumps({**CHAT, "stream": True}), {**JSON, "Accept": "application/json"}),
    Case("POST", "/v1/chat/completions", json.dumps({**CHAT, "stream": True}),
         {**JSON, "Accept": "application/json", "User-Agent": "OpenAI/Python 1.61.0"}),
    sent("{}", path="/v1/chat/completions"),
    sent("x", path="/v1/chat/completions"),
    sent('{"model": "m", "prompt": "abc"}', path="/v1/completions"),
    sent('{"model": "m", "input": ["a", "bc"]}', path="/v1/embeddings"),
    sent("{}", path="/v1/messages"),
    sent("{}", path="/v1/responses"),
    sent('{"a": 1}'),
    Case("GET", "/v1/chat/completions"),
]  # fmt: skip
PYDANTIC = [
    sent('{"name": "x", "boxes": [{"width": 2, "height": 3}, {"width": 1}]}'),
    sent('{"name": "x"}', "text/plain"),
    sent("{}"),
    sent('{"name": 1, "boxes": [{"width": "a"}, {}]}'),
    sent("[]"),
    sent("x"),
    sent(""),
    sent(binary.dumps({"name": "x", "boxes": [{"width": 2}]}), "application/octet-stream"),
    sent(binary.dumps({"name": 1}), "application/octet-stream"),
    Case("GET", "/v1/models/model/schema"),
]
REQUEST = [
    Case("POST", PREDICT + "?a=1&b=two", '{"x": 1}', {**JSON, "X-Own": "mine"}),
    sent("[1]"),
    sent("x"),
]
RAW = [sent(b"\x00\xff", "image/png"), sent("abc", "text/plain"), sent("", ""), sent("{", "application/json")]
STAGES = [
    sent("{}"),
    *(sent(json.dumps({"fail": what})) for what in ("preprocess", "tea", "postprocess")),
    *(sent(json.dumps({"give": what})) for what in ("generator", "response", "late generator", "late response")),
    sent('{"give": "late stream"}'),
]
HEALTH = [
    *(Case("GET", path) for path in ("/v1/models/model", "/v1/models/model/loaded", "/ping")),
    sent("{}"),
    Case("GET", "/v1/models/model"),
    sent("x"),
    sent("{}"),
    *(Case("GET", path) for path in ("/v1/models/model", "/v1/models/model/loaded", "/ping")),
    sent('{"a": 1}'),
    Case("GET", "/v1/models/model"),
]
OTHERS = {
    "truss_async": ASYNC, "truss_openai": OPENAI, "truss_pydantic": PYDANTIC, "truss_request": REQUEST,
    "truss_raw": RAW, "truss_stages": STAGES, "truss_health": HEALTH,
}  # fmt: skip


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
        assert own == theirs, case
        return
    originals.differs("truss", case.differs)
    assert own != theirs, case
    if case.differs == "Words of refusals":
        assert (own.status, own.headers, list(own.body)) == (theirs.status, theirs.headers, list(theirs.body))


@pytest.mark.document("truss.32")
@pytest.mark.parametrize("case", [*ECHO, *MSGPACK], ids=str)
def test_the_same_request_has_the_same_answer(echo: tuple[str, Server], case: Case) -> None:
    compare(echo, case)


@pytest.mark.document("truss.32")
@pytest.mark.parametrize("package", OTHERS)
def test_packages_of_every_kind_have_the_same_answers(package: str, tmp_path: Path) -> None:
    """In the order of the table: some of these models count their calls."""
    with both(package, tmp_path) as urls:
        for case in OTHERS[package]:
            compare(urls, case)


@pytest.mark.document("truss.07", "truss.08", "truss.32")
@pytest.mark.parametrize("package", ["truss_arguments", "truss_no_predict", "truss_request_twice", "truss_load"])
def test_what_ends_the_original_at_its_start_ends_panglot_too(package: str, tmp_path: Path) -> None:
    folder = PACKAGES / "broken" / package
    with truss.theirs(folder, tmp_path, ready="") as original:
        original.ended()
        assert "Exception while loading model" in original.log
    done = panglot("serve", str(folder), "--port", "0", seconds=60)
    assert done.returncode == 3, done.stderr
    assert f"{package}/model/model.py:" in done.stderr


@pytest.mark.document("truss.40")
def test_a_stream_that_breaks_is_seen_to_break(echo: tuple[str, Server]) -> None:
    originals.differs("truss", "Streams that break")
    body = {"op": "breaks"}
    theirs = httpx.post(echo[0] + PREDICT, json=body, timeout=60)
    assert (theirs.status_code, theirs.text) == (200, "a")
    with httpx.stream("POST", echo[1].url + PREDICT, json=body, timeout=60) as own:
        assert own.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            own.read()


@pytest.mark.document("truss.02")
@pytest.mark.parametrize("words", ["from . import words", "from .words import WORD", "from model import words"])
def test_a_model_may_import_its_siblings_relatively(words: str, tmp_path: Path) -> None:
    """The original's own message says that it cannot; that message is never shown."""
    package = tmp_path / "own"
    (package / "model").mkdir(parents=True)
    (package / "config.yaml").write_text("model_name: relative\n")
    (package / "model" / "words.py").write_text("WORD = 'beside'\n")
    value = words.rpartition(" ")[2].replace("words", "words.WORD")
    script = f"{words}\n\n\nclass Model:\n    def predict(self, request):\n        return {value}\n"
    (package / "model" / "model.py").write_text(script)
    with truss.theirs(package, tmp_path / "app") as original, serving(package) as own:
        answers = [originals.ask(url, sent("{}"), HEADERS) for url in (original.url, own.url)]
    assert answers[0] == answers[1]
    assert answers[1].body == "beside"


def test_pages_that_only_one_of_the_two_has(echo: tuple[str, Server]) -> None:
    originals.differs("truss", "Playground")
    pages = [httpx.get(url + "/", headers={"accept": "text/html"}, timeout=60) for url in (echo[0], echo[1].url)]
    assert [page.text == "true" for page in pages] == [True, False]
    assert "<html" in pages[1].text
    originals.differs("truss", "`POST /hot-reload`")
    answers = [httpx.post(url + "/hot-reload", json={}, timeout=60) for url in (echo[0], echo[1].url)]
    assert (answers[0].status_code != 404, answers[1].status_code) == (True, 404)
