"""Scripts pinned to a device that is not there, and TensorFlow 1 scripts on TensorFlow 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.modelarts import config, package
from support.server import panglot, serving
from support.traffic import SOAK, times

TORCH = """
import torch
from model_service.pytorch_model_service import PTServingBaseService


class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        device = torch.device("cuda:0")
        self.model = torch.nn.Linear(2, 1)
        LINE
        with torch.no_grad():
            self.model.weight.fill_(1.0)
            self.model.bias.zero_()

    def _preprocess(self, data):
        return {"x": torch.tensor(data["x"], device="cuda").to("cuda:0").to(0).cuda()}

    def _postprocess(self, data):
        return {"x": data["x"], "device": str(data["x"].device)}
"""


PINNED = ("self.model.to(device)", "torch.load(model_path, map_location=device)", "torch.cuda.set_device(0)")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("weights") / "w.pth"
    code = "import sys, torch; torch.save(torch.nn.Linear(2, 1).state_dict(), sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(file)], check=True, timeout=110)
    return file.read_bytes()


@pytest.mark.document("modelarts.38")
@pytest.mark.parametrize("line", PINNED[: times(1, 3)])
def test_torch_pinned_to_cuda_fails_at_load_and_names_the_way_out(tmp_path: Path, weights: bytes, line: str) -> None:
    package(tmp_path, TORCH.replace("LINE", line), config("PyTorch"), w__pth=weights)
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "customize_service.py:10: the script asks torch for a CUDA device, and torch sees none" in last
    assert "(fix: --device cpu runs it on the CPU)" in last


def test_device_cpu_maps_every_way_of_asking_for_cuda(tmp_path: Path, weights: bytes) -> None:
    lines = "; ".join((*PINNED, "self.model.cuda()"))
    package(tmp_path, TORCH.replace("LINE", lines), config("PyTorch"), w__pth=weights)
    with serving(tmp_path, "--device", "cpu") as server:
        server.wait_log("the script asks for cuda:0; --device cpu gives it the CPU")
        assert server.client.post("/", json={"x": [1.5, 2.0]}).json() == {"x": [3.5], "device": "cpu"}


def test_a_device_first_asked_for_by_a_request_is_named_in_the_log(tmp_path: Path) -> None:
    package(tmp_path, TORCH.replace("LINE", "pass"), config("PyTorch"))
    with serving(tmp_path) as server:
        for _ in range(2):
            answer = server.client.post("/", json={"x": [1.5, 2.0]})
            assert (answer.status_code, answer.json()["erno"]) == (500, "MR.0105")
        server.wait_log("the script asks torch for a CUDA device, and torch sees none: --device cpu runs it on the CPU")
    assert server.log.count("--device cpu") == 1


def test_an_ordinary_failure_is_not_taken_for_a_device(tmp_path: Path) -> None:
    package(tmp_path, TORCH.replace("LINE", "torch.load('nowhere.pth')"), config("PyTorch"))
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert "FileNotFoundError" in done.stderr.strip().splitlines()[-1]
    assert "--device" not in done.stderr.strip().splitlines()[-1]


def test_mindspore_set_device_is_explained_and_mapped_too(tmp_path: Path) -> None:
    script = """
        import mindspore
        from model_service.model_service import SingleNodeService

        mindspore.set_device("GPU", 0)

        class Service(SingleNodeService):
            def _inference(self, data):
                return mindspore.Tensor(data["x"])
    """
    package(tmp_path, script, config("MindSpore"))
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "the script asks MindSpore for the device GPU, which is not there (fix: --device cpu" in done.stderr
    with serving(tmp_path, "--device", "cpu") as server:
        assert server.client.post("/", json={"x": [1, 2]}).json() == [1, 2]


# TensorFlow 1

PLACEHOLDERS = """
import numpy as np
import tensorflow as tf
from helper import scores
from model_service.tfserving_model_service import TfServingBaseService


class Service(TfServingBaseService):
    def __init__(self, model_name, model_path):
        self.x = tf.placeholder(tf.float32, [None, 2], name="x")
        self.y = scores(self.x)
        assert self.y.shape[1].value == 1
        config = tf.ConfigProto(allow_soft_placement=True)
        self.sess = tf.Session(config=config)
        self.sess.run(tf.global_variables_initializer())

    def _inference(self, data):
        return self.sess.run(self.y, feed_dict={self.x: np.array(data["x"], dtype=np.float32)})
"""
HELPER = """
import tensorflow as tf


def scores(x):
    with tf.variable_scope("last"):
        weights = tf.get_variable("w", initializer=tf.ones([2, 1]))
    return tf.matmul(x, weights)
"""


@pytest.mark.document("modelarts.29")
def test_a_graph_built_the_old_way_runs_with_names_of_its_siblings_too(tmp_path: Path) -> None:
    package(tmp_path, PLACEHOLDERS, config("TensorFlow"), helper__py=HELPER)
    with serving(tmp_path) as server:
        assert server.client.post("/", json={"x": [[1.0, 2.0], [3.0, 4.0]]}).json() == [[3.0], [7.0]]
        server.wait_log("TensorFlow 1 behaviour turned on")
    assert server.log.count("supplied from tf.compat.v1") == 1


NEW = """
import tensorflow as tf
from model_service.tfserving_model_service import TfServingBaseService

if tf.__version__.startswith("1."):
    Session = tf.Session


class Service(TfServingBaseService):
    def __init__(self, model_name, model_path):
        assert tf.executing_eagerly()
        assert hasattr(tf, "Session") is USED

    def _inference(self, data):
        return (tf.constant(data["x"]) * 2).numpy()
"""


def test_a_tensorflow_2_script_is_left_alone(tmp_path: Path) -> None:
    script = NEW.replace("Session = tf.Session", "raise SystemExit").replace("USED", "False")
    with serving(package(tmp_path, script, config("TensorFlow"))) as server:
        assert server.client.post("/", json={"x": [1.5]}).json() == [3.0]
    assert "compat.v1" not in server.log


@pytest.mark.skipif(not SOAK, reason="TensorFlow once more: make soak")
def test_a_script_for_both_keeps_tensorflow_2_behaviour(tmp_path: Path) -> None:
    with serving(package(tmp_path, NEW.replace("USED", "True"), config("TensorFlow"))) as server:
        assert server.client.post("/", json={"x": [1.5]}).json() == [3.0]
    assert "behaviour turned on" not in server.log
