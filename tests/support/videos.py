"""Videos made for tests: every frame says its own number."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

BITS = 12
BLOCK = 16


def numbered(number: int, width: int = 208, height: int = 48) -> Any:
    """A grey frame with its number written in black and white blocks along its upper edge."""
    frame = np.full((height, width, 3), 90, np.uint8)
    for bit in range(BITS):
        frame[:BLOCK, bit * BLOCK : (bit + 1) * BLOCK] = 230 if number >> bit & 1 else 20
    return frame


def number_of(frame: Any) -> int:
    """What `numbered` wrote."""
    return sum(
        1 << bit for bit in range(BITS) if frame[4 : BLOCK - 4, bit * BLOCK + 4 : (bit + 1) * BLOCK - 4].mean() > 125
    )


def encode(target: Any, frames: int, *, format: str, width: int = 208, height: int = 48, rate: int = 25,
           codec: str = "libx264", first: int = 0, options: dict[str, str] | None = None,
           picture: Any = numbered) -> None:  # fmt: skip
    with av.open(target, "w", format=format) as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height = width, height
        stream.pix_fmt = "yuv420p" if not (width % 2 or height % 2) else "yuv444p"
        if codec == "mjpeg":
            stream.pix_fmt = "yuvj420p"
        stream.options = options or {}
        for number in range(first, first + frames):
            frame = av.VideoFrame.from_ndarray(picture(number, width, height), format="bgr24")
            frame.pts, frame.time_base = number - first, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def make(path: Path, frames: int, format: str = "mp4", **more: Any) -> Path:
    encode(str(path), frames, format=format, **more)
    return path


def made(frames: int, format: str = "mpegts", **more: Any) -> bytes:
    target = io.BytesIO()
    encode(target, frames, format=format, **more)
    return target.getvalue()
