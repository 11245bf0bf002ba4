"""TorchServe itself beside Panglot: the same archive, the same requests, good and bad."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from support import programs, torchserve
from support.models import all_of
from support.originals import Case, ask, differs
from support.rpc import address
from support.server import PACKAGES, ROOT, Server, serving
from support.torchserve import TorchServe, call, manage, prediction, really_archived, stream

pytestmark = [
    pytest.mark.rest("TorchServe needs Java and torch, and half a minute to start"),
    # Eight models here and there, each of which imports torch: beside other tests that takes minutes.
    pytest.mark.timeout(600),
]
JSON = {"Content-Type": "application/json"}
TOKEN = "a-token-of-clients"
ADMIN_TOKEN = "a-token-of-administrators"


def act(name: str, differs: str = "") -> Case:
    return Case("POST", "/predictions/echo", f'{{"act": "{name}"}}', JSON, differs=differs)


TYPE = "the content type of answers"
CASES = (
    Case("GET", "/ping"),
    Case("POST", "/predictions/echo", '{"a": 1}', JSON, differs=TYPE),
    Case("POST", "/predictions/echo", '{"a": 1}', {"Content-Type": "application/json; charset=utf-8"}, differs=TYPE),
    Case("POST", "/predictions/echo", "{bad", JSON, differs=TYPE),
    Case("POST", "/predictions/echo", "[1]", {"Content-Type": "Application/JSON"}, differs=TYPE),
    Case("POST", "/predictions/echo", "hi", {"Content-Type": "text/plain"}, differs=TYPE),
    Case("POST", "/predictions/echo", b"raw", {"Content-Type": "application/octet-stream"}, differs=TYPE),
    Case("POST", "/predictions/echo", "a=1&b=2", {"Content-Type": "application/x-www-form-urlencoded"}, differs=TYPE),
    Case("POST", "/predictions/echo", '{"a": 1}', {"Content-Type": "application/x-www-form-urlencoded"}, differs=TYPE),
    Case("POST", "/predictions/echo", options={"files": {"data": ("x", b"abc")}, "data": {"n": "hi"}}, differs=TYPE),
    Case("GET", "/predictions/echo", differs=TYPE),
    Case("PUT", "/predictions/echo", "1", JSON, differs=TYPE),
    Case("POST", "/predictions/echo?q=1", "1", JSON, differs=TYPE),
    Case("POST", "/predictions/echo/1.0/a/b", "1", JSON, differs=TYPE),
    Case("POST", "/invocations?model_name=echo&q=1", "1", JSON, differs=TYPE),
    Case("POST", "/models/echo/invoke", "1", JSON, differs=TYPE),
    Case("POST", "/v1/models/echo:predict", "1", JSON, differs=TYPE),
    act("bytes", TYPE),
    act("text", TYPE),
    act("stream", TYPE),
    act("status"),
    act("raise"),
    act("teapot"),
    act("cuda"),
    act("set"),
    Case("POST", "/predictions/nope", "1", JSON),
    Case("POST", "/predictions/echo/9.0", "1", JSON),
    Case("GET", "/predictions"),
    Case("GET", "/nope"),
)


CALLS = (
    ("Ping", b""),
    ("Predictions", prediction("echo", data=b"[1]", note=b"hi")),
    ("Predictions", prediction("echo", "1.0", body=b'{"a": 1}')),
    ("Predictions", prediction("echo")),
    *(
        ("Predictions", prediction("echo", act=act))
        for act in (b"bytes", b"text", b"status", b"raise", b"cuda", b"set")
    ),
    *(("Predictions", prediction("echo", act=b"code %d" % code)) for code in (400, 404, 409, 418, 429, 501, 504, 599)),
    ("Predictions", prediction("nope", data=b"1")),
    ("Predictions", prediction("echo", "9.0", data=b"1")),
    ("Predictions", b""),
    ("StreamPredictions", prediction("echo", act=b"stream")),
    ("StreamPredictions", prediction("nope", data=b"1")),
)


SCRIPTED = {"serialized_file": "model.pt"}
BUILT_IN = {
    "image_classifier": SCRIPTED,
    "object_detector": SCRIPTED,
    "image_segmenter": SCRIPTED,
    "text_classifier": {"serialized_file": "weights.pth", "model_file": "net.py"},
}
DESCRIBED = {"word": "return ['a word'] * len(data)", "nothing": "return [None]", "failing": "raise ValueError('no')"}
"""What handlers do with the question for a description."""


# The archives: a handler of our own, and one of each that the platform brings


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    really_archived(PACKAGES / "torchserve_echo", folder / "echo.mar", "handler.py")
    parts = tmp_path_factory.mktemp("parts")
    made = [sys.executable, "-W", "ignore", ROOT / "tests" / "support" / "torchserve_models.py", parts]
    subprocess.run(made, check=True)
    for name, more in BUILT_IN.items():
        really_archived(parts / name, folder / f"{name}.mar", name, **more)
    for name, does in DESCRIBED.items():
        (parts / name).mkdir()
        (parts / name / "handler.py").write_text(
            f"def handle(data, context):\n    if data is not None:\n        {does}\n"
        )
        really_archived(parts / name, folder / f"{name}.mar", "handler.py")
    return folder


def picture() -> bytes:
    image = pytest.importorskip("PIL.Image")
    made = image.new("RGB", (300, 280))
    made.putdata([(x % 256, y % 200, (x + y) % 256) for y in range(280) for x in range(300)])
    stream = BytesIO()
    made.save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return torchserve.stubs(tmp_path_factory.mktemp("stubs"))


@pytest.fixture(scope="module")
def ours(store: Path, stubs: Path) -> Iterator[Server]:
    env = {"PANGLOT_TOKEN": TOKEN, "PANGLOT_ADMIN_TOKEN": ADMIN_TOKEN, "PYTHONPATH": str(stubs)}
    with serving(all_of(store), "--grpc-port", "0", "--admin", env=env) as server:
        yield server


@pytest.fixture(scope="module")
def original(store: Path, stubs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchServe]:
    programs.need("java")
    pytest.importorskip("torch")
    models = {file.stem: file.name for file in sorted(store.iterdir())}
    with torchserve.original(store, tmp_path_factory.mktemp("torchserve"), models, stubs) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_request_has_the_same_answer(ours: Server, original: TorchServe, case: Case) -> None:
    theirs, mine = ask(original.rest.url, case, token=original.token), ask(ours.url, case, token=TOKEN)
    assert (mine.status, mine.body) == (theirs.status, theirs.body)
    if case.differs:
        assert differs("torchserve", case.differs)
        assert theirs.headers["content-type"] == ()
    else:
        assert mine.headers == theirs.headers


@pytest.mark.document("torchserve.27")
def test_a_client_without_the_token_is_refused(ours: Server, original: TorchServe) -> None:
    case = Case("POST", "/predictions/echo", "1", JSON)
    theirs, mine = ask(original.rest.url, case), ask(ours.url, case)
    assert (theirs.status, theirs.body["type"]) == (400, "InvalidKeyException")
    assert differs("torchserve", "a request without the token")
    assert (mine.status, mine.body["type"]) == (401, "InvalidKeyException")
    message = prediction("echo", data=b"1")
    assert call(original.grpc, "Predictions", message)[0] == "PERMISSION_DENIED"
    assert call(address(ours), "Predictions", message)[0] == "UNAUTHENTICATED"


@pytest.mark.document("torchserve.23")
@pytest.mark.parametrize(("method", "message"), CALLS, ids=lambda part: str(part)[:60])
def test_the_same_call_of_grpc_has_the_same_answer(
    ours: Server, original: TorchServe, method: str, message: bytes
) -> None:
    theirs = call(original.grpc, method, message, original.token)
    assert call(address(ours), method, message, TOKEN) == theirs


MANAGED = (
    ("ListModels", {"limit": 1, "next_page_token": 0}),
    ("DescribeModel", {"model_name": "nope"}),
    ("DescribeModel", {"model_name": "echo", "model_version": "9.0"}),
    ("DescribeModel", {"model_name": "echo", "model_version": "1.0", "customized": True}),
    ("DescribeModel", {"model_name": "word", "customized": True}),
    ("DescribeModel", {"model_name": "nothing", "customized": True}),
    ("DescribeModel", {"model_name": "failing", "customized": True}),
    ("ScaleWorker", {"model_name": "echo", "min_worker": 2, "synchronous": True}),
    ("ScaleWorker", {"model_name": "echo", "min_worker": 1}),
    ("ScaleWorker", {"model_name": "echo", "min_worker": 2, "max_worker": 1}),
    ("ScaleWorker", {"model_name": "nope"}),
    ("SetDefault", {"model_name": "echo", "model_version": "1.0"}),
    ("SetDefault", {"model_name": "nope", "model_version": "1.0"}),
    ("RegisterModel", {}),
    ("UnregisterModel", {"model_name": "nope"}),
)


@pytest.mark.document("torchserve.30", "torchserve.31")
@pytest.mark.parametrize(("method", "fields"), MANAGED, ids=str)
def test_the_same_call_of_the_management_has_the_same_answer(
    ours: Server, original: TorchServe, method: str, fields: dict[str, Any]
) -> None:
    theirs = manage(original.grpc_management, method, original.management_token, **fields)
    token = TOKEN if method in ("ListModels", "DescribeModel") else ADMIN_TOKEN
    mine = manage(address(ours), method, token, **fields)
    if method == "DescribeModel" and isinstance(theirs, str) and isinstance(mine, str):
        (told,), (mine_told,) = json.loads(theirs), json.loads(mine)
        own = ("modelName", "modelVersion", "modelUrl", "batchSize", "responseTimeout", "customizedMetadata")
        assert [mine_told.get(name) for name in own] == [told.get(name) for name in own]
    else:
        assert mine == theirs


@pytest.mark.document("torchserve.32")
@pytest.mark.parametrize("message", [prediction("echo", data=b"1")], ids=["no sequence"])
def test_a_refused_message_of_a_stream_is_told_alike(ours: Server, original: TorchServe, message: bytes) -> None:
    assert stream(address(ours), [message], TOKEN) == stream(original.grpc, [message], original.token)


# Handlers that the platform brings


@pytest.mark.document("torchserve.28")
@pytest.mark.parametrize("name", ["image_classifier", "object_detector", "image_segmenter"])
def test_handlers_of_pictures_answer_alike(ours: Server, original: TorchServe, name: str) -> None:
    content = picture()
    path, form = f"/predictions/{name}", {"files": {"data": ("x.png", content, "image/png")}}
    for case in (Case("POST", path, content, {"Content-Type": "image/png"}), Case("POST", path, options=form)):
        theirs, mine = ask(original.rest.url, case, token=original.token), ask(ours.url, case, token=TOKEN)
        assert theirs.status == 200, theirs
        assert (mine.status, mine.body) == (theirs.status, theirs.body)


@pytest.mark.document("torchserve.28")
@pytest.mark.parametrize("text", ["<b>I'm</b> caf\u00e9!", "I'm CAFE, don't", "unknown"])
def test_the_handler_of_texts_answers_alike(ours: Server, original: TorchServe, text: str) -> None:
    case = Case("POST", "/predictions/text_classifier", text, {"Content-Type": "text/plain"})
    theirs: Any = ask(original.rest.url, case, token=original.token)
    mine = ask(ours.url, case, token=TOKEN)
    assert theirs.status == (503 if text == "unknown" else 200), theirs
    assert (mine.status, mine.body) == (theirs.status, theirs.body)


def test_one_answer_is_a_stream_of_one_part(ours: Server, original: TorchServe) -> None:
    """The last test of the file: the original's worker dies of it."""
    message = prediction("echo", data=b"1")
    assert differs("torchserve", "`StreamPredictions` of a handler that sends no parts")
    assert call(original.grpc, "StreamPredictions", message, original.token)[0] == "INTERNAL"
    (part,) = call(address(ours), "StreamPredictions", message, TOKEN)
    assert json.loads(part) == {"data": ["bytearray", "1"]}
