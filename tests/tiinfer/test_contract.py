"""The same packages and requests through the platform's own server and through Franca.

Status and body are the same, or the row names its difference, which docs/dialects.md lists.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.server import ROOT, wait_until
from support.tiinfer import Heard, Served, ours, theirs, write

pytestmark = pytest.mark.timeout(180)

Ask = Callable[[Served], Heard]


@dataclass(frozen=True)
class Row:
    """One request. `differs` is the difference as docs/dialects.md names it; then both answers are spelt out."""

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


INTERNAL = Heard(500, "inference internal error")
NOT_JSON = Heard(400, "decoding error: decoding error")
UNSENDABLE = Heard(500, "encoding error: encoding error")


class Like(str):
    """Equal to every text that holds it, whatever the case."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str.lower(self) in str.lower(other)


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
        "2.3 NaN returned", op("return", kind="nan"), "NaN in answers",
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
    Row("2.3 invalid JSON", body(b"{bad"), "Text of a decoding error", NOT_JSON,
        refused("the JSON text is not valid")),
    Row("2.3 blanks only", body(b"  "), "Text of a decoding error", NOT_JSON, refused("")),
    Row("4c NaN in a request", body(b'{"a": NaN}'), "Numbers and text in requests",
        Heard(200, {"a": "<NaN>"}), refused("NaN")),
    Row("4c integer beyond 64 bit in a request", body(b"[123456789012345678901234567890]"),
        "Numbers and text in requests", Heard(200, [123456789012345678901234567890]),
        refused("an integer")),
    Row("4c lone surrogate in a request", body(rb'"\ud800"'), "Numbers and text in requests", Heard(200, "\ud800"),
        refused("a string holds a lone surrogate")),
    Row("2c depth 65", body(b"[" * 65 + b"]" * 65), "Numbers and text in requests",
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
        "Routes of the first generation", Heard(404, ""), Heard(200, {"a": 1})),
    Row("2.2 list of models", lambda server: server.get("/v1/models"),
        "Routes of the first generation", Heard(404, ""), Heard(200, ["m"])),
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
    assert row.differs in listed()


# Rows that need servers of their own


@contextlib.contextmanager
def both(
    package: str | Path, *flags: str, env: dict[str, str] | None = None, ready: bool = True
) -> Iterator[tuple[Served, Served]]:
    with theirs(package, *flags, env=env, ready=False) as original, ours(package, *flags, env=env, ready=False) as own:
        if ready:
            own.wait_ready()
            original.wait_open()
        try:
            yield original, own
        finally:
            original.terminate()


def test_2_3_timeout() -> None:
    with both("tiinfer_ops", "--timeout", "600") as pair:
        original, own = (server.ask({"op": "sleep", "seconds": 2}) for server in pair)
        assert Heard(408, Like("timeout")) == original
        assert own == Heard(408, "inference timeout")
    assert "Text of a timeout" in listed()


def test_4_14_the_next_request_after_a_timeout_waits() -> None:
    """Their worker is interrupted by a signal; ours finishes its call, and the next request waits for it."""
    assert "After a timeout" in listed()
    with ours("tiinfer_ops", "--timeout", "400") as server:
        assert server.ask({"op": "sleep", "seconds": 1}).status == 408
        wait_until(lambda: server.ask({"a": 1}) == Heard(200, {"a": 1}))


def test_2_3_queue_full() -> None:
    with both("tiinfer_ops", "--capacity", "2", "--timeout", "10000") as pair:
        for server in pair:
            answers = server.ask_all([{"op": "sleep", "seconds": 0.4}] * 8)
            refusals = [answer for answer in answers if answer.status != 200]
            assert set(map(repr, refusals)) == {repr(Heard(429, "too many request: task queue is full"))}
            assert len(refusals) < 8


def test_2_3_body_too_large() -> None:
    with both("tiinfer_ops", "--max-request-size", "1000") as pair:
        for server in pair:
            assert server.ask("x" * 900).status == 200
            assert server.ask("x" * 2000) == Heard(413, "request body is too large")


def test_2_3_largest_body_by_default(pair: tuple[Served, Served]) -> None:
    original, own = (server.ask(content=b'"' + b"x" * 11_000_000 + b'"') for server in pair)
    assert (original, own.status) == (Heard(413, "request body is too large"), 200)
    assert "Largest body" in listed()


def test_2_3_shutting_down() -> None:
    with both("tiinfer_ops", "--timeout", "10000") as pair:
        for server in pair:
            codes, slow = stopping(server)
            assert codes == {"/": Heard(503, "gracefully shutting down"), "POST": codes["/"]}
            assert slow == Heard(200, {"op": "sleep", "seconds": 2})


def stopping(server: Served) -> tuple[dict[str, Heard], Heard]:
    """SIGTERM with one slow request under way: what kept connections hear meanwhile, and what that request hears."""
    import signal
    import threading
    import time

    import httpx

    from support.tiinfer import heard

    slow: list[Heard] = []
    thread = threading.Thread(
        target=lambda: slow.append(
            heard(httpx.post(server.url("/inference"), json={"op": "sleep", "seconds": 2}, timeout=30))
        )
    )
    with httpx.Client(base_url=server.url(), timeout=10) as get_client, httpx.Client(base_url=server.url()) as poster:
        for client in (get_client, poster):
            client.get("/")
        thread.start()
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.4)
        codes = {
            "/": heard(get_client.get("/")),
            "POST": heard(poster.post("/inference", json={"a": 1})),
        }
    thread.join()
    return codes, slow[0]


def test_2_3_worker_dies() -> None:
    with both("tiinfer_ops", "--timeout", "1500") as (original, own):
        assert (original.ask({"op": "die"}).status, original.ended()) == (408, 0)
        assert own.ask({"op": "die"}) == INTERNAL
        wait_until(lambda: own.ask({"a": 1}) == Heard(200, {"a": 1}))
    assert "A worker that dies" in listed()


def test_metrics_have_the_names(pair: tuple[Served, Served]) -> None:
    names = [
        {line.split()[0].partition("{")[0] for line in server.client.get("/metrics").text.splitlines() if "mosec_" in line
         and not line.startswith("#")}
        for server in pair
    ]  # fmt: skip
    assert names[0] <= names[1]
    labelled = 'mosec_service_throughput_total{code="200",endpoint="/inference"}'
    assert all(labelled in server.client.get("/metrics").text for server in pair)


# Loading

MODEL = "import tiinfer\n{before}\nclass {name}(tiinfer.Model):\n{init}    def load(self):\n        {load}\n"


def model(load: str, name: str = "Own", init: str = "", before: str = "") -> str:
    return MODEL.format(name=name, load=load, init=init, before=before)


READY = "    def __init__(self, model_dir):\n        super().__init__(model_dir)\n        self.ready = False\n"
LOADS = {
    "2.1 load returns False": (model("return False"), 0, 3, "load() returned False"),
    "2.1 load raises": (model("raise ValueError('no weights')"), 0, 3, "ValueError: no weights"),
    "4.3 load returns nothing": (model("pass"), 0, 3, "load() returned None"),
    "2.1 no model at all": ("import tiinfer\n", 1, 3, "there is no subclass of tiinfer.Model"),
}


@pytest.mark.parametrize("name", LOADS)
def test_failed_loads(name: str, tmp_path: Path) -> None:
    script, their_code, our_code, words = LOADS[name]
    folder = write(tmp_path / "own", script)
    with both(folder, ready=False) as (original, own):
        assert (original.ended(), own.ended()) == (their_code, our_code)
        assert words in own.lines[-1]
    assert "Exit code of a failed load" in listed()


def test_4_3_ready_without_a_result(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", model("self.ready = True", init=READY))
    with both(folder, ready=False) as (original, own):
        assert original.ended() == 0
        own.wait_ready()
        assert own.ask({"a": 1}) == Heard(200, {"a": 1})
        own.wait_log("load\\(\\) returned nothing, and self.ready is true")
    assert "What a load must return" in listed()


CLASSES = {
    "4.5 Alpha before Zed": (
        model("return True", "Zed") + "    def predict(self, request):\n        return 'Zed'\n"
        "class Alpha(Zed):\n    def predict(self, request):\n        return 'Alpha'\n", "Alpha", ""),
    "4.5 Model imported by name": (
        "from tiinfer import Model\nclass MyNet(Model):\n    def load(self):\n        return True\n"
        "    def predict(self, request):\n        return 'MyNet'\n", "MyNet", "Which class is served"),
    "4.20 append_worker beside a model": (
        model("return True", before="import mosec\nclass W(mosec.Worker):\n    def forward(self, data):\n"
              "        return 'W'\ntiinfer.append_worker(W)")
        + "    def predict(self, request):\n        return 'Own'\n", "Own", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_class_choice(name: str, tmp_path: Path) -> None:
    script, expected, differs = CLASSES[name]
    folder = write(tmp_path / "own", script)
    with both(folder, ready=False) as (original, own):
        own.wait_ready()
        assert own.ask({}) == Heard(200, expected)
        if differs:
            assert original.ended() == 0
            assert differs in listed()
        else:
            original.wait_open()
            assert original.ask({}) == Heard(200, expected)


def test_4_4_self_workers() -> None:
    """`self.workers` is not looked at there, and TI_INFERENCE_NUMS is."""
    values = [{"id": number, "sleep": 0.1} for number in range(8)]
    with both("tiinfer_workers", env={"TI_INFERENCE_NUMS": "3"}) as pair:
        for server in pair:
            wait_until(lambda server=server: len(pids(server.ask_all(values))) == 3)
    with both("tiinfer_workers") as (original, own):
        assert len(pids(original.ask_all(values))) == 1
        wait_until(lambda: len(pids(own.ask_all(values))) == 2)
    assert "self.workers" in listed()


def pids(answers: list[Heard]) -> set[int]:
    return {answer.body["pid"] for answer in answers}


# Stages and batches

STEPS = "import tiinfer\n{before}\nclass Steps(tiinfer.Model):\n    def load(self):\n        return True\n" + "".join(
    f"    def {name}(self, request):\n        return [[*item, '{name}'] for item in request] "
    f"if request and isinstance(request[0], list) else [*request, '{name}']\n"
    for name in ("preprocess", "predict", "postprocess")
)
SPLITS = {
    "2.4 one stage": ({}, "", ["preprocess", "predict", "postprocess"]),
    "2.4 both": ({"TI_PREPROCESS_NUMS": "1", "TI_POSTPROCESS_NUMS": "1"}, "", ["preprocess", "predict", "postprocess"]),
    "2.4 only preprocess": ({"TI_PREPROCESS_NUMS": "1"}, "", ["preprocess", "predict"]),
    "2.4 only postprocess": ({"TI_POSTPROCESS_NUMS": "1"}, "", ["predict", "postprocess"]),
    "1.3 set by the script": ({}, "tiinfer.set_ti_preprocess_nums(1)", ["preprocess", "predict"]),
    "2.4 batch, all in one stage": (
        {"TI_INFERENCE_MAX_BATCH_SIZE": "4"}, "", ["preprocess", "predict", "postprocess"]),
    "2.4 batch, both": (
        {"TI_INFERENCE_MAX_BATCH_SIZE": "4", "TI_PREPROCESS_NUMS": "1", "TI_POSTPROCESS_NUMS": "1"}, "",
        ["preprocess", "predict", "postprocess"]),
    "3 a count that is no number": ({"TI_INFERENCE_NUMS": "two"}, "", ["preprocess", "predict", "postprocess"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLITS)
def test_stages(name: str, tmp_path: Path) -> None:
    env, before, expected = SPLITS[name]
    folder = write(tmp_path / "own", STEPS.format(before=before))
    with both(folder, env=env) as pair:
        for server in pair:
            assert server.ask(["start"]) == Heard(200, ["start", *expected])


DICT_STYLE = model("return True") + (
    "    def preprocess(self, request):\n"
    "        return request if 'images' in request else {'error': 'invalid param'}\n"
)


def test_4_12_batches_for_a_dict_style_script(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", DICT_STYLE)
    with both(folder, env={"TI_INFERENCE_MAX_BATCH_SIZE": "4"}) as (original, own):
        assert original.ask({"images": []}) == Heard(200, "error")
        assert own.ask({"images": []}) == INTERNAL
        own.wait_log("hands lists to model_service.py:6 preprocess, which seems to expect a dict")
    assert "A batch result that is no list" in listed()


def test_4_13_one_bad_item_in_a_batch() -> None:
    env = {"TI_INFERENCE_MAX_BATCH_SIZE": "8"}
    plug = [{"id": 100 + number, "sleep": 0.5} for number in range(1)]
    values = [{"id": number, "bad": number == 3} for number in range(6)]
    with both("tiinfer_batch", env=env) as (original, own):
        outcomes = []
        for server in (original, own):
            answers = server.ask_all([*plug, *values])
            outcomes.append([answer.status for answer in answers[1:]])
        assert outcomes[1] == [500 if number == 3 else 200 for number in range(6)]
        assert outcomes[0].count(500) >= 1
    assert "A bad item in a batch" in listed()


NEGATIVE = ({"TI_PREPROCESS_NUMS": "-1"}, {"TI_INFERENCE_NUMS": "0"})


@pytest.mark.parametrize("env", NEGATIVE, ids=str)
def test_2_4_counts_that_are_too_small(env: dict[str, str]) -> None:
    with ours_failing(env) as own:
        assert own.ended() == 3
        assert "must be at least" in own.lines[-1]
    assert "Counts below their least" in listed()


@contextlib.contextmanager
def ours_failing(env: dict[str, str]) -> Iterator[Served]:
    from support.tiinfer import command

    server = Served(command("--port", "0"), ROOT / "tests/packages/tiinfer_ops", env, "http://127.0.0.1:1")
    try:
        yield server
    finally:
        server.stop()


# Pipelines of mosec workers


@pytest.fixture(scope="module")
def stream() -> Iterator[tuple[Served, Served]]:
    with both("tiinfer_stream") as pair:
        yield pair


STREAMS = (
    {"words": ["one", "two\nlines", ""]},
    {"words": []},
    {"words": ["one", "fail"]},
    {"words": ["fail"]},
    {"words": ["wrong"]},
    {"nothing": 1},
)


@pytest.mark.parametrize("value", STREAMS, ids=json.dumps)
def test_server_sent_events(value: Any, stream: tuple[Served, Served]) -> None:
    def parts(server: Served) -> tuple[int, str, str]:
        response = server.client.post("/inference", json=value)
        return response.status_code, response.headers["content-type"], response.text

    assert parts(stream[0]) == parts(stream[1])


def test_an_empty_body_on_a_stream(stream: tuple[Served, Served]) -> None:
    assert {repr(server.ask(content=b"")) for server in stream} == {repr(Heard(200, "no data provided"))}


def test_pipeline() -> None:
    """Three stages in a row: numbers, text, statuses. Which process answers is not compared."""
    with both("tiinfer_pipeline") as (original, own):
        for value in ({"number": 3}, {"number": 13}, {"number": 7}, {"text": 1}, [1]):
            expected, got = (comparable(server.ask(value)) for server in (original, own))
            assert got == expected
        for server in (original, own):
            assert server.client.post("/inference", json={"number": 3}).headers["content-type"] == "text/csv"


def comparable(answer: Heard) -> Heard:
    return Heard(answer.status, re.sub(r"(first|second),\d", "who", str(answer.body)))


# The table

ELSEWHERE = {
    "Counts below their least",
    "After a timeout",
    "Port while loading",
    "Time before a timeout",
    "Waiting for a batch",
    "State in split mode",
    "Unknown options",
    "Address",
    "Content type of errors",
    "Status page",
    "UUIDs and enums",
    "Lone surrogates in answers",
    "tiinfer.utils",
    "Pipelines",
    "Addresses in requests",
    "Log lines",
}
"""Differences that other tests of this folder show, or that have no answer to compare."""


def listed() -> set[str]:
    """The differences that docs/dialects.md lists."""
    text = (ROOT / "docs" / "dialects.md").read_text()
    section = text.partition("\n## tiinfer")[2].partition("\n## ")[0].partition("### Deliberately different")[2]
    return {line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")} - {"what", "---"}


def test_the_table_of_differences_is_exactly_what_the_tests_show() -> None:
    source = Path(__file__).read_text()
    shown = {row.differs for row in ROWS if row.differs} | set(re.findall(r'"([^"]+)" in listed\(\)', source))
    shown |= {differs for _, _, differs in CLASSES.values() if differs}
    assert listed() == shown | ELSEWHERE
