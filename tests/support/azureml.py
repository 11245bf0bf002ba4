"""azureml packages under test: packages made on the spot, and the platform's own server from PyPI."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support import originals
from support.originals import Original
from support.server import PACKAGES

VERSIONS = (
    "azureml-inference-server-http==1.5.1",
    "inference-schema[numpy-support,pandas-support]==1.8",
    "gunicorn==23.0.0",
    "numpy<3",
    "pandas<3",
)
PLATFORM = "azureml"
SCRIPT = """
import os

def init():
    pass

def run(raw_data):
    return {"got": raw_data, "model_dir": os.environ["AZUREML_MODEL_DIR"]}
"""


def python() -> str:
    """An interpreter with the platform's server, Flask, inference_schema, numpy and pandas."""
    return originals.interpreter("azmlinfsrv-1.5.1", *VERSIONS)


@contextlib.contextmanager
def theirs(package: str | Path, script: str = "score.py", **env: str) -> Iterator[Original]:
    """`azmlinfsrv` in the package's folder."""
    folder = package if isinstance(package, Path) else PACKAGES / package
    command = [originals.program(python(), "azmlinfsrv"), "--entry_script", script, "--model_dir", str(folder)]
    with originals.running([*command, "--port", originals.PORT], folder, env=env) as original:
        yield original


def write(folder: Path, text: str = SCRIPT, **files: str) -> Path:
    """A package of one script, and of files: `__` in their names stands for a dot, `___` for a slash."""
    folder.mkdir(parents=True, exist_ok=True)
    if text:
        (folder / "score.py").write_text(text)
    for name, content in files.items():
        file = folder / name.replace("___", "/").replace("__", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder
