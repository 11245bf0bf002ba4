"""Which distribution brings a module."""

from __future__ import annotations

DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "google": "protobuf",
    "paddle": "paddlepaddle",
    "tflite_runtime": "tflite-runtime",
    "av": "av",
}
"""Modules with a distribution of another name."""


def pip_line(python: str, module: str) -> str:
    """The command that installs a module for an interpreter."""
    return f"{python} -m pip install {DISTRIBUTIONS.get(module, module)}"
