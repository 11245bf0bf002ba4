"""Packages in the manner of public ones, good and bad requests to each, here and on TorchServe itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import programs, torchserve
from support.models import all_of
from support.originals import Case, ask, differs
from support.server import PACKAGES, Server, serving
from support.torchserve import TorchServe, really_archived

pytestmark = [
    pytest.mark.rest("the archiver is installed, and some of the packages need torch"),
    pytest.mark.timeout(400),
]
JSON = {"Content-Type": "application/json"}
FAILED = {"code": 503, "type": "InternalServerException", "message": "Prediction failed"}
CONFIG = {"config_file": "model-config.yaml"}
ARCHIVES: dict[str, tuple[str, dict[str, str]]] = {
    "api": ("handler.py", {}),
    "echo": ("handler.py", {}),
    "flowers": ("handler.py", CONFIG),
    "story": ("story_handler.py", CONFIG),
    "sentiment": ("sentiment_handler.py", {}),
}
"""The handler of each package, and further options of the archiver."""


class Asked(NamedTuple):
    """A request, and what is answered to it here and there."""

    case: Case
    status: int
    answer: Any
    kind: str = "application/json"
    """The content type here; the original sends none where the handler sets none."""

    def __str__(self) -> str:
        return str(self.case)


def sent(model: str, body: Any, status: int, answer: Any, path: str = "/predictions/", **more: Any) -> Asked:
    content = body if isinstance(body, bytes) else json.dumps(body)
    return Asked(Case("POST", path + model, content, more.pop("headers", JSON)), status, answer, **more)


def act(name: str, answer: Any, status: int = 200, **more: Any) -> Asked:
    return sent("api", {"act": name}, status, answer, **more)


PROPERTIES = {
    "gpu_id": None, "batch_size": 1, "server_name": "MMS", "server_version": "0.12.0", "limit_max_image_pixels": True,
}  # fmt: skip
SEQUENCES = ["ts_request_sequence_id", "ts_request_sequence_start", "ts_request_sequence_end"]
VARIABLES = {"TS_DECODE_INPUT_REQUEST": "true", "LOCAL_RANK": None, "WORLD_SIZE": None, "RANK": None}
SET = [[{"content-type": "text/x-one", "x-two": "2"}, [201, "Made"]], [202, "All"]]
TEXT = "text/plain; charset=utf-8"
CONTEXT = (
    act("ids", [["dict", [0], "list"], True, None]),
    act("properties", [PROPERTIES, "api", {}, [None, None, True], ["handler", "modelName", "modelVersion"]]),
    act("headers", ["application/json", ["application/json"] * 2, None, None]),
    act("sequences", [SEQUENCES, True, True]),
    act("answers", SET, 202, kind="text/x-one"),
    act("processor", [203, "3"], 203),
    act("variables", VARIABLES),
    act("metrics", [True, "MetricsCacheKeyError"]),
)
REQUESTS = (
    sent("flowers", [1, 0.1], 200, {"flower": "rose", "of": 1}),
    sent("flowers", b"[5.9, 2]", 200, {"flower": "iris", "of": 1}, headers={}),
    sent("flowers", "rose", 400, {"error": "send a list of numbers"}),
    sent("flowers", [1], 503, FAILED),
    sent("flowers", b"{", 503, FAILED),
    sent("story", {"max_new_tokens": 3}, 200, "once upon a ", kind="text/plain"),
    sent("story", {}, 200, "once upon a time there ", kind="text/plain"),
    sent("story", {"max_new_tokens": "many"}, 503, FAILED),
    sent("story", b"no JSON", 503, FAILED, headers={}),
    sent("sentiment", b"this is good", 200, "Positive", headers={"Content-Type": "text/plain"}, kind=TEXT),
    sent("sentiment", b"BAD bad", 200, "Negative", headers={}, kind=TEXT),
    sent("sentiment", {"text": "good"}, 503, FAILED),
    sent("sentiment", b"", 200, "Positive", headers={}, kind=TEXT),
    sent(
        "sentiment", b"good", 200, {"words": "good", "importances": [[-1.0, 1.0]], "target": 0}, path="/explanations/",
        headers={"Content-Type": "text/plain"},
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    for name, (handler, options) in ARCHIVES.items():
        really_archived(PACKAGES / f"torchserve_{name}", folder / f"{name}.mar", handler, **options)
    return folder


@pytest.fixture(scope="module")
def ours(store: Path) -> Iterator[Server]:
    pytest.importorskip("torch")
    with serving(all_of(store), "--admin", env={"PANGLOT_ADMIN_TOKEN": "admin"}) as server:
        yield server


@pytest.fixture(scope="module")
def original(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchServe]:
    programs.need("java")
    models = {name: f"{name}.mar" for name in ARCHIVES}
    with torchserve.original(store, tmp_path_factory.mktemp("torchserve"), models) as running:
        yield running


# Requests


@pytest.mark.document("torchserve.34", "torchserve.35", "torchserve.36", "torchserve.53")
@pytest.mark.parametrize("asked", CONTEXT, ids=str)
def test_all_that_a_context_has(ours: Server, asked: Asked) -> None:
    answer = ask(ours.url, asked.case)
    assert (answer.status, answer.body, answer.headers["content-type"]) == (asked.status, asked.answer, (asked.kind,))


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
def test_good_and_bad_requests(ours: Server, asked: Asked) -> None:
    answer = ask(ours.url, asked.case)
    assert (answer.status, answer.body) == (asked.status, asked.answer), ours.log
    assert answer.headers["content-type"] == (asked.kind,)


@pytest.mark.document("torchserve.34", "torchserve.35", "torchserve.36", "torchserve.53")
@pytest.mark.parametrize("asked", [*CONTEXT, *REQUESTS], ids=str)
def test_the_original_answers_so_too(original: TorchServe, asked: Asked) -> None:
    answer = ask(original.rest.url, asked.case, token=original.token)
    assert (answer.status, answer.body) == (asked.status, asked.answer), original.rest.log


@pytest.mark.document("torchserve.09", "torchserve.36")
def test_every_kind_of_a_measurement_is_in_the_metrics(ours: Server) -> None:
    ask(ours.url, act("metrics", None).case)
    ask(ours.url, sent("flowers", [4, 1], 200, None).case)
    text = ours.client.get("/metrics").text
    for name, labels in (
        ("Rows", 'ModelName="api",Level="Model"'), ("Waited_sum", 'ModelName="api",Level="Model"'),
        ("Read_sum", 'ModelName="api",Level="Model"'), ("Full_sum", 'ModelName="api",Level="Model"'),
        ("Wrong", 'Level="Error"'), ("Any", 'Kind="cat",ModelName="api",Level="Model"'), ("Cached", 'Kind="dog"'),
        ("FlowerRows", 'ModelName="flowers",Level="Model"'),
        ("Flowers", 'Flower="lily",ModelName="flowers",Level="Model"'),
    ):  # fmt: skip
        assert re.search(rf"\n{name}{{[^}}]*{labels}}} [0-9.]+\n", text), name


# The management API


MANAGED = (
    Case("GET", "/models"),
    Case("GET", "/models?limit=2"),
    Case("GET", "/models?limit=2&next_page_token=2"),
    Case("GET", "/models?limit=many"),
    Case("GET", "/models?limit=--2"),
    Case("GET", "/models?limit=%2B2"),
    Case("GET", "/models?limit=2147483648"),
    Case("GET", f"/models?limit={'1' * 3_000}"),
    Case("GET", "/models/nope"),
    Case("GET", "/models/echo/9.0"),
    Case("PUT", "/models/echo?min_worker=2&synchronous=true"),
    Case("PUT", "/models/echo?min_worker=1"),
    Case("PUT", "/models/echo?min_worker=2&max_worker=1"),
    Case("PUT", "/models/echo?min_worker=some"),
    Case("PUT", "/models/nope?min_worker=1"),
    Case("PUT", "/models/echo/1.0/set-default"),
    Case("PUT", "/models/nope/1.0/set-default"),
    Case("POST", "/models"),
    Case("POST", "/models?url=echo.mar"),
    Case("POST", "/models?url=../echo.mar"),
    Case("DELETE", "/models/nope"),
    Case("DELETE", "/models/echo/9.0"),
    Case("GET", "/nope"),
)


def manage(ours: Server, original: TorchServe, case: Case) -> tuple[Any, Any]:
    return ask(ours.url, case, token="admin"), ask(original.management, case, token=original.management_token)


@pytest.mark.document("torchserve.37")
@pytest.mark.parametrize("case", MANAGED, ids=str)
def test_the_management_answers_alike(ours: Server, original: TorchServe, case: Case) -> None:
    mine, theirs = manage(ours, original, case)
    assert mine == theirs


@pytest.mark.document("torchserve.37")
@pytest.mark.parametrize("path", ["/models/flowers", "/models/flowers/1.0", "/models/flowers/all"])
def test_a_description_has_every_field(ours: Server, original: TorchServe, path: str) -> None:
    (mine,), (theirs,) = (answer.body for answer in manage(ours, original, Case("GET", path)))
    assert list(mine) == list(theirs)
    assert [sorted(worker) for worker in mine["workers"]] == [sorted(worker) for worker in theirs["workers"]]
    own = ("startupTimeout", "workers", "jobQueueStatus")
    assert differs("torchserve", "what a description says of waiting")
    assert {key: mine[key] for key in mine if key not in own} == {key: theirs[key] for key in theirs if key not in own}


@pytest.mark.document("torchserve.37")
def test_what_is_not_registered(ours: Server, original: TorchServe) -> None:
    mine, theirs = manage(ours, original, Case("POST", "/models?url=nope.mar"))
    assert (mine.status, mine.body["type"]) == (theirs.status, theirs.body["type"]) == (404, "ModelNotFoundException")
    assert mine.body["message"].startswith(theirs.body["message"])
    mine, theirs = manage(ours, original, Case("PUT", "/models/echo/9.0/set-default"))
    assert (mine.status, mine.body["type"]) == (theirs.status, theirs.body["type"])
    assert differs("torchserve", "settings in `POST /models`")
    for wanted in ("batch_size=3", "max_batch_delay=20", "response_timeout=9", "handler=other", "model_name=second"):
        case = Case("POST", f"/models?url=echo.mar&{wanted}" + ("" if "name" in wanted else "&model_name=second"))
        refused = ask(ours.url, case, token="admin")
        assert (refused.status, refused.body["type"]) == (400, "BadRequestException"), refused
        assert wanted.partition("=")[0] in refused.body["message"]
    assert ask(ours.url, Case("GET", "/models/second"), token="admin").status == 404


# Other paths


HEADED = (
    "/predictions/echo", "/predictions/echo/1.0", "/predictions/echo/1.0/a/b", "/explanations/echo",
    "/v1/models/echo:explain", "/invocations?model_name=echo&q=1",
)  # fmt: skip


@pytest.mark.document("torchserve.16", "torchserve.17", "torchserve.38")
@pytest.mark.parametrize(
    "case",
    [
        Case("POST", "/echo/predict", "1", JSON),
        Case("POST", "/echo/predict/a", "1", JSON),
        Case("POST", "/v1/models/echo:explain", "1", JSON),
        Case("GET", "/v1/models/echo"),
        Case("POST", "/explanations/echo/1.0", "1", JSON),
        Case("POST", "/models/echo/invoke?q=1", "1", JSON),
    ],
    ids=str,
)
def test_further_paths(ours: Server, original: TorchServe, case: Case) -> None:
    mine, theirs = ask(ours.url, case), ask(original.rest.url, case, token=original.token)
    assert (mine.status, mine.body) == (theirs.status, theirs.body)


@pytest.mark.document("torchserve.11")
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=b", "multipart/form-data"])
def test_a_form_that_is_none(ours: Server, original: TorchServe, kind: str) -> None:
    case = Case("POST", "/predictions/echo", "no form", {"Content-Type": kind})
    mine, theirs = ask(ours.url, case), ask(original.rest.url, case, token=original.token)
    assert differs("torchserve", "a form that cannot be read")
    assert theirs.status == 200
    assert (mine.status, mine.body["type"]) == (400, "BadRequestException")


@pytest.mark.document("torchserve.08", "torchserve.38")
@pytest.mark.parametrize("path", HEADED)
def test_what_the_server_adds_to_the_headers(ours: Server, original: TorchServe, path: str) -> None:
    case = Case("POST", path, '{"act": "headers"}', JSON)
    mine, theirs = ask(ours.url, case).body, ask(original.rest.url, case, token=original.token).body
    added = ("body", "q", "model_name", "explain", "url_path", "describe", "Content-Type", "Content-Length")
    assert {key: mine.get(key, "nothing") for key in added} == {key: theirs.get(key, "nothing") for key in added}


@pytest.mark.document("torchserve.17")
def test_the_description_of_the_api(ours: Server, original: TorchServe) -> None:
    for case in (Case("OPTIONS", "/"), Case("GET", "/api-description")):
        mine, theirs = ask(ours.url, case), ask(original.rest.url, case, token=original.token)
        assert (mine.status, mine.body["openapi"]) == (theirs.status, theirs.body["openapi"]) == (200, "3.0.1")
        assert {"/predictions/{model}", "/ping"} <= set(mine.body["paths"])
