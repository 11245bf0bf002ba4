"""The kind of a file, by its first bytes; and whether a picture can be read at all."""

from __future__ import annotations

import io
import re
import struct
import zlib

PICTURES = (
    (b"\xff\xd8\xff", ".jpg"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"GIF8", ".gif"),
    (b"BM", ".bmp"),
    (b"II*\0", ".tif"),
    (b"MM\0*", ".tif"),
    (b"\0\0\0\x0cjP  ", ".jp2"),
    (b"\0\0\1\0", ".ico"),
    *((b"P%d%s" % (kind, blank), ".pnm") for kind in range(1, 7) for blank in (b"\n", b" ", b"\r", b"\t")),
)
BRANDS = {b"avif": ".avif", b"avis": ".avif", b"heic": ".heic", b"heix": ".heic", b"mif1": ".heif"}
OTHERS = ((b"\x93NUMPY", ".npy"), (b"RIFF", ".wav"), (b"\x1aE\xdf\xa3", ".mkv"))
MEDIA = {
    "text/plain": ".txt",
    "text/csv": ".csv",
    "application/json": ".json",
    "application/x-npy": ".npy",
    "application/x-npz": ".npz",
    "audio/wav": ".wav",
    "video/mp4": ".mp4",
}
SAFE = re.compile(r"\.[A-Za-z0-9]{1,8}")


def is_picture(content: bytes) -> bool:
    return bool(_picture_ending(content))


def _picture_ending(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return ".webp"
    if content[4:8] == b"ftyp" and content[8:12] in BRANDS:
        return BRANDS[content[8:12]]
    return next((ending for start, ending in PICTURES if content.startswith(start)), "")


def ending(content: bytes, name: str, media: str) -> str:
    """The ending a file of this content should have: by the content, else by the client's name for it, else by type."""
    ending = _picture_ending(content) or next((end for start, end in OTHERS if content.startswith(start)), "")
    if ending:
        return ending
    named = SAFE.fullmatch("." + name.rpartition(".")[2].lower()) if "." in name else None
    if named:
        return named.group()
    return ".npz" if content.startswith(b"PK\x03\x04") else MEDIA.get(media, "")


def unreadable(content: bytes) -> str:
    """Why a picture cannot be read; empty when it can, or when nothing here could tell."""
    try:
        from PIL import Image
    except ImportError:
        return _unreadable_by_opencv(content)
    try:
        with Image.open(io.BytesIO(content)) as image:
            image.load()
    except Exception as error:
        return str(error).replace("<_io.BytesIO object at ", "<image at ") or type(error).__name__
    return ""


def _unreadable_by_opencv(content: bytes) -> str:
    try:
        import cv2
        import numpy
    except ImportError:
        return ""
    decoded = cv2.imdecode(numpy.frombuffer(content, "uint8"), cv2.IMREAD_UNCHANGED)
    return "its content is damaged" if decoded is None else ""


def noise(width: int = 96, height: int = 64) -> bytes:
    """A PNG of coloured noise, always the same."""
    # Not by the module random: its numbers may differ between versions of Python.
    state, rows = 1, []
    for _ in range(height):
        row = bytearray(1)
        for _ in range(3 * width):
            state = state * 1103515245 + 12345 & 0x7FFFFFFF
            row.append(state >> 16 & 0xFF)
        rows.append(bytes(row))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"".join(rows))),
    )
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in (*chunks, (b"IEND", b"")):
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return png
