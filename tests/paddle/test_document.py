"""The code of the source document, to the letter, around a net of ours: exported, served, compared, timed."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from support import documents
from support.paddle import CLOSE, picture, python
from support.server import panglot, serving

pytestmark = documents.needed

NET = """
import paddle
from paddle import nn


def colours(pretrained=None, num_classes=6):
    paddle.seed(4)
    last = nn.Linear(8 * 16, num_classes, weight_attr=nn.initializer.Normal(std=0.5))
    return nn.Sequential(nn.Conv2D(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2D(4), nn.Flatten(), last)
"""
EXPORT_HEAD = """
import argparse
import os
import sys
import paddle
import paddlevision.models
from paddle import nn
from paddle.static import InputSpec


def export(args):
"""
EXPORT_TAIL = """

if __name__ == "__main__":
    folder = sys.argv[1]
    export(argparse.Namespace(
        model="colours", pretrained=None, num_classes=6, img_size=32, save_inference_dir=folder))
"""
HEAD = """
import argparse
import os
import numpy as np
from paddle import inference
from PIL import Image
from reprod_log import ReprodLogger


class InferenceEngine(object):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.transforms = lambda img: np.asarray(img.resize((32, 32))).astype("float32").transpose(2, 0, 1) / 255
        self.predictor, self.config, self.input_tensor, self.output_tensor = self.load_predictor(
            os.path.join(args.model_dir, "inference.pdmodel"), os.path.join(args.model_dir, "inference.pdiparams"))

"""
ARGUMENTS = """

def get_args():
    def str2bool(v):
        return v.lower() in ("true", "t", "1")
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-dir", default=None)
    parser.add_argument("--use-gpu", default=False, type=str2bool)
    parser.add_argument("--use-mkldnn", default=True, type=str2bool)
    parser.add_argument("--cpu-threads", default=2, type=int)
    parser.add_argument("--batch-size", default=1, type=int)
    parser.add_argument("--img-path", default="./images/demo.jpg")
    parser.add_argument("--benchmark", default=False, type=str2bool)
    return parser.parse_args()


def infer_main(args):
    inference_engine = InferenceEngine(args)
"""
PREDICT = """
import json, sys
import numpy as np
import paddle
from PIL import Image
from paddlevision.models import colours
model = colours()
model.eval()
for path in sys.argv[1:]:
    img = np.asarray(Image.open(path).convert("RGB").resize((32, 32))).astype("float32").transpose(2, 0, 1) / 255
    prob = paddle.nn.functional.softmax(model(paddle.to_tensor(img[None]))).numpy()[0]
    print(json.dumps([int(prob.argmax()), float(prob.max())]))
"""

TRAINING = """
import numpy as np
import paddle
from paddlevision.models import colours
from PIL import Image
from reprod_log import ReprodLogger


def get_args():
    return "picture.png"


def main(args):
    model = colours()
    model.eval()
    img = np.asarray(Image.open(args).convert("RGB").resize((32, 32))).astype("float32").transpose(2, 0, 1) / 255
    prob = paddle.nn.functional.softmax(model(paddle.to_tensor(img[None]))).numpy()[0]
    return prob.argmax(), prob.max()


"""
DRIVER = """

def infer_main(args):
    inference_engine = InferenceEngine(args)
    img = inference_engine.preprocess(args.img_path)
    output = inference_engine.run(img)
    class_id = inference_engine.postprocess(output)
    return class_id


if __name__ == "__main__":
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--img-path")
    class_id = infer_main(parser.parse_args())
"""


def section(number: str) -> list[str]:
    """The blocks of code of one section of the document, without their fences."""
    text = documents.text("paddle")
    found = re.search(rf'<a name="{re.escape(number)}"></a>(.*?)(?=<a name=|\Z)', text, re.DOTALL)
    assert found is not None
    return re.findall(r"```(?:py|python)\n(.*?)```", found.group(1), re.DOTALL)


def build(folder: Path) -> Path:
    """A project whose export and inference are the document's own lines."""
    (folder / "paddlevision").mkdir()
    (folder / "paddlevision" / "__init__.py").write_text("")
    (folder / "paddlevision" / "models.py").write_text(NET)
    (folder / "export_model.py").write_text(EXPORT_HEAD + "\n".join(section("2.2")) + EXPORT_TAIL)
    methods = [section(number)[0] for number in ("2.4", "2.5", "2.6", "2.7")]
    driver = section("2.9")[0]
    main = section("2.8")[0]
    script = "".join((HEAD, *methods, ARGUMENTS, driver, "    return class_id, prob\n\n\n", main))
    (folder / "infer.py").write_text(script)
    compile(script, "infer.py", "exec")
    python("export_model.py", "inference", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("document"))


@pytest.mark.document("paddle.05", "paddle.09", "paddle.12", "paddle.15", "paddle.16", "paddle.17", "paddle.18")
def test_the_documents_own_code_is_served(folder: Path, tmp_path: Path) -> None:
    assert {path.name for path in (folder / "inference").iterdir()} == {"inference.json", "inference.pdiparams"}
    pictures = [picture(tmp_path / f"{seed}.png", seed, (40, 40)) for seed in range(6)]
    (folder / "predict.py").write_text(PREDICT)
    lines = python("predict.py", *map(str, pictures), cwd=folder).splitlines()
    expected = [json.loads(line) for line in lines if line.startswith("[")]
    with serving(folder) as server:
        for path, (class_id, prob) in zip(pictures, expected, strict=True):
            answer = server.predict(content=path.read_bytes()).json()
            assert list(answer) == ["class_id", "prob"]
            assert answer["class_id"] == class_id
            assert abs(answer["prob"] - prob) <= CLOSE
    assert len({prob for _, prob in expected}) == len(pictures), "every picture has an answer of its own"


@pytest.mark.document("paddle.25", "paddle.26")
def test_the_whole_driver_with_its_report(folder: Path, tmp_path: Path) -> None:
    """--entry calls the document's driver; with --benchmark it prints the block for each request, and goes on."""
    content = picture(tmp_path / "a.png", 1).read_bytes()
    with serving(folder, "--entry", "infer_main", "--", "--benchmark", "True") as server:
        for _ in range(2):
            answer = server.predict(content=content)
            assert answer.status_code == 200
            assert list(answer.json()) == ["class_id", "prob"]
        server.wait_log("(?s)Perf info.*postprocess_time.*Perf info.*postprocess_time")
        assert server.log.count("Perf info") == 2
        assert len(server.workers()) == 1
    assert textwrap.dedent(section("2.6")[0]).startswith("def run"), "the steps are the document's"


@pytest.mark.document("paddle.19", "paddle.20", "paddle.21")
def test_both_engines_save_their_results_and_these_agree(folder: Path, tmp_path: Path) -> None:
    """The document's two blocks that save, run plainly: with the training engine and with the exported model."""
    picture(folder / "picture.png", 3, (40, 40))
    (folder / "training.py").write_text(TRAINING + section("2.8")[1])
    python("training.py", cwd=folder, shims=True)
    python("infer.py", "--model-dir", "inference", "--img-path", "picture.png", cwd=folder, shims=True)
    files = [str(folder / f"output_{engine}_engine.npy") for engine in ("inference", "training")]
    done = panglot("check", *files, "--atol", str(CLOSE))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.document("paddle.11")
def test_the_bare_class_is_served(tmp_path: Path) -> None:
    """Nothing in it does anything yet; a driver passes on what its steps return."""
    (tmp_path / "infer.py").write_text(section("2.3")[0] + DRIVER)
    with serving(tmp_path) as server:
        answer = server.predict(content=picture(tmp_path / "a.png", 1).read_bytes())
        assert (answer.status_code, answer.json()) == (200, {"class_id": None})
        assert "preprocess;dur=" in answer.headers["server-timing"]
