"""The nine steps of the chain by command, on a net trained on digits, on a net with random weights, on the template."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from panglot.tools import scaffold
from panglot_worker.dialects.paddle import machine
from support.paddle import ALEXNET, CLOSE, picture, predicted, python
from support.server import ROOT, panglot, serving
from support.traffic import SOAK

EXAMPLE = ROOT / "examples" / "paddle"
BLOCK = (
    "Env info",
    "Paddle info",
    "Conf info",
    "Model info",
    "Data info",
    "Perf info",
    "OS_version: " + machine.system(),
    "CUDA_version: ",
    "precision: fp32",
    "ir_optim: True",
    "enable_memory_optim: True",
    "preprocess_time(ms): ",
)


def run(*words: str) -> str:
    done = panglot(*words, seconds=110)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def walk(script: Path, images: list[Path], training: Path, arguments: list[str]) -> None:
    """Steps 3 to 9: what the script is, its answer, that it is the training engine's, and the report of times."""
    told = run("inspect", str(script), "--json", "--", *arguments)
    facts = json.loads(told)
    assert facts["dialect"] == "paddle"
    assert any(line.startswith("--model-dir") for line in facts["facts"]["argument"])
    saved = training.with_name("served.npy")
    lines = run("run", str(script), str(images[0]), "--save", str(saved), "--", *arguments).splitlines()
    assert json.loads(lines[0])["status"] == 200
    run("check", str(saved), str(training), "--atol", str(CLOSE))
    other = training.with_name("other.npy")
    found = numpy.load(training, allow_pickle=True).tolist()
    numpy.save(other, {**found, "prob": found["prob"] + numpy.float32(1e-3)})
    assert panglot("check", str(saved), str(other), "--atol", str(CLOSE)).returncode == 1, "a difference is one"
    if arguments or SOAK:
        check_report(script, images[0], arguments)


def check_report(script: Path, image: Path, arguments: list[str]) -> None:
    """Step 9: how long it takes, in the words of the platform's own report."""
    flags = ("--duration", "0.3", "--warmup", "0.1", "--concurrency", "2")
    report = run("bench", str(script), str(image), *flags, "--", *arguments)
    for words in BLOCK:
        assert words in report, report


@pytest.mark.document("paddle.02")
def test_a_net_trained_on_digits(tmp_path: Path) -> None:
    """The shipped example from its first step: trained, exported, run, compared, timed, served."""
    folder = tmp_path / "digits"
    keep = shutil.ignore_patterns("inference", "*.pdparams", "__pycache__")
    shutil.copytree(EXAMPLE, folder, ignore=keep)
    assert "has not seen" in python("-c", "import train; train.main(steps=150)", cwd=folder)
    export(folder)
    python("predict.py", cwd=folder, shims=True)
    demo = folder / "images" / "demo.png"
    walk(folder, [demo], folder / "output_training_engine.npy", [])
    expected = numpy.load(folder / "output_training_engine.npy", allow_pickle=True).tolist()
    with serving(folder) as server:
        answer = server.predict(content=demo.read_bytes()).json()
        assert answer["class_id"] == expected["class_id"][0] == 3
        assert abs(answer["prob"] - float(expected["prob"][0])) <= CLOSE


def export(folder: Path) -> None:
    """Step 2, by the project's own script, and the model tried."""
    told = json.loads(run("export", str(folder), "--json"))
    assert told["problem"] == ""
    assert told["models"][0]["inputs"], told
    assert {path.name for path in (folder / "inference").iterdir()} == {"inference.json", "inference.pdiparams"}


@pytest.mark.document("paddle.01")
def test_a_net_like_alexnet(alexnet: Path, tmp_path: Path) -> None:
    """Every Config call and argument of the classic script; served answers are in test_serving."""
    image = picture(tmp_path / "a.png", 77)
    [wanted] = predicted(image)
    training = tmp_path / "training.npy"
    log: Any = {"class_id": numpy.array([wanted["class_id"]]), "prob": numpy.array([wanted["prob"]], "float32")}
    numpy.save(training, log)
    walk(ALEXNET, [image], training, ["--model-dir", str(alexnet), "--use-mkldnn", "True", "--cpu-threads", "2"])


def test_what_a_build_for_gpus_says() -> None:
    version = SimpleNamespace(cuda=lambda: "12.6", cudnn=lambda: "9.5.1")
    found = machine.environment(SimpleNamespace(version=version))
    assert (found["CUDA_version"], found["CUDNN_version"]) == ("12.6", "9.5.1")
    assert found["OS_version"]
    assert set(machine.environment(None)) == {"OS_version"}
    words = ("PrecisionType.Float32", "Precision.Half", "Precision.Bfloat16", "Precision.Int8", "")
    assert [machine.in_words(word) for word in words] == ["fp32", "fp16", "bf16", "int8", "fp32"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "colours"
    done = run("new", "paddle", str(folder))
    for name in scaffold.find("paddle")[0].files:
        assert str(folder / name) in done
    for name in ("infer.py", "net.py", "export_model.py", "predict.py", "preprocess_ops.py"):
        compile((folder / name).read_text(), name, "exec")
    return folder


@pytest.mark.document("paddle.02", "paddle.04b", "paddle.10")
def test_the_template(template: Path) -> None:
    early = panglot("serve", str(template), "--port", "0")
    assert early.returncode == 3
    assert "--model-dir is not given, and no folder of the package holds an exported model" in early.stderr
    export(template)
    with serving(template) as server:
        answer = server.predict(content=(template / "images" / "demo.png").read_bytes())
        assert answer.json()["class_id"] == 2, "the sky is blue"
        server.wait_log("images/demo.png")  # the line to try sends the picture that is there
    if SOAK:
        check_by_themselves(template)


def check_by_themselves(template: Path) -> None:
    """The scripts without a server, which their README also runs, and that both engines agree."""
    python("predict.py", cwd=template, shims=True)
    text = python("infer.py", "--model-dir", "inference", "--benchmark", "True", cwd=template, shims=True)
    assert text.rstrip().splitlines()[-1].startswith("image: ./images/demo.png, class_id: 2 (blue)")
    assert "postprocess_time(ms)" in text
    run("check", str(template / "output_inference_engine.npy"), str(template / "output_training_engine.npy"))
