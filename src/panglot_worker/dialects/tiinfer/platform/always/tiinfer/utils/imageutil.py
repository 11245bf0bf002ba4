"""Pictures as arrays of height, width and, where there are several, channels."""

from __future__ import annotations

import math
from enum import Enum
from typing import Optional, Tuple

import cv2
import numpy

FILL = 1.0


class Horizontal(Enum):
    """The side that is filled when a picture is not wide enough."""

    LEFT = 1
    RIGHT = 2


class Vertical(Enum):
    """The side that is filled when a picture is not high enough."""

    UPPER = 1
    LOWER = 2


def scale_image(image: numpy.ndarray, min_size: int, max_size: int) -> Tuple[numpy.ndarray, float]:
    """Enlarge until the short side has `min_size`, then shrink until the long side has `max_size`.

    Returns the picture and the factor. Raises TypeError for anything but an array.
    """
    _check(image)
    height, width = image.shape[:2]
    short, long = min(height, width), max(height, width)
    scale = max(1.0, min_size / short)
    if long * scale > max_size:
        scale = max_size / long
    if scale == 1.0:
        return image, scale
    size = (math.ceil(round(width * scale, 6)), math.ceil(round(height * scale, 6)))
    return cv2.resize(image, size), scale


def fill_image(
    image: numpy.ndarray,
    padding_limit: int,
    horizontal: Optional[Horizontal] = None,
    vertical: Optional[Vertical] = None,
    fill_color: Optional[float] = None,
) -> numpy.ndarray:
    """Fill up every side that is shorter than `padding_limit`, at the right and the bottom unless told otherwise.

    Raises TypeError for anything but an array.
    """
    _check(image)
    height, width = image.shape[:2]
    down, across = max(0, padding_limit - height), max(0, padding_limit - width)
    rows = (down, 0) if vertical is Vertical.UPPER else (0, down)
    columns = (across, 0) if horizontal is Horizontal.LEFT else (0, across)
    rest = ((0, 0),) * (image.ndim - 2)
    color = FILL if fill_color is None else fill_color
    return numpy.pad(image, (rows, columns, *rest), mode="constant", constant_values=color)


def scale_fill_image(
    image: numpy.ndarray,
    min_size: int,
    max_size: int,
    padding_limit: int,
    horizontal: Optional[Horizontal] = None,
    vertical: Optional[Vertical] = None,
    fill_color: Optional[float] = None,
) -> Tuple[numpy.ndarray, float]:
    """`scale_image`, then `fill_image`. Raises ValueError when the filling would go beyond `max_size`."""
    if padding_limit > max_size:
        raise ValueError("padding_limit (%d) is larger than max_size (%d)" % (padding_limit, max_size))
    scaled, scale = scale_image(image, min_size, max_size)
    return fill_image(scaled, padding_limit, horizontal, vertical, fill_color), scale


def _check(image: numpy.ndarray) -> None:
    if not isinstance(image, numpy.ndarray):
        raise TypeError("an image must be a numpy.ndarray, not %s" % type(image).__name__)
