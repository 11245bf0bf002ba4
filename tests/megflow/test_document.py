"""The tutorial to the letter, on MegEngine: its export, its model, its node, its graph, its commands, its client."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support import megengine
from support.documents import code, lines
from support.graph_command import Command

pytestmark = pytest.mark.timeout(900)

DUMP_HEAD = """
import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine import jit


class Net(M.Module):
    def __init__(self):
        super().__init__()
        self.conv = M.Conv2d(3, 8, 7, stride=4, padding=3)
        self.fc = M.Linear(8 * 196, 1000)

    def forward(self, x):
        return self.fc(F.flatten(F.avg_pool2d(F.relu(self.conv(x)), 4), 1))


def main():
    mge.random.seed(7)
    model = Net()
    model.eval()
    graph_name = "model.mge"
"""
LITE_HEAD = """
import argparse

import cv2
import numpy as np
from megenginelite import LiteNetwork


class PredModel:
    def __init__(self, path):
        self.net = LiteNetwork()
        self.net.load(path)

    def preprocess(self, mat, input_size, scale_im, mean, std):
        img = cv2.resize(mat, input_size).astype(np.float32)
        img = (img / 255 if scale_im else img) - np.array(mean, np.float32)
        img = img / np.array(std, np.float32)
        return np.ascontiguousarray(img.transpose(2, 0, 1)[None], np.float32)

"""
LITE_TAIL = """

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--path")
    args = parser.parse_args()
    print(PredModel(args.model).inference(cv2.imread(args.path)))
"""
CLASSIFY_HEAD = """
import json

import numpy as np
from megflow import register

from .lite import PredModel


"""
CLASSIFY_INIT = """\
        self._model = PredModel(args["path"])
        self._model.inference(np.zeros((224, 224, 3), dtype=np.uint8))
"""
MAIN_GRAPH = """
[[graphs]]
name = "tutorial_01_image"
connections = [
    { cap = 16, ports = ["source:out", "destination:inp"] },
    { cap = 16, ports = ["source:inp", "destination:out"] },
]

    [[graphs.nodes]]
    name = "destination"
    ty = "subgraph"

"""


def command(number: int) -> list[str]:
    """A line of the document that is typed, without its prompt and its comment."""
    return shlex.split(lines("megflow", number, number).lstrip("$ "), comments=True)


@pytest.fixture(scope="module")
def python() -> str:
    found = megengine.interpreter()
    if not found:
        pytest.skip("MegEngine needs CPython 3.10, which is not here")
    return found


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tutorial's folder simple_classification, with a picture in it; what the document leaves out is ours."""
    folder = tmp_path_factory.mktemp("examples") / "simple_classification"
    folder.mkdir()
    (folder / "dump.py").write_text(DUMP_HEAD + lines("megflow", 24, 37) + "\n\nmain()\n")
    (folder / "lite.py").write_text(LITE_HEAD + lines("megflow", 47, 61) + LITE_TAIL)
    node = lines("megflow", 110, 113) + CLASSIFY_INIT + lines("megflow", 114, 122)
    (folder / "classify.py").write_text(CLASSIFY_HEAD + node)
    graph = lines("megflow", 74, 88) + MAIN_GRAPH + lines("megflow", 90, 94)
    (folder / "image_cpu.toml").write_text(graph)
    noise = np.random.RandomState(3).randint(0, 255, (8, 8, 3), np.uint8)
    Image.fromarray(noise).resize((320, 240)).save(folder / "test.jpg")
    return folder


@pytest.fixture(scope="module")
def model(python: str, plugin: Path) -> Path:
    """The export, by the tutorial's own command."""
    [_, script] = command(16)
    done = subprocess.run([python, script], cwd=plugin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [*_, name] = command(17)
    where = plugin.parent / "models" / "simple_classification_models" / "resnet18.mge"
    where.parent.mkdir(parents=True)
    return Path(shutil.copy(plugin / name, where))


@pytest.fixture(scope="module")
def expected(python: str, plugin: Path, model: Path) -> str:
    """What `lite.py` prints, by the tutorial's own command."""
    [_, *words] = command(63)
    done = subprocess.run([python, *words], cwd=plugin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


@pytest.fixture(scope="module")
def port(python: str, plugin: Path, model: Path) -> Iterator[int]:
    """Of the service, started by the tutorial's own command."""
    [name, *words] = command(135)
    assert name == "run_with_plugins"
    with Command(*words, "--port", "0", "--python", python, cwd=plugin.parent) as running:
        running.wait_log("is ready on", 120)
        yield int(running.wait_log(r"listening on http://127.0.0.1:(\d+)")[1])


@pytest.mark.document("megflow.03")
def test_the_export_writes_a_model(model: Path) -> None:
    assert model.stat().st_size > 1_000_000


@pytest.mark.document("megflow.05", "megflow.06")
def test_the_model_runs_by_itself(expected: str) -> None:
    assert 0 <= int(expected) < 1000


@pytest.mark.document("megflow.07", "megflow.15", "megflow.22", "megflow.24")
def test_the_curl_line_is_answered(port: int, plugin: Path, expected: str) -> None:
    words = [word.replace(":8081", f":{port}").replace("test.jpeg", "test.jpg") for word in command(143)]
    done = subprocess.run([*words, "-s"], cwd=plugin, capture_output=True, text=True, check=True)
    assert done.stdout == json.dumps(expected)


@pytest.mark.document("megflow.26")
def test_the_client_prints_the_answer(port: int, plugin: Path, python: str) -> None:
    """To the letter but for the port, which is whichever was free."""
    text = code("megflow", 153, 169)
    assert text.count("'8084'") == 1
    (plugin / "client.py").write_text(text.replace("'8084'", f"'{port}'"))
    done = subprocess.run([sys.executable, "client.py"], cwd=plugin, capture_output=True, text=True, check=False)
    assert re.fullmatch(r"b'\"\d+\"'\n", done.stdout), done.stderr
