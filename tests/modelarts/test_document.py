"""The scripts of the platform's own document, to the letter, on real frameworks; and the same by our own hand."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from support.modelarts import SCRIPTS, Digits, config, document_listings, document_script, package
from support.server import Server, panglot, serving

OWN = {
    "tensorflow": """
from model_service.tfserving_model_service import TfServingBaseService
from PIL import Image
import numpy as np


class Service(TfServingBaseService):
    def _preprocess(self, data):
        flat = {}
        for key, files in data.items():
            for name, file in files.items():
                flat[key] = np.asarray(Image.open(file), dtype=np.float32).reshape(1, 784)
        return flat

    def _postprocess(self, data):
        [row] = next(iter(data.values()))
        return {"mnist_result": row.index(max(row))}
""",
    "tensorflow1": """
import threading

import numpy as np
import tensorflow as tf
from model_service.tfserving_model_service import TfServingBaseService
from PIL import Image


class Service(TfServingBaseService):
    def __init__(self, model_name, model_path):
        self.model_path = model_path
        threading.Thread(target=self.open).start()

    def open(self):
        self.sess = tf.Session(graph=tf.Graph())
        graph = tf.saved_model.loader.load(self.sess, [tf.saved_model.tag_constants.SERVING], self.model_path)
        signature = graph.signature_def[tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
        self.input, self.output = signature.inputs["images"].name, signature.outputs["scores"].name

    def _preprocess(self, data):
        return np.stack([np.asarray(Image.open(file), np.float32) for file in data["images"].values()])

    def _inference(self, data):
        return self.sess.run(self.output, {self.input: data})

    def _postprocess(self, data):
        return {"mnist_result": [np.argmax(row) for row in data]}
""",
    "onnx": """
import os

from model_service.tfserving_model_service import TfServingBaseService


class Service(TfServingBaseService):
    def __init__(self, model_name, model_path):
        self.model_path = os.path.join(os.path.dirname(__file__), test.onnx)
""",
    "mindspore": """
import threading

import logging

import mindspore
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from model_service.model_service import SingleNodeService
from PIL import Image

logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)
context.set_context(mode=context.GRAPH_MODE, device_target="Ascend")


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.last = nn.Dense(1024, 10)

    def construct(self, x):
        return self.last(self.flatten(x))


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        self.model_path = model_path
        threading.Thread(target=self.load).start()

    def load(self):
        self.network = LeNet5()
        weights = mindspore.load_checkpoint(self.model_path + "/checkpoint_lenet_1-1_1875.ckpt")
        mindspore.load_param_into_net(self.network, weights)
        logger.info("warmup network successfully !")
        logger.info("load network successfully !")

    def _preprocess(self, data):
        [file] = data["images"].values()
        column = Image.open(file).resize((1, 1024))
        return Tensor(np.asarray(column, dtype=np.float32).reshape(1, 1, 32, 32))

    def _inference(self, data):
        return self.network(data)

    def _postprocess(self, data):
        return str(data)
""",
}
assert set(OWN) == set(SCRIPTS)

Source = Callable[[str], str]

LENET = """
import importlib.util
import sys
import numpy as np
from PIL import Image

text, folder, picture = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3]
network_part = text.replace('"Ascend"', '"CPU"').partition("\\nclass MnistService")[0].partition("\\nclass Service")[0]
with open(picture + "_network.py", "w") as file:
    file.write("\\n".join(line for line in network_part.splitlines() if "model_service" not in line))
spec = importlib.util.spec_from_file_location("network_part", picture + "_network.py")
module = sys.modules["network_part"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
mindspore = module.mindspore
network = module.LeNet5()
mindspore.save_checkpoint(network, folder + "/checkpoint_lenet_1-1_1875.ckpt")
pixels = np.asarray(Image.open(picture).resize((1, 1024)), dtype=np.float32).reshape(1, 1, 32, 32)
print("ANSWER", repr(str(network(mindspore.Tensor(pixels)))))
"""


@pytest.fixture(params=["ours", "verbatim"])
def source(request: pytest.FixtureRequest) -> Source:
    """Our own scripts, always; and the document's, which do the same, where it is at hand."""
    return OWN.__getitem__ if request.param == "ours" else document_script


def saved_package(folder: Path, script: str, model: Path) -> Path:
    """A package in its `model` folder, over a SavedModel."""
    shutil.copytree(model, folder / "model")
    package(folder / "model", config=config("TensorFlow"))
    (folder / "model" / "customize_service.py").write_text(script)
    return folder


def answers(server: Server, digits: Digits) -> list[object]:
    found = []
    for number, picture in enumerate(digits.pictures):
        answer = server.client.post("/", files={"images": (f"{number}.png", picture, "image/png")})
        assert answer.status_code == 200, server.log
        found.append(answer.json()["mnist_result"])
    return found


@pytest.mark.document("modelarts.09", "modelarts.20", "modelarts.30")
def test_the_tensorflow_service_reads_real_digits(
    tmp_path: Path, source: Source, saved_models: Path, digits: Digits
) -> None:
    with serving(saved_package(tmp_path, source("tensorflow"), saved_models / "flat")) as server:
        assert answers(server, digits) == digits.labels
    assert "signatures more than one" not in server.log, "the only signature is taken whatever its name"


@pytest.mark.document("modelarts.27", "modelarts.29", "modelarts.31")
def test_the_tensorflow_1_service_reads_real_digits_on_tensorflow_2(
    tmp_path: Path, source: Source, saved_models: Path, digits: Digits
) -> None:
    with serving(saved_package(tmp_path, source("tensorflow1"), saved_models / "square")) as server:
        assert answers(server, digits) == [[label] for label in digits.labels]
        if source is document_script:
            server.wait_log(r"customize_service - INFO - model inputs: \{'images': ")
        message = r"TensorFlow 2\S* has no tf.Session, tf.saved_model.loader, .*customize_service.py:\d+\): supplied"
        server.wait_log(message)
        answer = server.client.post("/", files={"wrong": ("0.png", digits.pictures[0], "image/png")})
        assert answer.status_code in (400, 500)
        assert answer.json()["erno"] == "MR.0105"
    assert server.log.count("supplied from tf.compat.v1") == 1


@pytest.mark.document("modelarts.35")
def test_the_file_name_without_quotes_is_reported_well(tmp_path: Path, source: Source) -> None:
    package(tmp_path, source("onnx"), config("TensorFlow"), test__onnx=b"")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "failed: NameError: name 'test' is not defined (fix: there is a file test.onnx: write 'test.onnx'" in last
    assert re.search(r"customize_service.py:\d+: ", last)
    assert "test.onnx)" in done.stderr, "the line itself is shown"


REQUESTS = """
import io
from model_service.model_service import SingleNodeService

class Service(SingleNodeService):
    def _inference(self, data):
        return {key: {name: file.getvalue().decode() for name, file in value.items()} if type(value) is dict else value
                for key, value in data.items()}
"""


@pytest.mark.document("modelarts.17b", "modelarts.18")
def test_the_documents_own_requests_give_the_script_what_it_says(tmp_path: Path) -> None:
    """The curl lines to the letter but for the address. The JSON one names no content type, and gives a dict."""
    [form] = document_listings("-F image1=@cat.jpg")
    [text] = document_listings("curl -X POST \\\n  <modelarts-inference-endpoint> \\\n  -d")
    [expected] = document_listings('{\n   "images":"base64 encode image"\n\n}')
    (tmp_path / "cat.jpg").write_text("meow")
    (tmp_path / "horse.jpg").write_text("neigh")
    with serving(package(tmp_path / "p", REQUESTS, config("MindSpore"))) as server:

        def answer(listing: str) -> object:
            line = listing.replace("<modelarts-inference-endpoint>", server.url)
            done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
            return json.loads(done.stdout)

        assert answer(form) == {"image1": {"cat.jpg": "meow"}, "images2": {"horse.jpg": "neigh"}}
        assert answer(text) == json.loads(expected) == {"images": "base64 encode image"}


@pytest.mark.document("modelarts.34")
def test_the_onnx_note_with_its_quotes_and_an_inference_of_its_own(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "modelarts" / "model"
    script = document_script("onnx").replace("root, test.onnx)\n", 'root, "test.onnx")\n') + (
        "        import onnxruntime\n"
        "        self.session = onnxruntime.InferenceSession(self.model_path)\n\n"
        "    def _inference(self, data):\n"
        "        import numpy\n"
        "        rows = numpy.array(data['rows'], numpy.float32)\n"
        "        return self.session.run(None, {'images': rows})[0].argmax(axis=1)\n"
    )
    package(tmp_path, script, config("TensorFlow"), test__onnx=(example / "digits.onnx").read_bytes())
    seven = Image.open(example / "seven.png").convert("L").resize((8, 8), Image.Resampling.BOX)
    row = [value / 255 for value in seven.tobytes()]
    with serving(tmp_path) as server:
        assert server.client.post("/", json={"rows": [row]}).json() == [7]


@pytest.mark.document("modelarts.37", "modelarts.38", "modelarts.39")
def test_mindspore_pinned_to_ascend_says_so_and_runs_on_the_cpu_when_told(
    tmp_path: Path, source: Source, digits: Digits
) -> None:
    folder = package(tmp_path / "p", source("mindspore"), config("MindSpore"))
    picture = tmp_path / "digit.png"
    picture.write_bytes(digits.pictures[0])
    made = subprocess.run(
        [sys.executable, "-c", LENET, str(folder / "customize_service.py"), str(folder), str(picture)],
        check=True, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    expected = eval(made.stdout.partition("ANSWER ")[2].splitlines()[0])
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "the script asks MindSpore for the device Ascend, which is not there (fix: --device cpu" in last
    assert "customize_service.py:" in last
    with serving(folder, "--device", "cpu") as server:
        server.wait_log('the script asks for device_target="Ascend"; --device cpu gives it the CPU')
        server.wait_log("INFO - warmup network successfully !")
        server.wait_log("INFO - load network successfully !")
        answer = server.client.post("/", files={"images": ("digit.png", io.BytesIO(digits.pictures[0]), "image/png")})
        assert answer.json() == expected
