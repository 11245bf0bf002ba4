"""Exports, pictures and answers for the tests of the Paddle dialect. Paddle itself is only ever imported elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.server import PACKAGES, ROOT

ALEXNET = PACKAGES / "paddle_alexnet"
SHIMS = ROOT / "src" / "panglot_worker" / "dialects" / "paddle" / "platform" / "fallback"
PYTHONPATH = f"{ROOT / 'src' / 'panglot_worker' / 'shims'}:{SHIMS}"
"""What `panglot shims paddle` prints."""
CLOSE = 1e-5


def python(*words: str, cwd: Path = ROOT, legacy: bool = False, shims: bool = False) -> str:
    """Run a script, or code after -c, in a process of its own; its output."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}
    environment |= {"OMP_NUM_THREADS": "1"}
    if legacy:
        environment["FLAGS_enable_pir_api"] = "0"
    if shims:
        environment["PYTHONPATH"] = PYTHONPATH
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def export_alexnet(folder: Path, legacy: bool = False) -> Path:
    python(str(ALEXNET / "tools" / "export_model.py"), "--save-inference-dir", str(folder), legacy=legacy)
    return folder


def predicted(*pictures: Path) -> list[dict[str, Any]]:
    """What the training engine says."""
    lines = python(str(ALEXNET / "tools" / "predict.py"), *map(str, pictures)).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def picture(path: Path, seed: int, size: tuple[int, int] = (300, 260)) -> Path:
    """Coarse coloured noise, different for each seed."""
    import numpy
    from PIL import Image

    coarse = numpy.random.default_rng(seed).integers(0, 256, (7, 9, 3)).astype("uint8")
    Image.fromarray(coarse).resize(size).save(path)
    return path


def close(answer: dict[str, Any], expected: dict[str, Any]) -> bool:
    return answer["class_id"] == expected["class_id"] and abs(answer["prob"] - expected["prob"]) <= CLOSE
