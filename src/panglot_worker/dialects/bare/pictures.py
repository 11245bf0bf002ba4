"""Pictures as the input of a model that takes one: decoded, resized, and laid out as its shape says."""

from __future__ import annotations

import importlib
import io
from typing import Any, Dict, List, NamedTuple, Optional

from panglot_worker.errors import ClientError
from panglot_worker.runtimes.base import FREE, NUMPY, ModelTensor

COLOURS = (1, 3)
MODES = {1: "L", 3: "RGB"}
STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"RIFF", b"II*\0", b"MM\0*")


class Layout(NamedTuple):
    """Where the dimensions of a picture are in a shape."""

    rows: bool
    """Whether there is a dimension of rows before them."""
    first: bool
    """Whether colours come before height and width."""
    height: int
    width: int
    colours: int


class PictureInput(NamedTuple):
    """An input that is a picture, and the range of its numbers; for float types it is 0 to 1 by default."""

    tensor: ModelTensor
    layout: Layout
    scale: float
    mean: List[float]
    std: List[float]
    bgr: bool

    def array(self, content: bytes) -> Any:
        """The numbers of a picture. Raises ClientError for a body that is no picture."""
        import numpy

        image = _opened(content).convert(MODES[self.layout.colours])
        size = tuple(
            given if given != FREE else own for given, own in zip((self.layout.width, self.layout.height), image.size)
        )
        if size != image.size:
            image = image.resize(size)
        pixels = numpy.asarray(image).reshape(size[1], size[0], self.layout.colours)
        if self.bgr:
            pixels = pixels[:, :, ::-1]
        if self.tensor.datatype != "UINT8":
            pixels = (pixels * self.scale - self._per_colour(self.mean, 0)) / self._per_colour(self.std, 1)
        pixels = numpy.ascontiguousarray(pixels.transpose(2, 0, 1) if self.layout.first else pixels)
        return (pixels[None] if self.layout.rows else pixels).astype(NUMPY[self.tensor.datatype])

    @staticmethod
    def _per_colour(values: List[float], otherwise: float) -> Any:
        import numpy

        return numpy.array(values or [otherwise])


def _opened(content: bytes) -> Any:
    pillow = importlib.import_module("PIL.Image")
    try:
        image = pillow.open(io.BytesIO(content))
        # `open` reads the head alone: whatever is wrong with the rest must show here.
        image.load()
    # An error here, by `compat.pictures.limit`: between one and two times the limit Pillow only warns.
    except pillow.DecompressionBombWarning:
        raise ClientError("the image has too many pixels", 413) from None
    except pillow.DecompressionBombError:
        raise ClientError("the image has too many pixels", 413) from None
    except Exception as error:
        raise ClientError("the image cannot be read: %s" % " ".join(str(error).split())[:200]) from None
    return image


def is_picture(content: Any) -> bool:
    return bytes(content[:4]).startswith(STARTS) or bytes(content[:3]) == STARTS[0]


def picture_input(spec: ModelTensor, declared: Dict[str, Any]) -> Optional[PictureInput]:
    """The input as one for pictures; None where it is none, or Pillow is not there."""
    layout = _layout(spec) if declared.get("picture", True) else None
    if layout is None or not _has_pillow():
        return None
    colours = declared.get("colours", "")
    scale = declared.get("scale", 1.0 if spec.datatype == "UINT8" else 1 / 255)
    return PictureInput(spec, layout, scale, declared.get("mean", []), declared.get("std", []), colours == "bgr")


def _layout(spec: ModelTensor) -> Optional[Layout]:
    """Height and width beside one or three colours, in front or behind; None for another shape."""
    if spec.datatype not in ("UINT8", "FP16", "BF16", "FP32", "FP64") or spec.sequence:
        return None
    shape = list(spec.shape or ())
    rows = len(shape) == 4 and shape[0] in (FREE, 1)
    sides = shape[1:] if rows else shape
    if len(sides) != 3:
        return None
    for first, (colours, height, width) in ((True, sides), (False, [sides[2], *sides[:2]])):
        if colours in COLOURS and all(size == FREE or size >= 8 for size in (height, width)):
            return Layout(rows, first, height, width, colours)
    return None


def _has_pillow() -> bool:
    try:
        importlib.import_module("PIL.Image")
    except ImportError:
        return False
    return True
