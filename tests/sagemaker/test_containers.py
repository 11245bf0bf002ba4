"""The containers of SageMaker: what each does where a script does not, and how it answers failures."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from panglot_worker.tensors import protobuf
from support.server import PACKAGES, Server, panglot, serving

JSON, RECORDIO = "application/json", "application/x-recordio-protobuf"


def send(server: Server, content: bytes | str, kind: str = JSON, accept: str = "*/*") -> httpx.Response:
    return server.client.post("/invocations", content=content, headers={"Content-Type": kind, "Accept": accept})


def copied(name: str, folder: Path) -> Path:
    shutil.copytree(PACKAGES / name, folder)
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.document("sagemaker.22")
def test_pytorch_without_a_script(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Doubles(torch.nn.Module):
        def forward(self, values):
            return values * 2

    torch.jit.script(Doubles()).save(str(tmp_path / "net.pth"))
    with serving(tmp_path, "--flavor", "pytorch") as server:
        assert send(server, "[[1, 2]]").json() == [[2.0, 4.0]]
        answer = send(server, "1,2", "text/csv", "image/png, text/csv")
        assert (answer.text, answer.headers["content-type"]) == ("2.0\n4.0\n", "image/png, text/csv")
        tensor = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1.0, 2.5]}
        answer = server.client.post(f"/v2/models/{tmp_path.name}/infer", json={"inputs": [tensor]})
        assert answer.json()["outputs"][0]["data"] == [2.0, 5.0]


@pytest.mark.document("sagemaker.23", "sagemaker.24", "sagemaker.25")
def test_scikit_learn() -> None:
    with serving("sagemaker_flask") as server:
        assert send(server, "[[1, 2]]").json() == [[2.0, 4.0]]
        assert send(server, "1,2\n3,4", "text/csv", "text/csv").text == "2.0,4.0\n6.0,8.0\n"
        answer = send(server, "[1]", accept="application/x-shape")
        assert (answer.status_code, answer.json(), answer.headers["content-type"]) == (203, [1], "application/x-shape")
        refused = send(server, "x", "text/plain")
        assert (refused.status_code, refused.json()["error"]) == (415, "UnsupportedFormatError")
        failed = send(server, "[1, 2, 3, 4, 5]")
        assert (failed.status_code, "Internal Server Error" in failed.text) == (500, True)
        assert server.client.get("/execution-parameters").json() == {"MaxConcurrentTransforms": 2}
        assert server.client.post("/execution-parameters").status_code == 405


@pytest.mark.document("sagemaker.23")
def test_scikit_learn_without_output_fn(tmp_path: Path) -> None:
    folder = copied("sagemaker_flask", tmp_path / "defaults")
    script = folder / "code" / "inference.py"
    script.write_text(script.read_text().replace("def output_fn", "def unused"))
    with serving(folder) as server:
        assert send(server, "[[1, 2]]").json() == [[2.0, 4.0]]
        refused = send(server, "[[1, 2]]", accept="image/png")
        assert (refused.status_code, refused.json()["error"]) == (406, "UnsupportedFormatError")


def tensor(values: Any, keys: Sequence[int] = (), shape: Sequence[int] = ()) -> bytes:
    """A Record of Amazon's protobuf with one Float32Tensor."""
    packed = protobuf.message(1, values.astype("<f4").tobytes())
    packed += b"".join(protobuf.message(field, bytes(numbers)) for field, numbers in ((2, keys), (3, shape)) if numbers)
    return protobuf.message(1, protobuf.text(1, "values") + protobuf.message(2, protobuf.message(2, packed)))


def records(parts: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<II", 0xCED7230A, len(part)) + part + bytes(-len(part) % 4) for part in parts)


@pytest.mark.document("sagemaker.26", "sagemaker.27")
def test_xgboost(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    import numpy

    folder = copied("sagemaker_boosted", tmp_path / "boosted")
    rows = numpy.arange(40, dtype="float32").reshape(20, 2)
    booster = xgboost.train({"max_depth": 2}, xgboost.DMatrix(rows, label=rows[:, 0]), 3)
    booster.save_model(folder / "booster.json")
    expected = booster.predict(xgboost.DMatrix(rows[:2])).tolist()
    with serving(folder) as server:
        assert send(server, "0,1\n2,3\n", "text/csv").json() == pytest.approx(expected)
        assert len(send(server, "0 0:0 1:1\n0 0:2 1:3\n", "text/libsvm").json()) == 2
    script = folder / "code" / "inference.py"
    # Without `input_fn`, the container reads what clients send.
    script.write_text(script.read_text().replace("def input_fn", "def unused"))
    with serving(folder) as server:
        dense = records([tensor(rows[0]), tensor(rows[1])])
        assert send(server, dense, RECORDIO).json() == pytest.approx(expected)
        sparse = records([tensor(rows[0][1:], [1], [2]), tensor(rows[1], [0, 1], [2])])
        values = numpy.array([[numpy.nan, 1], [2, 3]], dtype="float32")
        assert send(server, sparse, RECORDIO).json() == pytest.approx(booster.predict(xgboost.DMatrix(values)).tolist())
        for broken in (b"", b"no record", dense[:-3]):
            assert send(server, broken, RECORDIO).status_code >= 400
        assert send(server, "0,1\n2,3\n", "text/csv; charset=utf-8").json() == pytest.approx(expected)


@pytest.mark.document("sagemaker.28")
def test_hugging_face() -> None:
    picture = BytesIO()
    image = pytest.importorskip("PIL.Image")
    image.new("L", (3, 2)).save(picture, "PNG")
    with serving("sagemaker_sentences") as server:
        answer = send(server, '{"inputs": "a", "parameters": {"top_k": 2}}')
        assert answer.text == '[{"label":"é","inputs":"a","top_k":2}]'
        assert send(server, "inputs\na\nb\n", "text/csv").json()[0]["inputs"] == ["a", "b"]
        assert send(server, picture.getvalue(), "image/png").json() == {"size": [3, 2]}
        assert send(server, b"RIFF", "audio/wav").json() == {"bytes": 4}
        assert send(server, '{"inputs": "a"}', accept="text/csv").text.splitlines()[0] == "label,inputs"
        failed = send(server, '{"inputs": "raise"}')
        wanted = {"code": 400, "type": "InternalServerException", "message": "no such thing"}
        assert (failed.status_code, failed.json()) == (400, wanted)
        assert send(server, "a,b\n", "text/csv").json()["message"].startswith("You need to provide the correct CSV")
        assert send(server, "x", "text/plain").status_code == 400


LIBRARY = """
def pipeline(task, model, device, tokenizer):
    return lambda inputs, **parameters: [{"task": task, "inputs": inputs, **parameters}]
"""
MISSING = "raise ModuleNotFoundError('no transformers', name='transformers')"


@pytest.mark.document("sagemaker.29")
def test_hugging_face_without_a_script(tmp_path: Path) -> None:
    """The pipeline of a small library that is called transformers, and what is said where there is none."""
    model, library = tmp_path / "model", tmp_path / "lib"
    model.mkdir()
    library.mkdir()
    (model / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    (library / "transformers.py").write_text(LIBRARY)
    env = {"PYTHONPATH": str(library)}
    with serving(model, "--flavor", "huggingface", env=env) as server:
        answer = send(server, '{"inputs": "a", "parameters": {"top_k": 2}}')
        assert answer.json() == [{"task": "text-classification", "inputs": "a", "top_k": 2}]
    (library / "transformers.py").write_text(MISSING)
    done = panglot("serve", str(model), "--flavor", "huggingface", "--port", "0", env=env, seconds=60)
    assert (done.returncode, "pip install transformers" in done.stderr) == (3, True)


@pytest.mark.document("sagemaker.30", "sagemaker.31")
def test_tensorflow_serving(tmp_path: Path) -> None:
    tensorflow = pytest.importorskip("tensorflow")
    folder = copied("sagemaker_handlers", tmp_path / "handlers")

    class Doubles(tensorflow.Module):
        @tensorflow.function(input_signature=[tensorflow.TensorSpec([None, 2], tensorflow.float32)])
        def __call__(self, values):
            return {"out": values * 2.0}

    module = Doubles()
    tensorflow.saved_model.save(module, str(folder / "1"), signatures=module.__call__)
    with serving(folder) as server:
        assert send(server, '{"instances": [[1, 2]]}').json() == {"predictions": [[2.0, 4.0]]}
        assert send(server, "1,2\n3,4", "text/csv").json() == {"predictions": [[2.0, 4.0], [6.0, 8.0]]}
        failed = send(server, "x", "text/plain")
        assert (failed.status_code, failed.json()) == (500, {"error": "unsupported content type text/plain"})
        assert send(server, "{}").status_code == 500
    (folder / "code" / "inference.py").write_text(
        "import urllib.request\n\n\ndef handler(data, context):\n"
        "    with urllib.request.urlopen(context.rest_uri, data.read()) as answer:\n"
        "        return answer.read(), 'application/json'\n"
    )
    with serving(folder) as server:
        assert send(server, '{"instances": [[1, 2]]}').json() == {"predictions": [[2.0, 4.0]]}


@pytest.mark.document("sagemaker.38")
def test_a_service_of_ones_own() -> None:
    with serving("sagemaker_service") as server:
        answer = send(server, "hello world", "text/plain")
        assert (answer.status_code, answer.json(), answer.headers["x-calls"]) == (200, [1, 2], "1")
        assert answer.headers["content-type"] == JSON
        for body, message in (("break", "Prediction failed"), ("nothing", "number of batch response mismatched")):
            answer = send(server, body, "text/plain")
            assert answer.status_code == 503
            assert answer.json() == {"code": 503, "type": "InternalServerException", "message": message}
        assert "the service breaks" in server.log
        answer = send(server, "raise", "text/plain")
        assert (answer.status_code, answer.text) == (500, "these are no words")


def test_a_service_that_is_none_says_so(tmp_path: Path) -> None:
    text = "from base import DefaultHandlerService\n\n\nclass HandlerService(DefaultHandlerService):\n    pass\n"
    (tmp_path / "handler_service.py").write_text(text)
    (tmp_path / "base.py").write_text("class DefaultHandlerService:\n    pass\n")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "handler_service.py has no service" in done.stderr + done.stdout
