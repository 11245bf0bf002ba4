"""What scripts find around them, and what each container answers where something fails."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.models import all_of
from support.server import PACKAGES, Server, panglot, serving
from support.wheels import wheel

JSON = "application/json"
SCRIPT = """
import json
import os
import time

from sagemaker_inference.errors import BaseInferenceToolkitError

VARIABLES = {name: os.environ.get(name) for name in os.environ if name.startswith(("SAGEMAKER", "SM_", "HF_"))}


def model_fn(model_dir):
    return VARIABLES


def predict_fn(data, model, context=None):
    word = data if isinstance(data, str) else data.get("inputs") if isinstance(data, dict) else data.tolist()[0]
    if word == "sleep":
        time.sleep(2)
    if word == "raise":
        raise ValueError("no such word")
    if word == "status":
        raise BaseInferenceToolkitError(418, "a teapot", "teapot")
    if word == "headers":
        headers = context.get_all_request_header(0)
        return [value for name, value in sorted(headers.items()) if name.lower().startswith("x-amzn")]
    return model
"""


def written(folder: Path, text: str = SCRIPT, **files: str) -> Path:
    """A model's folder with a script."""
    (folder / "code").mkdir(parents=True, exist_ok=True)
    (folder / "code" / "inference.py").write_text(text)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    return folder


def send(server: Server, content: Any, kind: str = JSON, path: str = "/invocations", **headers: str) -> httpx.Response:
    body = content if isinstance(content, (bytes, str)) else json.dumps(content)
    return server.client.post(path, content=body, headers={"Content-Type": kind, "Accept": "*/*", **headers})


# Failures


FAILED = "<title>500 Internal Server Error</title>"
UNKNOWN = "Content type text/x-own is not supported by this framework."
EXPECTED: dict[str, dict[str, tuple[int, str]]] = {
    "generic": {"raise": (500, "no such word"), "status": (418, "a teapot"), "type": (500, UNKNOWN),
                "accept": (500, UNKNOWN)},
    "pytorch": {"raise": (500, "no such word"), "status": (418, "a teapot"), "type": (500, UNKNOWN),
                "accept": (500, UNKNOWN)},
    "huggingface": {"raise": (400, '"message": "no such word"'), "status": (400, '"code": 400'),
                    "type": (400, UNKNOWN), "accept": (400, UNKNOWN)},
    "sklearn": {"raise": (500, FAILED), "status": (500, FAILED), "type": (415, '"error": "UnsupportedFormatError"'),
                "accept": (406, '"error": "UnsupportedFormatError"')},
    "xgboost": {"raise": (500, FAILED), "status": (500, FAILED)},
}  # fmt: skip
"""By container: the status, and what is in the body."""


@pytest.mark.document("sagemaker.47", "sagemaker.18", "sagemaker.23", "sagemaker.28")
@pytest.mark.parametrize("flavor", EXPECTED)
def test_what_a_container_answers_where_something_fails(flavor: str, tmp_path: Path) -> None:
    if flavor == "pytorch":
        pytest.importorskip("torch")
    own = '\n\ndef input_fn(data, content_type):\n    return json.loads(data)["inputs"]\n'
    reads = flavor in ("pytorch", "xgboost")
    with serving(written(tmp_path / "model", SCRIPT + (own if reads else "")), "--flavor", flavor) as server:
        for word in ("raise", "status"):
            body = {"inputs": word} if reads or flavor == "huggingface" else [word]
            answer = send(server, body)
            status, text = EXPECTED[flavor][word]
            assert (answer.status_code, text in answer.text) == (status, True), answer.text
            assert "Traceback" not in answer.text
    if "type" not in EXPECTED[flavor]:
        return
    defaults = "def model_fn(model_dir):\n    return 1\n\n\ndef predict_fn(data, model):\n    return [1]\n"
    with serving(written(tmp_path / "defaults", defaults), "--flavor", flavor) as server:
        for name, options in (("type", {"kind": "text/x-own"}), ("accept", {"Accept": "text/x-own"})):
            answer = send(server, "[1]", **options)  # type: ignore[arg-type]
            status, text = EXPECTED[flavor][name]
            assert (answer.status_code, text in answer.text) == (status, True), (name, answer.text)


@pytest.mark.document("sagemaker.52", "sagemaker.48")
def test_a_full_queue_a_late_answer_and_one_request_in_a_call(tmp_path: Path) -> None:
    env = {"SAGEMAKER_MODEL_SERVER_WORKERS": "1", "SAGEMAKER_TS_BATCH_SIZE": "8"}
    with serving(written(tmp_path / "model"), "--queue", "1", env=env) as server:
        server.wait_log("SAGEMAKER_TS_BATCH_SIZE has no effect here")

        def asking(_: int) -> httpx.Response:
            return httpx.post(f"{server.url}/invocations", json=["sleep"], timeout=60)

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(asking, range(6)))
        full = next(answer for answer in answers if answer.status_code == 503)
        sentence = "No worker is available to serve request for model: model. Consider increasing job queue size."
        assert full.json() == {"code": 503, "type": "ServiceUnavailableException", "message": sentence}
        late = send(server, ["sleep"], **{"X-Timeout-Ms": "300"})
        assert (late.status_code, late.json()["type"]) == (500, "InternalServerException")


@pytest.mark.document("sagemaker.20")
def test_ping_before_the_model_is_loaded(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waits = f"    while not os.path.exists({str(gate)!r}):\n        time.sleep(0.02)\n"
    text = SCRIPT.replace("    return VARIABLES", f"{waits}    return VARIABLES")
    with serving(written(tmp_path / "slow", text), ready=False) as server:
        server.wait_log("listening on")
        early = server.client.get("/ping")
        assert (early.status_code, early.json()) == (500, {"status": "Unhealthy"})
        gate.touch()
        server.wait_ready()
        assert server.client.get("/ping").status_code == 200


# What scripts find


@pytest.mark.document("sagemaker.49", "sagemaker.46", "sagemaker.54")
def test_variables_are_there_at_import_and_headers_in_the_context(tmp_path: Path) -> None:
    given = {"HF_MODEL_REVISION": "main", "SAGEMAKER_SAFE_PORT_RANGE": "1-2", "SAGEMAKER_REGION": "eu-west-1"}
    folder = written(tmp_path / "model")
    with serving(folder, "--flavor", "generic", env=given) as server:
        found = send(server, ["variables"], path="/invocations?model_name=another").json()
        assert {name: found.get(name) for name in given} == given
        assert (found["SAGEMAKER_PROGRAM"], found["SM_MODEL_DIR"]) == ("inference.py", str(folder))
        assert found["SAGEMAKER_SUBMIT_DIRECTORY"] == str(folder / "code")
        assert found["SAGEMAKER_CONTAINER_LOG_LEVEL"] == "20"
        names = ("Custom-Attributes", "Session-Id", "Target-Model")
        answer = send(server, ["headers"], **{f"X-Amzn-SageMaker-{name}": name for name in names})
        assert answer.json() == list(names)


@pytest.mark.document("sagemaker.45")
def test_the_default_of_accept_of_the_hugging_face_container(tmp_path: Path) -> None:
    text = "def model_fn(model_dir):\n    return 1\n\n\ndef predict_fn(data, model):\n    return [{'a': 1}]\n"
    env = {"SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT": "text/csv"}
    with serving(written(tmp_path / "model", text), "--flavor", "huggingface", env=env) as server:
        answer = send(server, {"inputs": 1})
        assert (answer.text, answer.headers["content-type"]) == ('[{"a":1}]', JSON)


@pytest.mark.document("sagemaker.43")
@pytest.mark.parametrize(("several", "shape"), [("", [2]), ("true", [1, 2])])
def test_a_list_is_a_row_of_multi_model_endpoints_alone(several: str, shape: list[int], tmp_path: Path) -> None:
    text = "def model_fn(model_dir):\n    return 1\n\n\ndef predict_fn(data, model):\n    return list(data.shape)\n"
    env = {"SAGEMAKER_MULTI_MODEL": several} if several else {}
    with serving(written(tmp_path / "model", text), "--flavor", "sklearn", env=env) as server:
        assert send(server, [1, 2]).json() == shape


@pytest.mark.document("sagemaker.42")
def test_which_file_is_the_model_of_the_pytorch_container(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with pytest.warns(DeprecationWarning, match="jit"):
        module = torch.jit.trace(torch.nn.ReLU(), torch.zeros(1))
    for name in ("a.pt", "b.pth"):
        module.save(str(tmp_path / name))
    done = panglot("serve", str(tmp_path), "--flavor", "pytorch", "--port", "0")
    assert (done.returncode, "Exactly one .pth or .pt file is required" in done.stderr) == (3, True), done.stderr
    module.save(str(tmp_path / "model.pt"))
    with serving(tmp_path, "--flavor", "pytorch") as server:
        assert send(server, [[-1, 2]]).json() == [[0.0, 2.0]]


@pytest.mark.document("sagemaker.41")
def test_requirements_beside_the_script_are_installed(tmp_path: Path) -> None:
    text = "import words_of_mine\n\n\ndef model_fn(model_dir):\n    return words_of_mine.WORD\n\n\n"
    folder = written(tmp_path / "model", text + "def predict_fn(data, model):\n    return model\n")
    name = wheel(folder / "code", "words_of_mine", "1.0", "WORD = 'installed'\n")
    (folder / "code" / "requirements.txt").write_text(f"./{name}\n")
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    done = panglot("serve", str(folder), "--port", "0", env=env)
    assert (done.returncode, "the package 'words_of_mine' is not installed" in done.stderr) == (3, True)
    with serving(folder, "--install", env=env) as server:
        assert send(server, [1]).json() == "installed"


@pytest.mark.document("sagemaker.55")
def test_what_training_imports_and_is_not_installed_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", "import smdebug_of_nobody\n" + SCRIPT)
    for command in (("serve", "--port", "0"), ("doctor",)):
        done = panglot(command[0], str(folder), *command[1:])
        assert "smdebug_of_nobody" in done.stdout + done.stderr, command
    assert "inference.py:1" in " ".join(panglot("serve", str(folder), "--port", "0").stderr.split())


# Modules


IMPORTS = {
    "sagemaker_inference": "content_types, decoder, encoder, errors, utils, environment, logging, model_server",
    "sagemaker_inference.default_handler_service": "DefaultHandlerService",
    "sagemaker_inference.default_inference_handler": "DefaultInferenceHandler",
    "sagemaker_inference.transformer": "Transformer",
    "sagemaker_containers.beta.framework": "content_types, encoders, env, modules, transformer, worker",
    "sagemaker_huggingface_inference_toolkit": "decoder_encoder, transformers_utils",
    "sagemaker_huggingface_inference_toolkit.handler_service": "HuggingFaceHandlerService",
    "sagemaker_pytorch_serving_container": "default_pytorch_inference_handler",
    "sagemaker_xgboost_container": "encoder as xgb_encoders",
}
OLDER = """

def model_fn(model_dir):
    chain = transformer.Transformer(model_fn=lambda folder: 2, predict_fn=lambda data, model: data * model)
    chain.initialize(model_dir)
    return chain


def transform_fn(model, data, content_type, accept):
    return model.transform(data, content_type, accept)
"""


@pytest.mark.document("sagemaker.50")
def test_the_modules_that_scripts_import(tmp_path: Path) -> None:
    lines = [f"from {module} import {names}" for module, names in IMPORTS.items()]
    folder = written(tmp_path / "model", "\n".join(lines) + "\n" + OLDER)
    with serving(folder, "--flavor", "sklearn") as server:
        answer = send(server, [[1, 2]], Accept="text/csv")
        assert (answer.text, answer.headers["content-type"]) == ("2,4\n", "text/csv; charset=utf-8")


@pytest.mark.document("sagemaker.51")
def test_a_service_over_that_of_the_hugging_face_container(tmp_path: Path) -> None:
    text = """
from sagemaker_huggingface_inference_toolkit.handler_service import HuggingFaceHandlerService


class Service(HuggingFaceHandlerService):
    def load(self, model_dir, context=None):
        return lambda inputs, **parameters: [{"word": inputs, **parameters}]

    def postprocess(self, prediction, accept, context=None):
        return super().postprocess(prediction * 2, accept)
"""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "handler_service.py").write_text(text)
    with serving(tmp_path) as server:
        answer = send(server, {"inputs": "a", "parameters": {"k": 1}})
        assert (answer.text, answer.headers["content-type"]) == ('[{"word":"a","k":1},{"word":"a","k":1}]', JSON)
        for body, kind in (("{", JSON), ("x", "text/x-own")):
            failed = send(server, body, kind)
            assert (failed.status_code, failed.json()["code"]) == (400, 400), failed.text


@pytest.mark.document("sagemaker.44")
def test_the_context_of_the_tensorflow_serving_container(tmp_path: Path) -> None:
    tensorflow = pytest.importorskip("tensorflow")
    text = """
import json


def input_handler(data, context):
    first, rest = data.read(2), data.read()
    input_handler.seen = [first.decode(), rest.decode(), {
        name: value for name, value in context._asdict().items() if name not in ("rest_uri", "grpc_port", "channel")
    }]
    return json.dumps({"instances": [[1, 2]]})


def output_handler(response, context):
    return json.dumps([response.json(), *input_handler.seen]), context.accept_header
"""
    folder = written(tmp_path / "words", text)

    class Doubles(tensorflow.Module):
        @tensorflow.function(input_signature=[tensorflow.TensorSpec([None, 2], tensorflow.float32)])
        def __call__(self, values: Any) -> Any:
            return {"out": values * 2.0}

    module = Doubles()
    tensorflow.saved_model.save(module, str(folder / "3"), signatures=module.__call__)
    with serving(folder) as server:
        headers = {"X-Amzn-SageMaker-Custom-Attributes": "c=1", "Accept": JSON}
        answered, first, rest, context = send(server, "abcd", "text/x", **headers).json()
        assert (answered, first, rest) == ({"predictions": [[2.0, 4.0]]}, "ab", "cd")
        assert context == {
            "model_name": "words", "model_version": "3", "method": "predict", "custom_attributes": "c=1",
            "request_content_type": "text/x", "accept_header": JSON, "content_length": 4,
        }  # fmt: skip


@pytest.mark.document("sagemaker.53")
def test_a_model_of_several_is_described(tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(PACKAGES / "sagemaker_training", tmp_path / name)
    with serving(all_of(tmp_path), "--admin", env={"PANGLOT_ADMIN_TOKEN": "admin"}) as server:
        bearer = {"Authorization": "Bearer admin"}
        described = server.client.get("/models/first", headers=bearer)
        assert described.json() == {"modelName": "first", "modelUrl": str(tmp_path / "first")}
        missing = server.client.get("/models/third", headers=bearer)
        assert (missing.status_code, missing.json()["type"]) == (404, "ResourceNotFoundException")


# Packages that cannot work


@pytest.mark.document("sagemaker.07")
@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("sagemaker_both", ("inference.py:9", "Cannot use transform_fn implementation in conjunction with", "fix:")),
        ("sagemaker_load", ("inference.py:5", "FileNotFoundError", "model.joblib")),
    ],
)
def test_what_is_wrong_with_a_package_is_told(name: str, sentences: tuple[str, ...]) -> None:
    done = panglot("serve", str(PACKAGES / "broken" / name), "--port", "0")
    told = " ".join(done.stderr.split())
    assert done.returncode == 3, told
    for words in sentences:
        assert words in told, told


@pytest.mark.document("sagemaker.03")
@pytest.mark.skipif(os.getuid() != 0 or os.path.lexists("/opt/ml"), reason="makes /opt/ml, as root")
def test_the_platforms_path_leads_to_the_model_with_links(tmp_path: Path) -> None:
    with serving("sagemaker_source", "--link-paths") as server:
        assert server.client.post("/invocations", json=[]).json()["note"] != "no note"
    assert not os.path.lexists("/opt/ml")
    models = [shutil.copytree(PACKAGES / "sagemaker_source", tmp_path / name) for name in ("first", "second")]
    done = panglot("serve", *map(str, models), "--port", "0", "--link-paths", seconds=60)
    assert done.returncode == 3
    assert "/opt/ml/model leads to the model first already" in done.stderr
