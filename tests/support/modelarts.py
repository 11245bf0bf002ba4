"""ModelArts packages under test: written here, or cut out of the document that describes the platform."""

from __future__ import annotations

import functools
import io
import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from support import documents

SCRIPTS = ("tensorflow", "tensorflow1", "onnx", "mindspore")
"""The scripts of the document, in its order."""
NODE = "from model_service.model_service import SingleNodeService\n"
PT = "from model_service.pytorch_model_service import PTServingBaseService\n\n\n"
TF = "from model_service.tfserving_model_service import TfServingBaseService\n\n\n"
MR_0105 = b'{"erno": "MR.0105", "msg": "Recognition failed", "words_result": {}}'


def package(folder: Path, script: str = "", config: Any = None, **files: str | bytes) -> Path:
    """Write a package; names of further files have `__` for the dot."""
    folder.mkdir(parents=True, exist_ok=True)
    if script:
        (folder / "customize_service.py").write_text(textwrap.dedent(script), encoding="utf-8")
    if config is not None:
        text = config if isinstance(config, str) else json.dumps(config)
        (folder / "config.json").write_text(text, encoding="utf-8")
    for name, content in files.items():
        path = folder / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
    return folder


def returning(expression: str, first: str = "") -> str:
    """A script whose answer is always an expression."""
    body = f"class Service(SingleNodeService):\n    def _inference(self, data):\n        return {expression}\n"
    return f"{NODE}{first}\n\n{body}"


def config(model_type: str, **more: Any) -> dict[str, Any]:
    return {"model_algorithm": "image_classification", "model_type": model_type, **more}


# The document


def document_script(name: str) -> str:
    """One of the document's scripts, to the letter; skips the test where there is no document."""
    scripts = document_listings("class MnistService")
    assert len(scripts) == len(SCRIPTS), f"the document has {len(scripts)} scripts"
    return scripts[SCRIPTS.index(name)]


def document_listings(phrase: str) -> list[str]:
    """The document's listings that hold a phrase, to the letter; skips the test where there is no document."""
    return [listing for listing in _listings(documents.document("modelarts")) if phrase in listing]


@functools.cache
def _listings(file: Path) -> tuple[str, ...]:
    lines = file.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip() in ("::", ".. code-block::")]
    return tuple(_indented(lines[start + 1 :], len(lines[start]) - len(lines[start].lstrip())) for start in starts)


def _indented(lines: list[str], margin: int) -> str:
    found = []
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) <= margin:
            break
        found.append(line)
    return textwrap.dedent("\n".join(found)).strip("\n") + "\n"


# Digits


@dataclass(frozen=True)
class Digits:
    """A linear model of scikit-learn's digits at 28 x 28, and digits it was not trained on that it gets right."""

    weights: np.ndarray
    bias: np.ndarray
    pictures: list[bytes]
    labels: list[int]


def learn() -> Digits:
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    digits = load_digits()
    large = np.array([enlarged(image) for image in digits.images])
    rows = large.reshape(len(large), 784).astype(np.float32)
    model = LogisticRegression(max_iter=500, tol=0.01).fit(rows[:1500] / 255, digits.target[:1500])
    unseen = model.predict(rows[1500:] / 255) == digits.target[1500:]
    assert unseen.mean() > 0.85
    chosen = [1500 + int(number) for number in np.flatnonzero(unseen)[:20]]
    weights = (model.coef_.T / 255).astype(np.float32)
    return Digits(
        weights,
        model.intercept_.astype(np.float32),
        [png(large[number]) for number in chosen],
        [int(digits.target[number]) for number in chosen],
    )


def enlarged(image: np.ndarray) -> np.ndarray:
    """8 x 8 cells of 0 to 16 as 28 x 28 pixels."""
    return np.pad(np.kron(image / 16 * 255, np.ones((3, 3))), 2).astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def grey(value: int, size: int = 8) -> bytes:
    return png(np.full((size, size), value, dtype=np.uint8))
