"""The tutorial's classification service, end to end on MegEngine: dumped, loaded by MegEngine Lite, served, asked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support import megengine
from support.graph_command import Command
from support.server import panglot

SOURCE = Path(__file__).parent / "megengine"
pytestmark = pytest.mark.timeout(900)

CLIENT = """
import sys
import requests
import cv2

def test():
    ip = 'localhost'
    port = sys.argv[1]
    url = 'http://{}:{}/analyze/any_content'.format(ip, port)
    img = cv2.imread("./test.jpg")
    _, data = cv2.imencode(".png", img)
    data = data.tobytes()

    headers = {'Content-Length': '%d' % len(data), 'Content-Type': 'image/*'}
    res = requests.post(url, data=data, headers=headers)
    print(res.content)

if __name__ == "__main__":
    test()
"""


@pytest.fixture(scope="module")
def python() -> str:
    found = megengine.interpreter()
    if not found:
        pytest.skip("MegEngine needs CPython 3.10, which is not here")
    return found


@pytest.fixture(scope="module")
def folder(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As in the tutorial: the plugin folder, and the model under models/."""
    here = tmp_path_factory.mktemp("examples")
    shutil.copytree(SOURCE / "simple_classification", here / "simple_classification")
    models = here / "models" / "simple_classification_models"
    models.mkdir(parents=True)
    subprocess.run([python, SOURCE / "dump.py", models / "resnet18.mge"], check=True, capture_output=True)
    noise = np.random.RandomState(3).randint(0, 255, (8, 8, 3), np.uint8)
    Image.fromarray(noise).resize((320, 240)).save(here / "test.jpg")
    (here / "client.py").write_text(CLIENT)
    return here


@pytest.fixture(scope="module")
def service(python: str, folder: Path) -> Iterator[int]:
    graph = ("-c", "simple_classification/image_cpu.toml", "-p", "simple_classification")
    with Command(*graph, "--port", "0", "--python", python, cwd=folder) as running:
        running.wait_log("is ready on", 120)
        assert "Python 3.10" in running.text
        yield int(running.wait_log(r"listening on http://127.0.0.1:(\d+)")[1])


@pytest.fixture(scope="module")
def expected(python: str, folder: Path) -> str:
    """What the network itself says, without a graph."""
    script = folder / "simple_classification" / "lite.py"
    model = folder / "models" / "simple_classification_models" / "resnet18.mge"
    done = subprocess.run(
        [python, script, "--model", model, "--path", "test.jpg"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1]


@pytest.mark.document("megflow.01", "megflow.22")
def test_the_tutorials_curl(service: int, folder: Path, expected: str) -> None:
    done = subprocess.run(
        ["curl", "-s", f"http://127.0.0.1:{service}/analyze/image_name", "-X", "POST", "--header",
         "Content-Type:image/*", "--data-binary", "@test.jpg"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == json.dumps(expected)


def test_the_tutorials_client(service: int, folder: Path, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "client.py", str(service)], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == repr(json.dumps(expected).encode())


@pytest.mark.document("megflow.04")
def test_export_loads_and_runs_what_dump_wrote(python: str, tmp_path: Path) -> None:
    """`panglot export` takes the tutorial's dump.py for an export script, and a .mge for a model."""
    shutil.copy(SOURCE / "dump.py", tmp_path)
    done = panglot("export", str(tmp_path), "--json", "--python", python, "--", "model.mge", seconds=110)
    assert done.returncode == 0, done.stdout + done.stderr
    (model,) = json.loads(done.stdout)["models"]
    assert model["form"] == "MegEngine"
    assert [Path(name).name for name in model["files"]] == ["model.mge"]
    assert [(entry["name"], entry["dtype"], entry["shape"]) for entry in model["inputs"]] == [
        ("data", "float32", [1, 3, 224, 224])
    ]
    assert [(entry["dtype"], entry["shape"], entry["finite"]) for entry in model["outputs"]] == [
        ("float32", [1, 1000], True)
    ]


def test_export_says_why_a_model_of_megengine_does_not_run(python: str, tmp_path: Path) -> None:
    (tmp_path / "dump.py").write_text("open('model.mge', 'w').write('no model')\n")
    done = panglot("export", str(tmp_path), "--python", python, seconds=110)
    assert done.returncode == 1
    assert "it does not load or run: RuntimeError: " in done.stderr
    assert "backtrace" not in done.stderr
    done = panglot("export", str(tmp_path), seconds=110)
    assert done.returncode == 1
    assert "has no MegEngine to run the model with; name an interpreter that has it with --python" in done.stderr
