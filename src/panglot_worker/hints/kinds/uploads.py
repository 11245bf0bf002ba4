"""Files: File, bytes and PIL.Image.Image. In a form an upload; in JSON base64, or a data: URI, which has a type."""

from __future__ import annotations

import base64
import binascii
import io
import re
import sys
from typing import Any, Callable, List, Optional, Tuple

from panglot_worker.bodies.codec import OCTETS, File
from panglot_worker.hints.kind import Kind
from panglot_worker.hints.misfit import Misfit, must_be

FILE, PICTURE = "a file", "an image"
IN_JSON = " (in JSON: base64, or a data: URI)"
BINARY = {"type": "string", "format": "binary"}
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000")
"""The formats that Pillow may read. It knows more, some of which it reads by starting other programs."""

_DATA_URI = re.compile(r"data:([!-+\--~]{0,200}?)((?:;[!-+\--:<-~]{1,200}){0,8}?)(;base64)?,", re.ASCII | re.IGNORECASE)


def to_file(value: Any, expects: str = FILE) -> File:
    """The file that a value holds or spells. Raises Misfit."""
    if isinstance(value, File):
        return value
    if isinstance(value, str):
        media, text = _taken_apart(value)
        try:
            return File("", media, base64.b64decode(text.encode("ascii"), validate=True))
        except (ValueError, binascii.Error):
            raise Misfit("must be %s; this text is not base64" % (expects + IN_JSON)) from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return File("", OCTETS, bytes(value))
    if isinstance(value, list):
        raise must_be("one file", value)
    raise must_be(expects + IN_JSON, value)


def _taken_apart(text: str) -> Tuple[str, str]:
    """The media type and the base64 of a text that may be a data: URI."""
    if text[:5].lower() != "data:":
        return OCTETS, text
    match = _DATA_URI.match(text)
    if match is None or not match.group(3):
        raise Misfit("is a data: URI without ;base64")
    return match.group(1).lower() or "text/plain", text[match.end() :]


def to_bytes(value: Any) -> bytes:
    return value if type(value) is bytes else to_file(value).bytes


def _kind(expects: str, read: Callable[[Any], Any], example: File) -> Kind:
    return Kind(expects, read, read, BINARY, example, is_file=True)


OF_FILE = _kind(FILE, to_file, File("file.bin", OCTETS, b""))
OF_BYTES = _kind(FILE, to_bytes, File("file.bin", OCTETS, b""))


def of_picture(hint: Any) -> Optional[Kind]:
    """The kind of PIL.Image.Image; None when that is not the hint."""
    pillow = sys.modules.get("PIL.Image")
    if pillow is None or hint is not pillow.Image:
        return None

    pillow.init()
    formats = [name for name in FORMATS if name in pillow.OPEN]

    def read(value: Any) -> Any:
        if isinstance(value, pillow.Image):
            return value
        return _opened(pillow, to_file(value, PICTURE), formats)

    return _kind(PICTURE, read, File("image.png", "image/png", b""))


def _opened(pillow: Any, file: File, formats: List[str]) -> Any:
    """The picture with all its pixels read, so that a broken one is refused before the script sees it."""
    try:
        picture = pillow.open(io.BytesIO(file.bytes), formats=formats)
        picture.load()
    except (MemoryError, RecursionError):
        raise
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning):
        raise Misfit("is an image with too many pixels") from None
    except Exception:
        # Pillow raises OSError, SyntaxError, ValueError, struct.error and others for what it cannot read.
        known = ", ".join(formats)
        raise Misfit("is not a complete image in a supported format (%s)" % known) from None
    return picture
