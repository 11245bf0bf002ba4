"""Draws digits as a pen does: ways of writing that the training set has few of, never twice the same."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw
from scipy.interpolate import make_interp_spline

SIZE = 96
STEP = 7  # pixels from one column or row of points to the next

# For each digit, the ways to write it. A way is strokes, split by "/"; a stroke is the points that the pen
# passes through in a smooth curve; a point is its column and its row, 0 to 9.
WAYS: list[list[str]] = [
    ["50 21 14 27 59 78 85 71 50", "61 32 15 27 49 68 76 73 51 42"],
    ["50 59", "60 49", "70 29", "33 50/50 59", "23 50/50 59/29 79", "24 50/50 59"],
    [
        "22 41 61 73 55 37 19/19 59 89",
        "22 50 73 56 28 17 37 58 89",
        "21 40 62 54 19/19 89",
        "13 31 62 54 28 16 46 88",
        "31 61 73 46 19 07 37 79 88",
    ],
    [
        "21 50 72 63 45/45 76 68 49 18",
        "11 71/71 44/44 76 68 49 18",
        "12 40 72 64 45 34 65 77 59 28",
        "20 61 62 45/45 66 68 39 18",
    ],
    [
        "50 16/16 86/60 69",
        "60 16/16 76/54 59",
        "41 15/15 85/51 59",
        "20 15 36 75/70 69",
        "10 14 35 65/80 59",
        "21 25 56 74/71 65 49",
    ],
    ["80 30/30 24/24 55 77 69 39 18", "30 24/24 55 77 69 39 18/30 80", "81 41/41 24/24 65 67 59 29"],
    [
        "60 33 16 28 59 77 65 36 18",
        "50 32 25 28 49 68 66 46 27",
        "71 43 16 28 59 78 66 45 27",
        "42 25 28 59 78 66 37",
    ],
    ["11 81/81 59", "20 80/80 53 39", "11 81/81 64 49/35 75", "12 11/11 71/71 55 49"],
    [
        "71 40 22 44 67 59 28 46 72 60",
        "50 22 44 76 59 27 45 72 50",
        "50 32 44 62 50/44 26 28 59 77 65 44",
        "72 40 21 43 76 68 29 17 45 71",
    ],
    [
        "72 50 22 34 63 72/72 69",
        "72 50 22 34 63 72/72 75 59 28",
        "71 40 22 34 62 71/71 55 49",
        "60 32 34 55 73 61/73 67 69",
        "62 41 23 34 53 62 65 79",
    ],
]


def draw(digit: int, rng: np.random.Generator) -> Image.Image:
    """The digit in white on black, in a random way, slant, width and pen, by an unsteady hand."""
    way = rng.choice(WAYS[digit])
    names = way.replace("/", " ").split()
    points = {name: rng.normal((int(name[0]) - 4.5, int(name[1]) - 4.5), 0.7) for name in names}
    slant, tilt, width = rng.uniform(-0.4, 0.4), rng.uniform(-0.15, 0.15), rng.uniform(0.6, 1.1)
    transform = STEP * np.array([[width, tilt], [-slant, 1]])
    pen = int(rng.integers(2, 14))
    image = Image.new("L", (SIZE, SIZE))
    canvas = ImageDraw.Draw(image)
    for stroke in way.split("/"):
        line = smooth(np.array([points[p] for p in stroke.split()])) @ transform + SIZE / 2
        canvas.line([(x, y) for x, y in line], fill=255, width=pen, joint="curve")
        for x, y in (line[0], line[-1]):
            canvas.ellipse((x - pen / 2, y - pen / 2, x + pen / 2, y + pen / 2), fill=255)
    return image


def smooth(points: np.ndarray) -> np.ndarray:
    """A curve through the points, as a line of many short pieces."""
    lengths = np.hypot(*np.diff(points, axis=0).T)
    time = np.append(0, np.cumsum(lengths + 0.1))
    return make_interp_spline(time, points, k=min(3, len(points) - 1))(np.linspace(0, time[-1], 32))
