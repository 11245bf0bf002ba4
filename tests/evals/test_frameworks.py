"""Real scripts on numpy, OpenCV, PyTorch and ONNX Runtime, with right answers; the example and the template."""

from __future__ import annotations

import base64
import json
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from support.evals import ask, data_uri, package, result, single
from support.server import ROOT, panglot, serving

EXAMPLE = ROOT / "examples" / "evals"


def png(pixels: np.ndarray) -> bytes:
    return cv2.imencode(".png", pixels)[1].tobytes()


@pytest.fixture(scope="module")
def digits() -> tuple[list[bytes], list[int]]:
    """Pictures of digits the example was not trained on, and what they are."""
    from sklearn.datasets import load_digits

    data = load_digits()
    large = [np.kron(image / 16 * 255, np.ones((6, 6))).astype(np.uint8) for image in data.images[1500:1540]]
    return [png(picture) for picture in large], [int(label) for label in data.target[1500:1540]]


def test_the_example_reads_digits(digits: tuple[list[bytes], list[int]]) -> None:
    """numpy and OpenCV: single, in a batch, with a bad picture between good ones, uploaded."""
    pictures, labels = digits
    with serving(EXAMPLE) as server:
        server.wait_log("digits knows 10 digits")
        rets = ask(server, [single(picture) for picture in pictures], "/v1/batch").json()
        right = sum(ret["result"]["confidences"][0]["index"] == label for ret, label in zip(rets, labels, strict=True))
        assert right > 34
        seven = (EXAMPLE / "seven.png").read_bytes()
        assert result(server, single(seven))["confidences"] == [{"class": "seven", "index": 7, "score": 0.962}]
        assert len(result(server, single(seven, {"limit": 3}))["confidences"]) == 3
        mixed = ask(server, [single(seven), single(b"no picture"), single(seven)], "/v1/batch").json()
        assert [ret["code"] for ret in mixed] == [0, 400, 0]
        upload = server.client.post("/v1/eval", files={"file": ("three.png", (EXAMPLE / "three.png").read_bytes())})
        assert upload.json()["result"]["confidences"][0]["class"] == "three"
        assert server.metric("ava_serving_eval_response_time_count", method="py.load") > 0


DETECTOR = """
import cv2
from evals.utils import *
from evals.utils.error import *
from evals.utils.image import load_image


@create_net_handler
def create_net(configs):
    return {"threshold": configs["custom_params"]["threshold"], "batch_size": configs["batch_size"]}, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    if len(reqs) > model["batch_size"]:
        raise ErrorOutOfBatchSize(model["batch_size"])
    try:
        return [boxes(model, req) for req in reqs], 0, ""
    except ErrorBase as e:
        return [], e.code, str(e)


def boxes(model, req):
    picture = load_image(req["data"]["uri"], body=req["data"]["body"])
    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    _, white = cv2.threshold(grey, model["threshold"], 255, cv2.THRESH_BINARY)
    count, _, stats, _ = cv2.connectedComponentsWithStats(white)
    found = [[int(v) for v in stats[n][:4]] for n in range(1, count)]
    return {"code": 0, "message": "", "result": {"detections": [
        {"class": "blob", "pts": [[x, y], [x + w, y], [x + w, y + h], [x, y + h]]} for x, y, w, h in sorted(found)
    ]}}
"""


def test_a_detector_on_opencv(tmp_path: Path) -> None:
    """Boxes of what is bright; one bad picture fails the whole call by this script, and only itself over HTTP."""
    picture = np.zeros((100, 120), dtype=np.uint8)
    picture[10:30, 20:50] = 255
    picture[60:90, 70:80] = 200
    toml = "[evals]\nbatch_size = 4\ncustom_params = { threshold = 128 }\n"
    with serving(package(tmp_path, DETECTOR, panglot__toml=toml)) as server:
        found = result(server, single(png(picture)))["detections"]
        assert [box["pts"][0] + box["pts"][2] for box in found] == [[20, 10, 50, 30], [70, 60, 80, 90]]
        answer = ask(server, single(b"garbage"))
        assert (answer.status_code, answer.json()) == (400, {"error": "cv2 load  failed"})
        assert ask(server, [single(png(picture)), single(b"garbage")], "/v1/batch").status_code == 400


FEATURES = """
import struct
import numpy as np
import torch
from evals.utils import *
from evals.utils.image import load_image
from net import Features


@create_net_handler
def create_net(configs):
    torch.set_num_threads(1)
    net = Features()
    net.load_state_dict(torch.load(configs["model_files"]["features.pt"], weights_only=True))
    net.eval()
    return {"net": net}, 200, "Success"


@net_inference_handler
def net_inference(model, reqs):
    pictures = [load_image(req["data"]["uri"], body=req["data"]["body"]) for req in reqs]
    batch = torch.from_numpy(np.stack([p[:64, :64].astype(np.float32) / 255 for p in pictures])).permute(0, 3, 1, 2)
    with torch.no_grad():
        features = model["net"](batch).numpy()
    return [{"code": 0, "message": "", "body": struct.pack(">%df" % len(row), *row)} for row in features], 0, None
"""


NET = """
import torch


class Features(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 4, 3)

    def forward(self, pictures):
        return self.convolution(pictures).relu().mean(dim=(2, 3))
"""


def test_a_feature_extractor_on_pytorch(tmp_path: Path) -> None:
    """Packed big-endian floats in the body, the same as PyTorch gives here."""
    import torch

    torch.manual_seed(0)
    own: dict[str, Any] = {}
    exec(NET, own)
    net = own["Features"]().eval()
    (tmp_path / "models").mkdir()
    torch.save(net.state_dict(), tmp_path / "models" / "features.pt")
    picture = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    with serving(package(tmp_path, FEATURES, net__py=NET)) as server:
        answer = ask(server, single(png(picture)))
        assert answer.headers["content-type"] == "application/octet-stream"
        inputs = torch.from_numpy(picture.astype(np.float32) / 255).permute(2, 0, 1)[None]
        with torch.no_grad():
            expected = net(inputs)[0].numpy()
        assert np.allclose(struct.unpack(">4f", answer.content), expected, atol=1e-5)


CLASSIFIER = """
import cv2
import numpy as np
import onnxruntime
from evals.utils import *
from evals.utils.image import load_image


@create_net_handler
def create_net(configs):
    session = onnxruntime.InferenceSession(configs["model_files"]["digits.onnx"], providers=["CPUExecutionProvider"])
    return {"session": session, "name": session.get_inputs()[0].name}, 0, ""


@net_preprocess_handler
def net_preprocess(model, req):
    picture = cv2.cvtColor(load_image("", body=req["data"]["body"]), cv2.COLOR_BGR2GRAY)
    req["data"]["pixels"] = cv2.resize(picture, (8, 8), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    return req, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    batch = np.stack([req["data"]["pixels"].ravel() for req in reqs])
    scores = model["session"].run(None, {model["name"]: batch})[0]
    return [{"code": 0, "message": "", "result": {"digit": int(row.argmax())}} for row in scores], 0, ""
"""


def test_a_classifier_on_onnx_runtime(tmp_path: Path, digits: tuple[list[bytes], list[int]]) -> None:
    """With net_preprocess, whose failure costs one picture."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    stored = np.load(EXAMPLE / "models" / "digits.npz")
    node = helper.make_node("Gemm", ["x", "weights", "bias"], ["y"])
    value = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 64), ("y", 10))
    ]
    constants = [numpy_helper.from_array(stored[name], name) for name in ("weights", "bias")]
    graph = helper.make_graph([node], "digits", value[:1], value[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "models").mkdir()
    onnx.save(model, str(tmp_path / "models" / "digits.onnx"))
    pictures, labels = digits
    toml = "[evals]\nbatch_size = 8\nnet_preprocess = true\n"
    with serving(package(tmp_path, CLASSIFIER, panglot__toml=toml)) as server:
        rets = ask(server, [single(picture) for picture in pictures], "/v1/batch").json()
        assert sum(ret["result"]["digit"] == label for ret, label in zip(rets, labels, strict=True)) > 34
        assert ask(server, single(b"garbage")).status_code == 599


# A text service: the template

EXPECTED = {"code": 0, "message": "", "result": {"label": "friendly", "score": 0.9478}}


def test_the_template_answers_its_own_example(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    done = panglot("new", "evals", str(folder))
    assert done.returncode == 0, done.stderr
    serve, call = done.stdout.strip().splitlines()[-2:]
    assert shlex.split(serve) == ["panglot", "serve", str(folder)]
    assert "/v1/eval" in call
    imported = set(re.findall(r"^(?:import|from) (\w+)", (folder / "eval.py").read_text(), re.MULTILINE))
    assert imported <= sys.stdlib_module_names | {"evals"}
    with serving(folder) as server:
        assert ask(server, json.loads((folder / "request.json").read_text())).json() == EXPECTED
        assert ask(server, single(b"\xff")).status_code == 400
        assert ask(server, [single(b"I hate this")] * 6, "/v1/batch").json()[5]["result"]["label"] == "unfriendly"
        line = call.replace("http://127.0.0.1:8080", server.url)
        called = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, cwd=ROOT)
        assert json.loads(called.stdout) == EXPECTED
        server.wait_log("try: curl")


def test_inspect_and_the_ways_to_ask(tmp_path: Path) -> None:
    done = panglot("inspect", str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    for words in ("evals", "POST /v1/batch", "GET /health (public)", "digits.npz", "labels.csv", "defines create_net"):
        assert words in done.stdout
    from panglot.errors import StartError
    from panglot.inputs import make_request as asked
    from panglot.inputs.base import About, Given

    about = About("evals", "/v1/eval")
    picture = asked(about, Given("seven.png", EXAMPLE / "seven.png"))
    kind, body = picture.encoded()
    uri = data_uri((EXAMPLE / "seven.png").read_bytes())
    assert (kind, json.loads(body)) == ("application/json", {"data": {"uri": uri}})
    assert asked(about, Given("list", value=[single()])).path == "/v1/batch"
    assert asked(about, Given("one", value=single())).path == "/v1/eval"
    with pytest.raises(StartError, match="no request of evals"):
        asked(about, Given("text", value={"text": base64.b64encode(b"x").decode()}))
