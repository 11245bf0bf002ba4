"""Trains the network on scikit-learn's digits, writes digits.onnx, and its measured accuracy into README.md.

Once started with the path of a gzipped CSV of other people's digits (one a line: 784 grey levels of a
28x28 picture, then the digit), it measures on those too.
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import types
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from strokes import draw

if importlib.util.find_spec("franca_worker") is None:  # training works without the server, too
    sys.modules["franca_worker"] = types.SimpleNamespace(ClientError=ValueError)  # type: ignore[assignment]

import model  # noqa: E402

SEED = 7
HIDDEN = (192, 96)
COPIES = 16  # distorted copies of each training picture
DRAWN = 2000  # drawn pictures of each digit


def distort(cells: np.ndarray, rng: np.random.Generator) -> Image.Image:
    """The 8x8 digit (0 to 16) as a 40x40 picture: turned, slanted, warped, its stroke thicker or thinner."""
    y, x = np.mgrid[-4.4:4.4:40j, -4.4:4.4:40j]
    turn, slant = rng.uniform(-0.15, 0.15), rng.uniform(-0.3, 0.3)
    warp = [ndimage.zoom(rng.normal(0, 0.5, (4, 4)), 10) for _ in range(2)]
    rows = 3.5 + y * np.cos(turn) - x * np.sin(turn) + warp[0]
    columns = 3.5 + y * (np.sin(turn) + slant) + x * np.cos(turn) + warp[1]
    ink = ndimage.map_coordinates(cells, [rows, columns], order=1) - rng.uniform(4, 9)  # where the edge is
    ink = (ink * rng.uniform(0.15, 1) + 0.5).clip(0, 1)  # how sharp it is
    return Image.fromarray((255 * ink).astype(np.uint8)).resize((int(rng.integers(30, 51)), 40))
