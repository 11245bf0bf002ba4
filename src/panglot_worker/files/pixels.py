"""Decodes pictures for `panglot replay`, in a process of its own: lengths and pictures in, sizes and pixels out.

It reads four bytes of length and the picture, and writes height, width, channels, a size and so many bytes: the pixels,
or with 0 channels the reason why there are none.
"""

from __future__ import annotations

import io
import struct
import sys
from typing import Tuple

LARGEST = 100_000_000
"""Pixels of the largest picture that is decoded."""


def decoded(picture: bytes) -> Tuple[int, int, int, bytes]:
    """Height, width, channels and pixels. Raises ValueError with the reason why there are none."""
    try:
        from PIL import Image
    except ImportError:
        raise ValueError("comparing pixels needs Pillow: pip install pillow") from None
    try:
        with Image.open(io.BytesIO(picture)) as image:
            if image.width * image.height > LARGEST:
                raise ValueError("it is too large")
            mode = "RGBA" if "A" in image.getbands() or "transparency" in image.info else "RGB"
            pixels = image.convert(mode).tobytes()
            return image.height, image.width, len(mode), pixels
    except Exception as error:  # noqa: BLE001  a damaged picture makes its decoder raise anything
        raise ValueError("it cannot be decoded: %s" % type(error).__name__) from None


def main() -> None:
    """Decode pictures until there are no more."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while True:
        head = source.read(4)
        if len(head) < 4:
            return
        try:
            height, width, channels, content = decoded(source.read(struct.unpack("<I", head)[0]))
        except ValueError as error:
            height, width, channels, content = 0, 0, 0, str(error).encode()
        target.write(struct.pack("<IIII", height, width, channels, len(content)) + content)
        target.flush()


if __name__ == "__main__":
    main()
