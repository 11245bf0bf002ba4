"""Cog's own servers, the old one in Python and the new one in Rust, and Panglot on the same package and requests.

The old one's answers are the aim. A case that differs names the row of docs/dialects/cog.md that says why.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import cog_cases, originals
from support.originals import Case, Original
from support.server import PACKAGES, Server, serving

pytestmark = [pytest.mark.rest("installs two versions of Cog"), pytest.mark.timeout(900)]
PACKAGE = "cog_measured"
JSON = {"Content-Type": "application/json"}
COMPARED = ("input", "output", "error", "status", "detail")
"""Of an answer; ids and times are new each time."""
TRACEBACK = "the traceback in `logs` of a failed prediction"
PLAIN_PATH = "a plain path for a file"
NULL_INPUT = "`input` that is null"


def predict(body: str, differs: str = "") -> Case:
    return Case("POST", "/predictions", body, JSON, differs=differs)


def given(text: str) -> str:
    return f'{{"input": {{{text}}}}}'


FILE = "data:text/plain;base64,aGk="
PICTURE = f'"op": "image", "image": "{FILE}"'
OLD = [
    predict(given("")),
    predict('{"input": null}', NULL_INPUT),
    predict(given('"n": "3", "kind": "b"')),
    predict(given('"unknown": 1')),
    predict(given('"op": "file"')),
    predict(given('"op": "native"')),
    predict(given(PICTURE)),
    predict(given('"op": "raise"'), TRACEBACK),
    predict(given('"n": 9')),
    predict(given('"n": 0')),
    predict(given('"n": "x"')),
    predict(given('"kind": "z"')),
    predict(given('"image": "/etc/hostname"')),
    Case("PUT", "/predictions/a", '{"id": "b", "input": {}}', JSON),
    Case("GET", "/nowhere"),
]
NEW = [
    predict(given("")),
    predict(given('"op": "file"')),
    predict(given(PICTURE)),
    predict(given('"image": "/etc/hostname", "op": "image"'), PLAIN_PATH),
    Case("PUT", "/predictions/a", '{"id": "b", "input": {}}', JSON),
    Case("POST", "/predictions", "{}", {**JSON, "Accept": "text/event-stream"}),
    Case("POST", "/predictions/nobody/cancel"),
]


def running(python: str, folder: Path = PACKAGES / PACKAGE, **variables: str) -> Any:
    # The new server starts its worker as `python`.
    path = {"PATH": f"{Path(python).parent}:/usr/bin:/bin", "PORT": originals.PORT, **variables}
    return originals.running([python, "-m", "cog.server.http"], folder, "/health-check", env=path)


def old_python() -> str:
    return originals.interpreter("cog-old", "cog==0.9.25", "pydantic<2", "setuptools")


def new_python() -> str:
    return originals.interpreter("cog-new", "cog==0.23.1", "coglet==0.23.1")


@pytest.fixture(scope="module")
def old() -> Iterator[Original]:
    with running(old_python()) as server:
        ready(server)
        yield server


@pytest.fixture(scope="module")
def new() -> Iterator[Original]:
    with running(new_python(), COG_PREDICT_TYPE_STUB="predict.py:Predictor") as server:
        ready(server)
        yield server


def ready(server: Original) -> None:
    """Both answer their health check before the script is loaded."""
    is_ready = Case("GET", "/health-check")
    originals.wait_until(lambda: originals.ask(server.url, is_ready).body["status"] == "READY", 60)


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with serving(PACKAGE, "--workers", "1") as server:
        yield server


def shown(answer: originals.Answer, keys: tuple[str, ...] = COMPARED) -> tuple[int, Any]:
    body = answer.body
    return answer.status, {key: body[key] for key in keys if key in body} if isinstance(body, dict) else body


@pytest.mark.document("cog.19")
@pytest.mark.parametrize("case", OLD, ids=str)
def test_as_the_old_server(old: Original, own: Server, case: Case) -> None:
    expected, answer = originals.ask(old.url, case), originals.ask(own.url, case)
    if case.differs == NULL_INPUT:
        originals.differs("cog", case.differs)
        assert (expected.status, answer.status, answer.body["status"]) == (500, 200, "succeeded")
        return
    assert shown(answer) == shown(expected)
    if isinstance(expected.body, dict) and "logs" in expected.body:
        if case.differs:
            originals.differs("cog", case.differs)
            assert expected.body["logs"].startswith(answer.body["logs"])
        else:
            # The original reads its two streams on two threads: between them there is no order.
            assert sorted(answer.body["logs"].splitlines()) == sorted(expected.body["logs"].splitlines())
        assert expected.body.keys() - answer.body.keys() <= {"webhook", "webhook_events_filter", "output_file_prefix"}


@pytest.mark.document("cog.20")
@pytest.mark.parametrize("case", NEW, ids=str)
def test_as_the_new_server(new: Original, own: Server, case: Case) -> None:
    keys = ("output", "status", "detail", "error") if "text/event-stream" in str(case.headers) else COMPARED[1:]
    expected, answer = originals.ask(new.url, case), originals.ask(own.url, case)
    if case.differs:
        originals.differs("cog", case.differs)
        assert (expected.status, answer.status) == (200, 422)
        return
    theirs, ours = shown(expected, keys), shown(answer, keys)
    # The new one leaves out what is null.
    assert (ours[0], {key: value for key, value in ours[1].items() if value is not None}) == theirs


def events(url: str, prompt: str) -> list[tuple[str, Any]]:
    """Name and content of the events of a prediction, without what is new each time."""
    body = {"input": {"prompt": prompt, "pause": 0}, "context": {"who": "you"}}
    answer = httpx.post(f"{url}/predictions", json=body, headers={"accept": "text/event-stream"}, timeout=60)
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in answer.text.split("\n\n") if block]
    told = [(block["event"], json.loads(block["data"])) for block in blocks if "event" in block]
    compared = ("status", "output", "logs", "source", "data", "name", "value", "mode", "chunk", "index")
    shown = [(name, {key: value for key, value in content.items() if key in compared}) for name, content in told]
    shown[-1][1]["metrics"] = {key: value for key, value in told[-1][1]["metrics"].items() if key != "predict_time"}
    return shown


SAME = {name: case for name, case in cog_cases.GOOD.items() if not case.differs}
SAME_REFUSED = {name: case for name, case in cog_cases.REFUSED.items() if not case.differs}


@pytest.mark.document("cog.19", "cog.30")
def test_the_cases_are_those_of_the_old_server(old_cases: Original) -> None:
    """Each with the answer that Panglot is asked for in `test_cases`."""

    def asked(given: dict[str, Any]) -> Any:
        return originals.ask(old_cases.url, predict(json.dumps({"input": given})))

    for name, case in SAME.items():
        assert asked(case.given).body.get("output") == case.output, name
    for name, (how, given, error) in cog_cases.FAILED.items():
        answer = asked({"case": how, **given})
        assert (answer.status, answer.body["status"], answer.body["error"]) == (200, "failed", error), name
    for name, refused in SAME_REFUSED.items():
        answer = asked(refused.given if name == "nothing" else {"case": "inputs", **refused.given})
        (problem,) = answer.body["detail"]
        assert (answer.status, problem["loc"]) == (422, ["body", "input", refused.field]), name
        assert (problem["msg"], problem["type"]) == (refused.message, refused.type), name


OTHER_OUTPUT = "an output that is not of the type of its hint"


@pytest.mark.document("cog.19")
def test_an_output_of_another_type_is_sent_as_it_is(tmp_path: Path) -> None:
    originals.differs("cog", OTHER_OUTPUT)
    (tmp_path / "predict.py").write_text(
        "from cog import BasePredictor\n\n\nclass Predictor(BasePredictor):\n"
        "    def predict(self, text: str) -> int:\n        return text\n"
    )
    (tmp_path / "cog.yaml").write_text("predict: predict.py:Predictor\n")
    cases = [predict(given('"text": "3"')), predict(given('"text": "x"'))]
    with running(old_python(), tmp_path) as original, serving(tmp_path, "--workers", "1") as own:
        ready(original)
        cast, refused = (originals.ask(original.url, each) for each in cases)
        assert (cast.body["output"], refused.status) == (3, 500)
        assert [originals.ask(own.url, each).body["output"] for each in cases] == ["3", "x"]


@pytest.fixture(scope="module")
def old_cases() -> Iterator[Original]:
    with running(old_python(), PACKAGES / "cog_cases") as server:
        ready(server)
        yield server


NEAREST = "a value that has the type of a later member of a `Union`"
UNIONS = [
    *('"rows": [[1, "2"], [3]]', '"rows": [1]', '"rows": [["x", 1], ["y"], 3]', '"rows": {}', '"rows": null'),
    *('"rows": [[null]]', '"deep": [[["a", 1]]]', '"deep": [[[{}]]]'),
    *('"number": 3', '"number": "3"', '"number": "x"', '"number": 10', '"number": true', '"number": null'),
    *('"text": "3"', '"text": 1.5', '"text": true', '"text": {}'),
    *('"prompt": "a"', '"prompt": ["a", "b"]', '"prompt": 5', '"prompt": [1]', '"prompt": [{}]', '"prompt": {}'),
    *('"mixed": [1, "a"]', '"mixed": [{}, 1, []]', '"picture": "hello"', f'"picture": "{FILE}"'),
    *(f'"pictures": "{FILE}"', f'"pictures": ["{FILE}", "{FILE}"]', '"flag": "true"', '"flag": 2', '"flag": "x"'),
    *('"names": ["aa", {}, "b"]', '"names": {"a": 1}', '"counts": [1, -1, "x"]', '"plain": true'),
]
NEAR = ('"number": 2.5', '"text": 3', '"flag": 1', '"mixed": ["2"]')


@pytest.mark.document("cog.04", "cog.11", "cog.19")
def test_unions_and_lists_of_lists_are_those_of_the_old_server(old_unions: Original, own_unions: Server) -> None:
    for case in map(predict, map(given, UNIONS)):
        expected, answer = originals.ask(old_unions.url, case), originals.ask(own_unions.url, case)
        assert shown(answer) == shown(expected), case
    theirs, ours = (
        httpx.get(f"{url}/openapi.json", timeout=60).json()["components"]["schemas"]["Input"]
        for url in (old_unions.url, own_unions.url)
    )
    assert ours == theirs


@pytest.mark.document("cog.04")
def test_a_value_with_the_type_of_a_member_of_a_union_is_not_cast(old_unions: Original, own_unions: Server) -> None:
    originals.differs("cog", NEAREST)
    for case in map(predict, map(given, NEAR)):
        cast, own = (originals.ask(url, case).body["input"] for url in (old_unions.url, own_unions.url))
        sent = json.loads(case.content or "")["input"]
        ((name, value),) = sent.items()
        assert (repr(own[name]), repr(cast[name]) == repr(value)) == (repr(value), False), case


@pytest.fixture(scope="module")
def old_unions() -> Iterator[Original]:
    with running(old_python(), PACKAGES / "cog_unions") as server:
        ready(server)
        yield server


@pytest.fixture(scope="module")
def own_unions() -> Iterator[Server]:
    with serving("cog_unions", "--workers", "1") as server:
        yield server


@pytest.mark.document("cog.15", "cog.20")
@pytest.mark.parametrize("prompt", ["a bc def", "a raise"])
def test_the_events_of_a_prediction_are_those_of_the_new_server(tmp_path: Path, prompt: str) -> None:
    with serving("cog_told", "--workers", "1") as own:
        document = own.client.get("/openapi.json").json()
        ours = events(own.url, prompt)
        own.wait_log("no more words") if "raise" in prompt else None
    with streaming(tmp_path, "cog_told", document) as original:
        theirs = events(original.url, prompt)
    assert ours == theirs


@contextlib.contextmanager
def streaming(folder: Path, package: str, document: dict[str, Any]) -> Iterator[Original]:
    """The new server. It knows from the document of `cog build` that the method streams."""
    copy = folder / package
    shutil.copytree(PACKAGES / package, copy)
    document["paths"]["/predictions"]["post"]["x-cog-streaming"] = True
    (copy / ".cog").mkdir()
    (copy / ".cog" / "openapi_schema.json").write_text(json.dumps(document))
    with running(new_python(), copy, COG_PREDICT_TYPE_STUB="run.py:Runner") as original:
        ready(original)
        yield original


@pytest.mark.document("cog.15")
def test_a_silent_stream_has_a_comment_each_15_seconds(tmp_path: Path) -> None:
    def asked(url: str) -> list[str]:
        body, headers = {"input": {"prompt": "a", "pause": 17}}, {"accept": "text/event-stream"}
        answer = httpx.post(f"{url}/predictions", json=body, headers=headers, timeout=60)
        return [block.partition("\n")[0] for block in answer.text.split("\n\n") if block]

    with serving("cog_stream", "--workers", "1") as own:
        document = own.client.get("/openapi.json").json()
        with streaming(tmp_path, "cog_stream", document) as original, ThreadPoolExecutor() as threads:
            theirs, ours = threads.map(asked, (original.url, own.url))
    assert ours == theirs == ["event: start", ": keep-alive", "event: output", "event: completed"]


@pytest.mark.document("cog.20")
def test_figures_are_taken_and_refused_as_by_the_new_server() -> None:
    body = {"input": {"prompt": "x"}}
    with serving("cog_figures", "--workers", "1") as own:
        ours = own.client.post("/predictions", json=body).json()
    with running(new_python(), PACKAGES / "cog_figures", COG_PREDICT_TYPE_STUB="run.py:Runner") as original:
        ready(original)
        theirs = httpx.post(f"{original.url}/predictions", json=body, timeout=60).json()
    for answer in (ours, theirs):
        answer["metrics"].pop("predict_time")
    assert (ours["metrics"], ours["logs"].splitlines()) == (theirs["metrics"], theirs["logs"].splitlines())


@pytest.mark.document("cog.19")
def test_the_document_has_the_training_as_the_old_server_has_it(old_trainer: Original) -> None:
    with serving("cog_steps", "--workers", "1") as own:
        ours = own.client.get("/openapi.json").json()
    theirs = httpx.get(f"{old_trainer.url}/openapi.json", timeout=60).json()
    assert set(theirs["paths"]) - set(ours["paths"]) == {"/shutdown"}
    for path in (path for path in theirs["paths"] if "training" in path):
        for method, operation in theirs["paths"][path].items():
            own_operation = ours["paths"][path][method]
            assert own_operation["summary"] == operation["summary"]
            names = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
            assert [each["name"] for each in own_operation.get("parameters", ())] == names
    for name in ("TrainingInput", "TrainingRequest", "TrainingResponse", "TrainingOutput"):
        own_schema, schema = (document["components"]["schemas"][name] for document in (ours, theirs))
        assert own_schema["title"] == schema["title"]
        assert own_schema["properties"].keys() == schema["properties"].keys()
    trained = ours["components"]["schemas"]["TrainingInput"]
    assert trained == theirs["components"]["schemas"]["TrainingInput"]


@pytest.fixture(scope="module")
def old_trainer() -> Iterator[Original]:
    with running(old_python(), PACKAGES / "cog_steps") as server:
        ready(server)
        yield server
