"""Pictures as graphs know them: uint8 arrays of height, width and blue, green, red."""

from __future__ import annotations

import importlib
import io
import os
from typing import Any, Tuple

QUALITY = 75


class NoPicture(Exception):
    """The bytes cannot be decoded."""


def available() -> str:
    """What pictures are decoded with, or nothing when there is neither library for it."""
    for name in ("cv2", "PIL"):
        try:
            importlib.import_module("numpy")
            importlib.import_module(name)
            return name
        except ImportError:
            continue
    return ""


def limit(pixels: int) -> None:
    """Let OpenCV refuse larger pictures; it reads this when it is first imported. Pillow has its own limit."""
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(pixels))


def decode(body: Any) -> Any:
    """The picture in the bytes: alpha dropped, grey expanded, 16 bits reduced. Raises NoPicture."""
    try:
        import cv2
        import numpy
    except ImportError:
        return _decode_with_pillow(body)
    try:
        flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
        picture = cv2.imdecode(numpy.frombuffer(body, numpy.uint8), flags) if len(body) else None
    except cv2.error as error:
        raise NoPicture(str(error).strip().rpartition(":")[2].strip() or "it cannot be decoded") from None
    # OpenCV gives None for formats that it does not know, and Pillow may know them.
    return picture if picture is not None else _decode_with_pillow(body)


def _decode_with_pillow(body: Any) -> Any:
    try:
        import numpy
        from PIL import Image
    except ImportError:
        raise NoPicture("the body is not an image of a known format") from None
    try:
        with Image.open(io.BytesIO(body)) as picture:
            if picture.mode.startswith("I;16") or picture.mode == "I":
                # `convert` would cut 16 bits off at 255 instead of scaling them.
                grey = (numpy.asarray(picture).astype(numpy.uint32) >> 8).clip(0, 255).astype(numpy.uint8)
                return numpy.ascontiguousarray(numpy.stack([grey] * 3, axis=-1))
            return numpy.ascontiguousarray(numpy.asarray(picture.convert("RGB"))[:, :, ::-1])
    except Exception as error:
        # Pillow's readers raise whatever a hostile file makes them stumble over.
        raise NoPicture("the body is not an image of a known format (%s)" % type(error).__name__) from None


def encode(picture: Any) -> bytes:
    """A JPEG of the picture, as large as it is. Raises ValueError when it is none."""
    shape: Tuple[int, ...] = getattr(picture, "shape", ())
    if str(getattr(picture, "dtype", "")) != "uint8" or len(shape) != 3 or shape[2] != 3 or 0 in shape:
        raise ValueError("it must be a uint8 array of height x width x 3")
    try:
        import cv2
    except ImportError:
        return _encode_with_pillow(picture)
    options = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
    if hasattr(cv2, "IMWRITE_JPEG_SAMPLING_FACTOR"):
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    done, data = cv2.imencode(".jpg", picture, options)
    if not done:
        raise ValueError("it cannot be encoded as JPEG")
    return bytes(data)


def _encode_with_pillow(picture: Any) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(picture[:, :, ::-1]).save(out, "JPEG", quality=QUALITY, subsampling=0)
    return out.getvalue()
