"""Pictures as requests carry them: the path of a file, an http address, or base64."""

from __future__ import annotations

import base64
import io
import os
import urllib.request
from typing import Any

import cv2
import numpy
from PIL import Image


def base64bytes_to_nparray(s: str, dtype: Any = numpy.uint8) -> numpy.ndarray:
    """The pixels of a picture in base64, as RGB. Raises ValueError when it is none."""
    return numpy.asarray(base64bytes_to_pil_image(s).convert("RGB")).astype(dtype)


def base64bytes_to_pil_image(s: str) -> Image.Image:
    """The picture in a base64 text. Raises ValueError or PIL.UnidentifiedImageError when it is none."""
    return Image.open(io.BytesIO(base64.b64decode(s)))


def image_to_cv2_mat(img_data: str) -> numpy.ndarray:
    """The picture at a path, at an http address or in base64, in OpenCV's order (BGR). Raises ValueError."""
    pixels = numpy.frombuffer(_content(img_data), numpy.uint8)
    image = cv2.imdecode(pixels, cv2.IMREAD_COLOR) if pixels.size else None
    if image is None:
        raise ValueError("this is not an image that can be decoded")
    return image


def image_to_pil_image(img_data: str) -> Image.Image:
    """The picture at a path, at an http address or in base64. Raises ValueError or PIL.UnidentifiedImageError."""
    return Image.open(io.BytesIO(_content(img_data)))


def _content(img_data: str) -> bytes:
    if _is_file(img_data):
        with open(img_data, "rb") as file:
            return file.read()
    if img_data.startswith("http"):
        with urllib.request.urlopen(img_data) as response:
            content: bytes = response.read()
            return content
    return base64.b64decode(img_data)


def _is_file(text: str) -> bool:
    try:
        return os.path.isfile(text)
    except ValueError:
        return False
