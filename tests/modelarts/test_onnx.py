"""A `model_path` that ends in .onnx is run by onnxruntime where the script has no `_inference` of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from support.modelarts import config, document_script, grey, package
from support.server import ROOT, panglot, serving

EXAMPLE = ROOT / "examples" / "modelarts" / "model"
DIGITS = (EXAMPLE / "digits.onnx").read_bytes()
OWN = """
import os
from model_service.tfserving_model_service import TfServingBaseService

class Service(TfServingBaseService):
    def __init__(self, model_name, model_path):
        {first}
        self.model_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "test.onnx")
"""


def seven() -> list[float]:
    picture = Image.open(EXAMPLE / "seven.png").convert("L").resize((8, 8), Image.Resampling.BOX)
    return [value / 255 for value in picture.tobytes()]


def check_seven(folder: Path) -> None:
    with serving(folder) as server:
        answer = server.client.post("/", json={"images": [seven()]})
        assert answer.status_code == 200, server.log
        [row] = answer.json()["probabilities"]
        assert row.index(max(row)) == 7
        assert '{"images":[[1.0,' in server.wait_log("try: (.*)")[1]
        for wrong, message in (
            ({"other": [seven()]}, r"input key other is not in model inputs \['images'\]"),
            ({"images": [[1.0]]}, "InvalidArgument"),
        ):
            answer = server.client.post("/", json=wrong)
            assert (answer.status_code, answer.json()["erno"]) == (500, "MR.0105")
            server.wait_log(message)


@pytest.mark.document("modelarts.34")
def test_the_documents_note_with_its_quotes_serves_its_file(tmp_path: Path) -> None:
    """The note forgets the quotes around the file's name; nothing else is changed. There is no config.json."""
    script = document_script("onnx").replace("root, test.onnx)\n", 'root, "test.onnx")\n')
    check_seven(package(tmp_path, script, test__onnx=DIGITS))


@pytest.mark.parametrize("first", ["pass", "super().__init__(model_name, model_path)"])
def test_a_path_set_by_the_script_is_run(tmp_path: Path, first: str) -> None:
    check_seven(package(tmp_path, OWN.format(first=first), config("TensorFlow"), test__onnx=DIGITS))


def test_a_path_given_to_the_platform_is_run(tmp_path: Path) -> None:
    script = OWN.partition("    def __init__")[0] + "    pass\n"
    package(tmp_path, script, config("TensorFlow"), test__onnx=DIGITS)
    with serving(tmp_path, env={"TF_MODEL_ARGS": "--model_path test.onnx"}) as server:
        assert "probabilities" in server.client.post("/", json={"images": [seven()]}).json()


def test_under_pytorch_it_is_the_weights_file(tmp_path: Path) -> None:
    script = """
        from model_service.pytorch_model_service import PTServingBaseService

        class Service(PTServingBaseService):
            def _postprocess(self, data):
                return int(data["probabilities"].argmax())
    """
    with serving(package(tmp_path, script, config("PyTorch"), net__onnx=DIGITS)) as server:
        assert server.client.post("/", json={"images": [seven()]}).json() == 7
    assert "self.model is None" not in server.log


VISION = """
import sys
from onnx import TensorProto, helper, save

image = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])
mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n"])
node = helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0)
graph = helper.make_graph([node], "bright", [image], [mean])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), sys.argv[1])
"""


def test_pytorch_without_a_script_gives_it_pictures(tmp_path: Path) -> None:
    package(tmp_path, config=config("PyTorch"))
    subprocess.run([sys.executable, "-c", VISION, str(tmp_path / "bright.onnx")], check=True, timeout=60)
    with serving(tmp_path) as server:
        assert server.client.post("/", files={"images": ("a.png", grey(100))}).json() == {"mean": [100.0]}
        server.wait_log("for a command to try here: put a request.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no model", "loading the model failed: InvalidProtobuf"), (None, "FileNotFoundError: there is no .*test.onnx")],
)
def test_a_file_that_is_no_model_fails_the_load(tmp_path: Path, content: bytes | None, message: str) -> None:
    package(tmp_path, OWN.format(first="pass"), config("TensorFlow"), **({"test__onnx": content} if content else {}))
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert re.search(message, done.stderr.strip().splitlines()[-1]), done.stderr
