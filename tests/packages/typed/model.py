"""Typed parameters of every manner of function."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal, TypedDict

from panglot import File, route

CALLS = {"count": 0}


class Ge:
    def __init__(self, ge: float) -> None:
        self.ge = ge


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Box:
    """A part of a picture."""

    x: int
    y: int = 0
    inside: list[Box] = field(default_factory=list)


class Options(TypedDict, total=False):
    top: int
    order: Literal["score", "name"]


def predict(
    image: File, threshold: Annotated[float, Ge(0)] = 0.5, labels: list[str] = (), color: Color | None = None
) -> dict:
    """Look for things in a picture."""
    CALLS["count"] += 1
    found = {"image": len(image), "name": image.name, "threshold": threshold, "labels": list(labels)}
    return {**found, "color": color and color.name, "calls": CALLS["count"]}


@route("/box")
def box(box: Box, /) -> dict:
    """How many boxes are in a box."""
    return {"x": box.x, "kind": type(box).__name__, "boxes": count(box)}


def count(box: Box) -> int:
    return 1 + sum(count(inner) for inner in box.inside)


@route("/search")
async def search(text: str, box: Box | None = None, options: Options | None = None, *, limit: int = 10) -> list:
    return [text, box and box.x, options, limit]


@route("/words")
def words(text: str, times: int = 1):
    for _ in range(min(times, 100)):
        yield from text.split()


@route("/sizes", batch=8)
def sizes(images: list[bytes], scale: list[float] = (1.0,)) -> list[dict]:
    """The size of every picture."""
    if b"kill" in images:
        os._exit(1)
    return [{"size": len(image) * by, "batch": len(images)} for image, by in zip(images, scale, strict=True)]


@route("/areas", batch=8)
def areas(boxes: list[Box]) -> list[int]:
    return [box.x * box.y for box in boxes]


@route("/sum")
def total(values: list[float]) -> float:
    # Within bounds: a sum beyond all numbers has no word in JSON, and is null.
    return sum(max(-1e100, min(1e100, value)) for value in values)
