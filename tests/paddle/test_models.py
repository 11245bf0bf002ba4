"""Models of both generations, models that are none, and what Paddle makes of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from support.paddle import ALEXNET, close, export_alexnet, predicted, python
from support.server import panglot, serving
from support.traffic import times

UPSAMPLING = """
import sys, paddle
from paddle import nn
from paddle.static import InputSpec
upsample = nn.Upsample(scale_factor=2, mode="bilinear")
net = nn.Sequential(nn.Conv2D(3, 2, 3, padding=1), upsample, nn.AdaptiveAvgPool2D(1), nn.Flatten())
net.eval()
spec = [InputSpec(shape=[None, 3, 224, 224], dtype="float32")]
paddle.jit.save(paddle.jit.to_static(net, input_spec=spec), sys.argv[1] + "/inference")
"""


def start(model: Path, *arguments: str) -> str:
    """The one line that a failing start says."""
    done = panglot("serve", str(ALEXNET), "--port", "0", "--", "--model-dir", str(model), *arguments)
    assert done.returncode == 3, done.stderr
    return next(line for line in done.stderr.splitlines() if line.startswith("error:"))


@pytest.fixture
def copied(alexnet: Path, tmp_path: Path) -> Path:
    shutil.copytree(alexnet, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.document("paddle.08")
def test_the_old_generation(tmp_path: Path, pictures: list[Path]) -> None:
    export_alexnet(tmp_path, legacy=True)
    assert {path.name for path in tmp_path.iterdir()} >= {"inference.pdmodel", "inference.pdiparams"}
    with serving(ALEXNET, "--", "--model-dir", str(tmp_path)) as server:
        assert close(server.predict(content=pictures[2].read_bytes()).json(), predicted(pictures[2])[0])


def test_a_new_model_under_an_old_name(copied: Path, pictures: list[Path]) -> None:
    """Paddle itself dies of this with SIGSEGV."""
    (copied / "inference.json").rename(copied / "inference.pdmodel")
    with serving(ALEXNET, "--", "--model-dir", str(copied)) as server:
        server.wait_log("is a model of Paddle 3 under an old name")
        assert close(server.predict(content=pictures[2].read_bytes()).json(), predicted(pictures[2])[0])


def test_models_that_are_none(copied: Path) -> None:
    """One line each, never a crash, never answers from memory that nobody filled."""
    (copied / "inference.pdiparams").rename(copied / "elsewhere.pdiparams")
    line = start(copied)
    assert "infer.py:" in line
    assert "the model's parameters" in line
    assert "are not there" in line
    (copied / "elsewhere.pdiparams").rename(copied / "inference.pdiparams")
    (copied / "inference.json").rename(copied / "other.json")
    line = start(copied)
    assert "there is no exported model" in line
    assert "the folder has other.json" in line
    for content in ("this is a text", "\n\nthis is a text")[: times(1, 2)]:
        (copied / "inference.pdmodel").write_text(content)
        assert "is no exported model (fix: export it again)" in start(copied)


def test_the_model_folder(tmp_path: Path) -> None:
    assert "does not exist" in start(tmp_path / "nowhere")
    assert "neither *.pdmodel nor *.json" in start(tmp_path)
    done = panglot("serve", str(ALEXNET), "--port", "0")
    assert done.returncode == 3
    assert "--model-dir is not given, and no folder of the package holds an exported model" in done.stderr


def test_two_exported_folders(alexnet: Path, tmp_path: Path) -> None:
    """The error lists them."""
    script = tmp_path / "infer.py"
    shutil.copytree(ALEXNET / "deploy" / "inference_python", tmp_path, dirs_exist_ok=True)
    for name in ("fp16", "fp32"):
        shutil.copytree(alexnet, tmp_path / name)
    done = panglot("serve", str(script), "--port", "0")
    assert done.returncode == 3
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert f"2 folders hold an exported model: {tmp_path / 'fp16'}, {tmp_path / 'fp32'}" in line
    assert f"-- --model-dir {tmp_path / 'fp16'}" in line


@pytest.mark.document("paddle.13")
def test_a_gpu_that_paddle_has_not(alexnet: Path, pictures: list[Path]) -> None:
    """Paddle itself goes on without a word, on the CPU."""
    line = start(alexnet, "--use-gpu", "True")
    assert "infer.py:" in line
    assert "the script asks for a GPU, and this Paddle 3.3.1 is built for CPUs only" in line
    assert "--device cpu" in line
    assert "paddlepaddle-gpu" in line
    with serving(ALEXNET, "--device", "cpu", "--", "--model-dir", str(alexnet), "--use-gpu", "True") as server:
        server.wait_log("the script asks for a GPU; --device cpu gives it the CPU")
        assert close(server.predict(content=pictures[2].read_bytes()).json(), predicted(pictures[2])[0])


@pytest.mark.document("paddle.01")
def test_upsampling_in_onednn(tmp_path: Path, pictures: list[Path]) -> None:
    """Paddle 3.3 fails on it with oneDNN; the log says what to do, and that helps."""
    python("-c", UPSAMPLING, str(tmp_path))
    content = pictures[0].read_bytes()
    with serving(ALEXNET, "--", "--model-dir", str(tmp_path)) as server:
        server.wait_log("an operation of this model fails in oneDNN.*add --no-onednn")
        assert server.predict(content=content).status_code == 500
    with serving(ALEXNET, "--no-onednn", "--", "--model-dir", str(tmp_path), "--use-mkldnn", "true") as server:
        assert server.predict(content=content).status_code == 200


def test_arrays_of_the_wrong_type(copied: Path, tmp_path: Path, pictures: list[Path]) -> None:
    script = ALEXNET / "deploy" / "inference_python"
    shutil.copytree(script, tmp_path / "script")
    infer = tmp_path / "script" / "infer.py"
    infer.write_text(infer.read_text().replace("img = self.transforms(img)", 'img = self.transforms(img).astype("f8")'))
    with serving(infer, "--", "--model-dir", str(copied)) as server:
        assert server.predict(content=pictures[0].read_bytes()).status_code == 500
        server.wait_log(r"run got an array of float64 and the model takes float32.*\.astype\('float32'\)")


@pytest.mark.document("paddle.03")
def test_without_paddle(alexnet: Path, tmp_path: Path) -> None:
    """One line that names the interpreter, the pip line and --python."""
    python("-m", "venv", "--without-pip", str(tmp_path / "bare"))
    bare = tmp_path / "bare" / "bin" / "python"
    text = (ALEXNET / "deploy" / "inference_python" / "infer.py").read_text()
    (tmp_path / "infer.py").write_text(text.replace("import numpy as np\n", "", 1))
    done = panglot(
        "serve", str(tmp_path / "infer.py"), "--port", "0", "--python", str(bare), "--", "--model-dir", str(alexnet)
    )
    assert done.returncode == 3
    line = next(line for line in done.stderr.splitlines() if line.startswith("error:"))
    assert f"the package 'paddle' is not installed for {bare}" in line
    assert f"{bare} -m pip install paddlepaddle" in line
    assert "--python" in line
    assert sys.executable != str(bare)
