"""The same packages and requests through the platform's own server and through Panglot.

Status and body are the same, or the row names its difference, which docs/dialects/tiinfer.md lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.side_by_side import Like, both, differs, listed
from support.tiinfer import Heard, Served

pytestmark = pytest.mark.timeout(180)

Ask = Callable[[Served], Heard]


@dataclass(frozen=True)
class Row:
    """One request. `differs` is its name in docs/dialects/tiinfer.md; then both answers are spelt out."""

    name: str
    ask: Ask
    differs: str = ""
    theirs: Heard | None = None
    ours: Heard | None = None


def op(name: str, **fields: Any) -> Ask:
    return lambda server: server.ask({"op": name, **fields})


def raises(kind: str, *text: str) -> Ask:
    return op("raise", kind=kind, **({"text": text[0]} if text else {}))


def body(content: bytes, **headers: str) -> Ask:
    return lambda server: server.ask(content=content, headers=headers)


def get(path: str, method: str = "GET") -> Ask:
    def ask(server: Served) -> Heard:
        response = server.client.request(method, path)
        # 404 and 405 have no body there; here it names the right path.
        text = "" if response.status_code in (404, 405) else response.text
        return Heard(response.status_code, text)

    return ask


NOT_JSON = Heard(400, "decoding error: decoding error")
UNSENDABLE = Heard(500, "encoding error: encoding error")


def refused(text: str) -> Heard:
    return Heard(400, Like(f"decoding error: {text}"))


ROWS = [
    # Spec 2.3: results
    Row("2.3 normal", lambda server: server.ask({"images": ["a"], "more": [1, 2.5, None, True]})),
    Row("2.3 nothing returned", op("return", kind="nothing")),
    Row("2.3 text returned", op("return", kind="text")),
    Row("2.3 number returned", op("return", kind="number")),
    Row("2.3 list returned", op("return", kind="list")),
    Row("2.3 tuple returned", op("return", kind="tuple")),
    Row("2.3 large integer returned", op("return", kind="big")),
    Row("2.3 keys that are no text", op("return", kind="keys")),
    Row("2.3 letters beyond ASCII", op("return", kind="letters")),
    Row(
        "2.3 NaN returned", op("return", kind="nan"), differs("NaN in answers"),
        Heard(200, {"value": "<NaN>", "most": "<Infinity>"}), Heard(200, {"value": None, "most": None}),
    ),
    *(Row(f"2.3 {kind} cannot be sent", op("return", kind=kind))
      for kind in ("set", "bytes", "object", "complex", "generator", "inside", "cycle")),
    # Spec 2.3: requests
    *(Row(f"2.3 request is {json.dumps(value)}", lambda server, value=value: server.ask(value))
      for value in (["a", 1], "text", 3, 2.5, True, None, {}, [])),
    Row("2.3 Content-Type is not looked at", body(b'{"a": 1}', **{"content-type": "multipart/form-data; boundary=x"})),
    Row("2.3 Content-Type is missing", body(b'{"a": 1}')),
    Row("2.3 UTF-16", body('{"名": 1}'.encode("utf-16"))),
    Row("2.3 UTF-16 without mark", body('{"名": 1}'.encode("utf-16-be"))),
    Row("2.3 UTF-32", body('{"名": 1}'.encode("utf-32"))),
    Row("2.3 UTF-8 with mark", body('{"名": 1}'.encode("utf-8-sig"))),
    Row("2.3 empty body", body(b"")),
    Row("2.3 equal keys", body(b'{"a": 1, "a": 2}')),
    Row("2.3 invalid JSON", body(b"{bad"), differs("Text of a decoding error"), NOT_JSON,
        refused("the JSON text is not valid")),
    Row("2.3 blanks only", body(b"  "), differs("Text of a decoding error"), NOT_JSON, refused("")),
    Row("4c NaN in a request", body(b'{"a": NaN}'), differs("Numbers and text in requests"),
        Heard(200, {"a": "<NaN>"}), refused("NaN")),
    Row("4c integer beyond 64 bit in a request", body(b"[123456789012345678901234567890]"),
        differs("Numbers and text in requests"), Heard(200, [123456789012345678901234567890]),
        refused("an integer")),
    Row("4c lone surrogate in a request", body(rb'"\ud800"'), differs("Numbers and text in requests"),
        Heard(200, "\ud800"), refused("a string holds a lone surrogate")),
    Row("2c depth 65", body(b"[" * 65 + b"]" * 65), differs("Numbers and text in requests"),
        Heard(200, json.loads("[" * 65 + "]" * 65)), refused("the JSON")),
    # Spec 2.3: failures
    Row("2.3 exception", raises("ValueError", "secret")),
    *(Row(f"2.3 {kind}{' with text' if text else ''}", raises(kind, *text))
      for kind in ("ValidationError", "DecodingError", "EncodingError", "ClientError", "ServerError")
      for text in ((), ("the reason",))),
    # Spec 2.2
    Row("2.2 GET /", get("/")),
    Row("2.2 HEAD /", get("/", "HEAD")),
    Row("2.2 GET on the predict path", get("/inference")),
    Row("2.2 PUT on the predict path", get("/inference", "PUT")),
    Row("2.2 unknown path", get("/nothing")),
    Row("2.2 trailing slash", lambda server: get("/inference/", "POST")(server)),
    Row("2.2 query string", lambda server: server.ask({"a": 1}, "/inference?b=2")),
    Row("2.2 predict path of the first generation", lambda server: server.ask({"a": 1}, "/v1/models/m:predict"),
        differs("Routes of the first generation"), Heard(404, ""), Heard(200, {"a": 1})),
    Row("2.2 list of models", lambda server: server.get("/v1/models"),
        differs("Routes of the first generation"), Heard(404, ""), Heard(200, ["m"])),
    # Spec 4
    *(Row(f"4.1 a dict with {key} is a 200", lambda server, key=key: server.ask({key: "failed"}))
      for key in ("error", "predict_err", "post_process_err")),
    Row("4.1 an error passes the whole chain", lambda server: server.ask({"images": []})),
    Row("4.2 the samples' broken handler", lambda server: server.ask({"broken": True})),
    Row("4.6 cwd, model_dir", op("about")),
    Row("4.17 instances need not be a list", op("instances")),
]  # fmt: skip


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Served, Served]]:
    env = {"TI_MODEL_DIR": "."}
    with both("tiinfer_ops", env=env) as found:
        yield found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row: Row, pair: tuple[Served, Served]) -> None:
    original, own = map(row.ask, pair)
    if not row.differs:
        assert own == original
        return
    assert (row.theirs, row.ours) == (original, own)


def test_largest_body_by_default(pair: tuple[Served, Served]) -> None:
    original, own = (server.ask(content=b'"' + b"x" * 11_000_000 + b'"') for server in pair)
    assert (original, own.status) == (Heard(413, "request body is too large"), 200)
    differs("Largest body")


def test_metrics_have_the_names(pair: tuple[Served, Served]) -> None:
    # Whatever has been asked before: tests of a file may be spread over several processes.
    assert [server.ask({"a": 1}).status for server in pair] == [200, 200]
    texts = [server.client.get("/metrics").text for server in pair]
    lines = [[line for line in text.splitlines() if line.startswith("mosec_")] for text in texts]
    original, own = ({line.split()[0].partition("{")[0] for line in found} for found in lines)
    assert original <= own
    assert all('mosec_service_throughput_total{code="200",endpoint="/inference"}' in text for text in texts)


def test_the_differences_listed_are_exactly_those_that_tests_show() -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    assert listed() == set(re.findall(r'differs\("([^"]+)"\)', sources))
