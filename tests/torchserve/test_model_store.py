"""A model store: several archives in one server, the management API, gRPC, and TorchServe's command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from panglot_worker.tensors import protobuf
from support.models import all_of
from support.rpc import address
from support.server import PACKAGES, Server, panglot, serving, wait_until
from support.torchserve import archive, call, manage, prediction, stream

TOKEN = "admin-token"
NUMBER = protobuf.put(1 << 62)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    archive(PACKAGES / "torchserve_echo", folder / "echo.mar", "handler.py", "1.0")
    archive(PACKAGES / "torchserve_batch", folder / "batch.tar.gz", "service.py", "2.0")
    return folder


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Server]:
    env = {"PANGLOT_ADMIN_TOKEN": TOKEN}
    with serving(all_of(store), "--admin", "--grpc-port", "0", env=env) as running:
        yield running


def admin(server: Server, method: str, path: str) -> tuple[int, dict[str, object]]:
    answer = server.client.request(method, path, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)
    return answer.status_code, answer.json()


def test_all_archives_of_a_folder_are_served(server: Server) -> None:
    assert server.client.post("/predictions/echo", json=1).json() == {"body": ["int", 1]}
    answer = server.client.post("/predictions/batch/2.0", content="hi", headers={"content-type": "text/plain"})
    assert answer.text == "hi of 1"
    assert server.client.get("/ping").json() == {"status": "Healthy"}
    listed = {entry["modelName"] for entry in server.client.get("/models").json()["models"]}
    assert listed == {"batch", "echo"}


def test_changes_need_the_token_of_the_administration(server: Server) -> None:
    assert server.client.delete("/models/echo").status_code == 401
    assert server.client.post("/models?url=echo.mar").status_code == 401


@pytest.mark.document("torchserve.22")
def test_a_model_is_scaled_unregistered_and_registered_again(server: Server) -> None:
    status, said = admin(server, "PUT", "/models/batch?min_worker=2&synchronous=true")
    assert (status, said) == (200, {"status": "Workers scaled to 2 for model: batch"})
    assert admin(server, "DELETE", "/models/batch") == (200, {"status": 'Model "batch" unregistered'})
    assert server.client.post("/predictions/batch").status_code == 404
    assert admin(server, "POST", "/models?url=nope.mar")[0] == 404
    assert admin(server, "POST", "/models?url=http://example.com/batch.mar")[0] == 404
    assert admin(server, "POST", "/models?url=echo.mar")[0] == 409
    status, said = admin(server, "POST", "/models?url=batch.tar.gz&initial_workers=1&synchronous=true")
    assert (status, said) == (200, {"status": 'Model "batch" Version: 2.0 registered with 1 initial workers'})
    assert server.client.post("/predictions/batch", content="a").status_code == 200
    assert admin(server, "PUT", "/models/batch/2.0/set-default")[0] == 200
    assert admin(server, "GET", "/models/nope")[1]["type"] == "ModelNotFoundException"


@pytest.mark.parametrize("number", ["--1", "9" * 10, "1" * 5_000, "²"])
def test_a_number_that_is_none_is_the_default(server: Server, number: str) -> None:
    for name in ("limit", "next_page_token"):
        status, said = admin(server, "GET", f"/models?{name}={number}")
        assert (status, len(said["models"])) == (200, 2)  # type: ignore[arg-type]


@pytest.mark.document("torchserve.30")
def test_a_handler_describes_its_model(server: Server) -> None:
    status, said = admin(server, "GET", "/models/echo?customized=true")
    expected = {"labels": ["a", "b"], "data": [{}], "explain": "None"}
    assert (status, said[0]["customizedMetadata"]) == (200, expected)
    told = json.loads(manage(address(server), "DescribeModel", TOKEN, model_name="echo", customized=True))
    assert told[0]["customizedMetadata"] == expected
    assert "customizedMetadata" not in admin(server, "GET", "/models/echo")[1][0]


# Versions


def answering(word: str, folder: Path) -> Path:
    folder.mkdir()
    (folder / "handler.py").write_text(f"def handle(data, context):\n    return ['{word}'] * len(data or ())\n")
    return folder


@pytest.mark.document("torchserve.22")
def test_an_older_version_is_made_the_default(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    for number in (1, 2):
        folder = answering(f"version {number}", tmp_path / f"v{number}")
        archive(folder, store / f"words{number}.mar", "handler.py", f"{number}.0", modelName="words")
    with serving(all_of(store), "--admin", "--grpc-port", "0", env={"PANGLOT_ADMIN_TOKEN": TOKEN}) as server:
        where = address(server)

        def said(path: str) -> str:
            return server.client.post(f"/predictions/{path}").text

        assert [said("words/1.0"), said("words/2.0")] == ["version 1", "version 2"]
        for number in (2, 1, 2):
            told = admin(server, "PUT", f"/models/words/{number}.0/set-default")
            done = f'Default version successfully updated for model "words" to "{number}.0"'
            assert told == (200, {"status": done})
            assert said("words") == f"version {number}"
            assert call(where, "Predictions", prediction("words")) == [f"version {number}".encode()]
            assert admin(server, "GET", "/models/words")[1][0]["modelVersion"] == f"{number}.0"  # type: ignore[index]
        assert manage(where, "SetDefault", TOKEN, model_name="words", model_version="1.0") == done.replace("2.0", "1.0")
        assert said("words") == "version 1"
        status, told = admin(server, "PUT", "/models/words/9.0/set-default")
        assert (status, told["type"]) == (404, "ModelVersionNotFoundException")
        # A version is unregistered by its number, and the other one answers to the name again.
        assert admin(server, "DELETE", "/models/words/1.0") == (200, {"status": 'Model "words" unregistered'})
        assert (said("words"), said("words2")) == ("version 2", "version 2")
        assert server.client.post("/predictions/words/1.0").status_code == 404


# gRPC


@pytest.mark.document("torchserve.31")
def test_the_management_service_of_grpc(server: Server) -> None:
    where = address(server)
    (told,) = json.loads(manage(where, "DescribeModel", TOKEN, model_name="batch", model_version="2.0"))
    assert (told["modelName"], told["modelVersion"], told["modelUrl"]) == ("batch", "2.0", "batch.tar.gz")
    listed = json.loads(manage(where, "ListModels", TOKEN, limit=1))
    assert (listed["nextPageToken"], len(listed["models"])) == ("1", 1)
    scaled = manage(where, "ScaleWorker", TOKEN, model_name="batch", min_worker=2, synchronous=True)
    assert scaled == "Workers scaled to 2 for model: batch"
    assert manage(where, "UnregisterModel", TOKEN, model_name="batch") == 'Model "batch" unregistered'
    gone = "Model not found: batch\norg.pytorch.serve.archive.model.ModelNotFoundException"
    assert manage(where, "DescribeModel", TOKEN, model_name="batch") == ("NOT_FOUND", gone)
    told = manage(where, "RegisterModel", TOKEN, url="batch.tar.gz", initial_workers=1)
    assert told == 'Model "batch" Version: 2.0 registered with 1 initial workers'
    wrong = "max_worker cannot be less than min_worker.\norg.pytorch.serve.http.BadRequestException"
    refused = manage(where, "ScaleWorker", TOKEN, model_name="batch", min_worker=3, max_worker=1)
    assert refused == ("INVALID_ARGUMENT", wrong)
    assert manage(where, "ScaleWorker", "", model_name="batch", min_worker=1)[0] == "UNAUTHENTICATED"


@pytest.mark.document("torchserve.31")
def test_the_management_service_changes_nothing_without_admin(store: Path) -> None:
    with serving(store / "echo.mar", "--grpc-port", "0") as server:
        where = address(server)
        assert json.loads(manage(where, "DescribeModel", "", model_name="echo"))[0]["modelName"] == "echo"
        disabled = "Model API disabled\norg.pytorch.serve.archive.model.ModelException"
        assert manage(where, "UnregisterModel", "", model_name="echo") == ("PERMISSION_DENIED", disabled)


@pytest.mark.document("torchserve.32")
def test_messages_of_a_stream_are_answered_one_after_the_other(server: Server) -> None:
    def echoed(sequence: str = "s", model: str = "echo", **inputs: bytes) -> bytes:
        return prediction(model, sequence=sequence, **inputs)

    messages = (
        echoed(act=b"sequence"), echoed(act=b"stream"), echoed(sequence="", act=b"text"), echoed(act=b"raise"),
        echoed(model="nope"), echoed(act=b"text"),
    )  # fmt: skip
    answers = [{number: bytes(content) for number, _, content in protobuf.fields(memoryview(answer))}
               for answer in stream(address(server), messages)]  # fmt: skip
    assert [answer.get(1) for answer in answers[:5]] == [b"s", b"part 0;", b"part 1;", b"part 2;", b"end"]
    missing, raised, unknown = (answer[3] for answer in answers[5:8])
    assert b"Parameter sequenceId is required." in missing
    assert b"BadRequestException.()" in missing
    assert b"Prediction failed" in raised
    assert b"Model not found: nope" in unknown
    assert answers[8:] == [{1: b"text"}]
    assert stream(address(server), []) == [("UNIMPLEMENTED", "this method takes one message")]


@pytest.mark.document("torchserve.23")
def test_the_inference_service_of_grpc(server: Server) -> None:
    where = address(server)
    assert b"Healthy" in call(where, "Ping", b"")[0]
    (answer,) = call(where, "Predictions", prediction("echo", data=b"[1]", note=b"hi"))
    assert json.loads(answer) == {"data": ["bytearray", "[1]"], "note": ["bytearray", "hi"]}
    parts = call(where, "StreamPredictions", prediction("echo", act=b"stream"))
    assert parts == [b"part 0;", b"part 1;", b"part 2;", b"end"]
    refused = call(where, "Predictions", prediction("nope", data=b"1"))
    assert refused == ("INTERNAL", "Model not found: nope\norg.pytorch.serve.archive.model.ModelNotFoundException")


@pytest.mark.parametrize(
    "wrong",
    [
        protobuf.put(4 << 3) + NUMBER,
        protobuf.put(3 << 3) + NUMBER,
        protobuf.message(3, protobuf.put(1 << 3) + NUMBER),
        protobuf.message(3, protobuf.text(1, "data") + protobuf.put(2 << 3) + NUMBER),
    ],
    ids=["sequence", "inputs", "name of an input", "content of an input"],
)
def test_a_number_in_place_of_bytes_is_refused(wrong: bytes, server: Server) -> None:
    """A large number is no size of memory that the worker takes."""
    # Workers of a model that an earlier test has unregistered may still be about to end.
    wait_until(lambda: len(server.workers()) == 2)
    workers = server.workers()
    code, sentence = call(address(server), "Predictions", prediction("echo") + wrong)
    assert code == "INVALID_ARGUMENT"
    assert "this is no PredictionsRequest: field" in sentence
    assert server.workers() == workers


# The command line


@pytest.mark.document("torchserve.25")
def test_a_command_line_of_torchserve_names_what_is_missing(store: Path) -> None:
    done = panglot("torchserve", "--start", "--ncs", "--model-store", str(store), "--models", "m=nope.mar")
    assert done.returncode == 3
    assert "nope.mar is not in the model store" in done.stderr


@pytest.mark.document("torchserve.25")
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--stop",), "this server runs in the foreground, so there is none to stop"),
        (("--model-store", "nowhere", "--models", "all"), "the model store nowhere is no folder"),
        ((), "there is no model store"),
    ],
)
def test_a_command_line_that_cannot_be(flags: tuple[str, ...], sentence: str) -> None:
    done = panglot("torchserve", *flags)
    assert (done.returncode, sentence in done.stderr, "fix:" in done.stderr) == (3, True, True), done.stderr


@pytest.mark.document("torchserve.22")
def test_without_admin_models_are_not_changed(store: Path) -> None:
    with serving(store / "echo.mar") as server:
        for method, path in (("POST", "/models?url=echo.mar"), ("DELETE", "/models/echo")):
            refused = server.client.request(method, path)
            assert (refused.status_code, refused.json()["type"]) == (405, "MethodNotAllowedException")
            assert "--admin" in refused.json()["message"]


@pytest.mark.document("torchserve.25", "torchserve.22")
def test_a_command_line_of_torchserve_with_a_port_for_the_management(store: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.properties"
    config.write_text("management_address=http://127.0.0.1:8081\n")
    flags = ("--model-store", str(store), "--ts-config", str(config), "--ncs", "--start", "--admin")
    env = {"PANGLOT_ADMIN_TOKEN": TOKEN}
    with serving(Path("mine=batch.tar.gz"), *flags, env=env, command="torchserve") as server:
        assert server.client.post("/predictions/mine", content="a").status_code == 200
        assert server.client.get("/models").status_code == 404
        # With `--port 0` every port of the server is a free one.
        management = server.wait_log(r"listening on (\S+) too, for torchserve's own")[1]
        assert httpx.get(f"{management}/models").json()["models"][0]["modelName"] == "mine"
        assert httpx.put(f"{management}/models/mine?min_worker=2").status_code == 401
        headers = {"authorization": f"Bearer {TOKEN}"}
        scaled = httpx.put(f"{management}/models/mine?min_worker=2&synchronous=true", headers=headers, timeout=60)
        assert (scaled.status_code, scaled.json()["status"]) == (200, "Workers scaled to 2 for model: mine")
        assert httpx.post(f"{management}/predictions/mine", content="a").status_code == 404
