"""The originals of sagemaker packages: the toolkits of SageMaker's containers, each in a process of its own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import environments, originals, transformers
from support.originals import Answer, Case

PLATFORM = "sagemaker"
MODEL_SERVER, TOOLKIT = "multi-model-server==1.1.11", "sagemaker-inference==1.10.1"
PYTORCH, HUGGINGFACE = "sagemaker-pytorch-inference==2.0.25", "sagemaker-huggingface-inference-toolkit==2.6.0"
FLASK = "sagemaker-containers==2.8.6.post2"
"""What the scikit-learn and the XGBoost container are made of; themselves they are not on PyPI."""
DRIVER = Path(__file__).with_name("sagemaker_original.py")


def python() -> str:
    """An interpreter with the inference toolkit and the context of its model server."""
    return originals.interpreter(
        "sagemaker-inference-1.10.1", TOOLKIT, MODEL_SERVER, "numpy<3", "scipy<2", "setuptools<81"
    )


def _flask() -> tuple[str, dict[str, str]]:
    """An interpreter for the older toolkit, whose sources it has as they are: a part of them wants a compiler."""

    def make(folder: Path) -> None:
        wanted = ("download", "-q", "--disable-pip-version-check", "--no-deps", "--dest", str(folder), FLASK)
        done = subprocess.run([sys.executable, "-m", "pip", *wanted], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        (folder / archive.name.removesuffix(".tar.gz")).rename(folder / "sources")

    needs = ("flask>=3.1,<4", "boto3<2", "six<2", "numpy<3", "scipy<2", "protobuf<4", "retrying<2", "psutil<8")
    sources = environments.made("sagemaker-containers-2.8.6", make) / "sources" / "src"
    return originals.interpreter("sagemaker-containers-2.8.6", *needs), {"PYTHONPATH": str(sources)}


def _over_ours(name: str, *packages: str, path: str = "") -> dict[str, str]:
    env = environments.over_ours(name, *packages, MODEL_SERVER, "six<2", "retrying<2")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (env["PYTHONPATH"], path)))}


def _environment(kind: str, folder: Path) -> tuple[str, dict[str, str]]:
    """The interpreter of an original, and its variables; those with torch are ours, with the original over it."""
    if kind == "flask":
        return _flask()
    if kind == "pytorch":
        return sys.executable, _over_ours("sagemaker-pytorch-inference-2.0.25", PYTORCH)
    if kind == "huggingface":
        given = transformers.variables(folder)
        name = "sagemaker-huggingface-inference-toolkit-2.6.0"
        return sys.executable, {**given, **_over_ours(name, HUGGINGFACE, TOOLKIT, path=given["PYTHONPATH"])}
    return python(), {}


def theirs(kind: str, package: Path, cases: Sequence[Case], stubs: Path) -> list[Answer]:
    """What an original answers to cases, which one process gets in their order; `sagemaker_original` lists the kinds.

    `stubs` is a folder for what makes transformers work with our torch.
    """
    given = [
        {"method": case.method, "path": case.path, "headers": dict(case.headers), "body": _body(case)} for case in cases
    ]
    interpreter, variables = _environment(kind, stubs)
    done = subprocess.run(
        [interpreter, str(DRIVER), kind, str(package)],
        input=json.dumps(given),
        env={**os.environ, "SAGEMAKER_PROGRAM": "inference.py", "SM_MODEL_DIR": str(package), **variables},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [_answer(answer) for answer in json.loads(done.stdout.rpartition("ANSWERS")[2])]


def _body(case: Case) -> str:
    content = case.content.encode() if isinstance(case.content, str) else case.content or b""
    return base64.b64encode(content).decode()


def _answer(given: dict[str, Any]) -> Answer:
    text = base64.b64decode(given["body"])
    if given["status"] >= 400:
        # Behind the message is the traceback, which clients of Panglot do not get.
        text = text.partition(b"\nTraceback")[0]
    return Answer(given["status"], {"content-type": (given["type"],) if given["type"] else ()}, text)
