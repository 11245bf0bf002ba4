"""Reads the digit in a picture: one digit, any size, dark on light or light on dark."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image, ImageFilter, ImageOps

from panglot import ClientError

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")
MAX_PIXELS = 40_000_000
MAX_SCANNED = 2_000_000_000  # pixels times scans; a few bytes of a progressive JPEG can ask for one more scan of it all
TOO_LARGE = f"the picture has more than {MAX_PIXELS // 1_000_000} million pixels"
WORK_SIZE = (256, 256)  # larger pictures are shrunk to fit into this first


class Model:
    def load(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)  # 0: onnxruntime decides
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession("digits.onnx", options, providers=providers)

    def preprocess(self, request: Any) -> np.ndarray:
        return to_features(to_ink(decode(find_picture(request))))

    def predict_batch(self, items: list[np.ndarray]) -> list[np.ndarray]:
        return list(self.session.run(None, {"features": np.stack(items)})[0])

    def postprocess(self, output: np.ndarray) -> dict[str, Any]:
        digit = int(output.argmax())
        return {"digit": digit, "confidence": round(float(output[digit]), 4)}

    def example(self) -> dict[str, Any]:
        from panglot import File

        return {"image": File("seven.png", "image/png", Path("seven.png").read_bytes())}


def find_picture(request: Any) -> bytes:
    """The bytes of the form field `image`, of any other file in the form, or of the raw body."""
    fields = [request.get("image"), *request.values()] if isinstance(request, dict) else [request]
    for field in fields:
        data = getattr(field, "bytes", None)
        if data:
            return data
    raise ClientError("no picture: send one as the form field 'image' or as the body", status=400)


def decode(data: bytes) -> Image.Image:
    """The picture, upright. Its format and size are checked before any pixel is decoded."""
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)  # reads the header only, with the readers of these alone
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ClientError(TOO_LARGE, status=413) from error
    except Exception as error:
        raise ClientError(f"this is not an image that can be read: send {', '.join(FORMATS)}", status=422) from error
    if image.width * image.height > MAX_PIXELS:
        raise ClientError(TOO_LARGE, status=413)
    scans = data.count(b"\xff\xda") if image.info.get("progressive") else 1
    if image.width * image.height * scans > MAX_SCANNED:
        raise ClientError("the picture takes too long to read: it is a JPEG of too many scans", status=413)
    try:
        image.draft("L", WORK_SIZE)  # lets a large JPEG decode at a fraction of its size
        return ImageOps.exif_transpose(image)
    except Exception as error:
        raise ClientError("the picture is damaged", status=422) from error


def to_ink(image: Image.Image) -> Image.Image:
    """How much ink each pixel has: 0 is background, 255 is digit, whichever of the two is darker."""
    if "A" in image.mode or "transparency" in image.info:
        grey = flatten(image.convert("RGBA"))
    else:
        image = image.convert("F")
        image.thumbnail(WORK_SIZE)
        grey = np.asarray(image)
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    ink = np.abs(grey - np.median(border))
    if ink.max() < 16:
        raise ClientError("the picture is blank", status=422)
    ink = (2.5 * ink / ink.max() - 0.75).clip(0, 1)  # below 30 % is noise, above 70 % is full ink
    return Image.fromarray((255 * ink).astype(np.uint8))


def flatten(image: Image.Image) -> np.ndarray:
    """The grey levels of a picture with transparency, laid on a background that shows the digit."""
    image.thumbnail(WORK_SIZE)
    grey = np.asarray(image.convert("L"), np.float32)
    alpha = np.asarray(image.getchannel("A"), np.float32) / 255
    if alpha.mean() > 0.5:
        ground = np.median(grey[alpha > 0.5])  # mostly opaque: the visible part is paper, so extend it
    else:
        ground = 0 if (grey * alpha).sum() > 128 * alpha.sum() else 255  # the visible part is the digit
    return ground + alpha * (grey - ground)


def to_features(ink: Image.Image) -> np.ndarray:
    """The digit the way the training set has it: 8x8 cells from 0 to 1, full height, at most 6 cells
    wide, centred, and about a quarter of the area inked however thin the pen was."""
    ink = ink.crop(ink.getbbox())
    width = min(24, max(1, round(32 * ink.width / ink.height)))
    canvas = Image.new("L", (32, 32))
    canvas.paste(ink.resize((width, 32), Image.BILINEAR), ((32 - width) // 2, 0))
    canvas = ImageOps.autocontrast(canvas)
    while 0 < np.asarray(canvas).mean() < 0.24 * 255:
        canvas = canvas.filter(ImageFilter.MaxFilter(3))  # thickens the stroke by a pixel on each side
    cells = np.asarray(canvas, np.float32).reshape(8, 4, 8, 4).mean(axis=(1, 3)).ravel()
    return cells / max(cells.max(), 1)
