"""Draws the ten sample pictures, zero.png to nine.png: different sizes, pens, places, paper and ink."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image, ImageColor, ImageDraw

FINE = 4  # drawn this many times larger, then shrunk, for soft edges


class Look(NamedTuple):
    size: tuple[int, int]
    paper: str
    ink: str
    pen: float  # how many pixels wide its line is
    box: tuple[int, int, int, int]  # where the digit is: left, top, width, height


LOOKS = {
    "zero": Look((28, 28), "black", "white", 2.5, (7, 4, 13, 20)),
    "one": Look((96, 64), "white", "black", 5, (38, 8, 16, 46)),
    "two": Look((200, 200), "white", "navy", 9, (95, 30, 70, 105)),
    "three": Look((320, 240), "#1d3b2f", "#f2f2e6", 14, (105, 40, 100, 160)),
    "four": Look((64, 96), "#d8d8d8", "black", 5, (12, 14, 40, 66)),
    "five": Look((120, 120), "#00000000", "black", 8, (35, 20, 52, 80)),
    "six": Look((48, 48), "black", "white", 4, (8, 12, 18, 30)),
    "seven": Look((200, 200), "white", "black", 12, (60, 35, 80, 130)),
    "eight": Look((320, 240), "#fff8e1", "#1a3f9c", 8, (190, 90, 62, 110)),
    "nine": Look((160, 100), "white", "#555555", 3, (55, 10, 42, 78)),
}

# The points of each stroke in percent of the box: 2 are a line; 4, 7, 10 ... are joined cubic Bezier curves.
STROKES = {
    "zero": ["52,2 10,0 0,95 48,98 98,100 100,5 46,3"],
    "one": ["5,28 30,20 60,10 75,1", "75,1 70,35 68,65 70,99"],
    "two": ["8,24 15,-8 85,-8 86,26 87,52 30,75 6,97", "6,97 96,95"],
    "three": ["10,12 30,-6 85,-4 80,24 76,42 50,46 36,47", "36,47 75,46 98,60 88,82 76,104 30,102 6,88"],
    "four": ["52,2 42,28 25,50 4,66", "4,66 96,62", "70,34 70,60 68,80 66,99"],
    "five": ["86,3 28,4", "28,4 20,44", "20,44 55,28 94,48 88,72 82,100 35,106 6,88"],
    "six": ["74,3 40,12 8,45 10,72 12,104 88,106 88,72 88,44 25,42 12,74"],
    "seven": ["6,6 94,4", "94,4 70,35 50,65 42,99"],
    "eight": ["78,12 60,-8 12,0 18,26 24,48 88,50 86,78", "86,78 84,106 10,104 14,76 18,52 76,44 78,12"],
    "nine": ["84,20 66,-8 10,-4 10,28 10,58 70,56 84,22", "84,20 84,50 80,75 66,99"],
}


def main() -> None:
    for name, look in LOOKS.items():
        draw(look, STROKES[name]).save(f"{name}.png", optimize=True)


def draw(look: Look, strokes: list[str]) -> Image.Image:
    width, height = look.size
    ink = Image.new("L", (width * FINE, height * FINE))
    pen = ImageDraw.Draw(ink)
    radius = look.pen * FINE / 2
    left, top, *scale = look.box
    for stroke in strokes:
        points = np.array([point.split(",") for point in stroke.split()], float)
        for x, y in (curve(points) * scale / 100 + (left, top)) * FINE:
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    mode = "RGBA" if len(look.paper) == len("#rrggbbaa") else "RGB"
    picture = Image.new(mode, look.size, look.paper)
    picture.paste(ImageColor.getcolor(look.ink, mode), mask=ink.resize(look.size, Image.BOX))
    return picture


def curve(points: np.ndarray) -> np.ndarray:
    """Many points along the line or the curves."""
    t = np.linspace(0, 1, 200)[:, None]
    if len(points) == 2:
        return points[0] * (1 - t) + points[1] * t
    pieces = []
    for i in range(0, len(points) - 1, 3):
        a, b, c, d = points[i : i + 4]
        pieces.append(a * (1 - t) ** 3 + 3 * b * (1 - t) ** 2 * t + 3 * c * (1 - t) * t**2 + d * t**3)
    return np.concatenate(pieces)


if __name__ == "__main__":
    main()
