"""Hostile, broken and strange pictures, made when they are needed."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Iterator

from PIL import ExifTags, Image

from support.server import ROOT

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")
SIX = ROOT / "examples" / "digits" / "six.png"


def six(mode: str = "L", side: int = 28) -> Image.Image:
    """A small picture of a digit."""
    return Image.open(io.BytesIO(SIX.read_bytes())).convert("L").resize((side, side)).convert(mode)


def saved(image: Image.Image, format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def each_format() -> dict[str, bytes]:
    return {format: saved(six(), format) for format in FORMATS}


# PNG, chunk by chunk

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes, good: bool = True) -> bytes:
    check = zlib.crc32(kind + data) if good else 0
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def header(width: int, height: int, depth: int = 1, colour: int = 0, interlaced: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def png(*chunks: bytes) -> bytes:
    return SIGNATURE + b"".join(chunks) + chunk(b"IEND", b"")


def one_bit(width: int, height: int) -> bytes:
    """A PNG of one bit per pixel, all black: a few kilobytes for any number of pixels."""
    row = bytes(1 + (width + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row * min(256, height - start)) for start in range(0, height, 256))
    return png(header(width, height), chunk(b"IDAT", data + packer.flush()))


def small_png(*extra: bytes, before: bool = True) -> bytes:
    """A good little PNG with further chunks."""
    whole = saved(six(), "PNG")
    at = whole.index(b"IDAT") - 4 if before else len(whole) - 12
    return whole[:at] + b"".join(extra) + whole[at:]


# Others


def gif_screen(width: int, height: int) -> bytes:
    whole = bytearray(saved(six(), "GIF"))
    whole[6:10] = struct.pack("<HH", width, height)
    return bytes(whole)


def gif_frames(count: int) -> bytes:
    """Many frames of one pixel without a pause between them."""
    frame = b"\x21\xf9\x04\0\0\0\0\0" + b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0"
    return b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff" + frame * count + b";"


def bmp(width: int, height: int, bits: int = 24, compression: int = 0) -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 100, 0, 0, 54) + info + bytes(100)


def webp(width: int, height: int) -> bytes:
    """An extended header that claims a size, and nothing behind it."""
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + size
    return b"RIFF" + struct.pack("<I", len(body)) + body


def jpeg_of_scans(side: int, count: int) -> bytes:
    """A progressive JPEG whose last scan comes again and again."""
    whole = saved(Image.new("L", (side, side), 128), "JPEG", progressive=True, quality=50)
    return whole[:-2] + whole[whole.rindex(b"\xff\xda") : -2] * count + whole[-2:]


def with_exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    return saved(six(), "JPEG", exif=exif)


def truncated(data: bytes, parts: int = 16) -> Iterator[bytes]:
    for number in range(parts):
        yield data[: len(data) * number // parts]


def flipped(data: bytes, count: int, seed: int = 1) -> Iterator[bytes]:
    """The data with one byte changed, at so many places: the first hundred, where headers are, and others."""
    source = random.Random(seed)
    places = [*range(min(100, len(data))), *(source.randrange(len(data)) for _ in range(count))]
    for place in places[:count] if count < 100 else places:
        changed = bytearray(data)
        changed[place] ^= source.randrange(1, 256)
        yield bytes(changed)


def foreign() -> dict[str, bytes]:
    """Formats that are not accepted, whatever the file is called."""
    colour = six("RGB", 64)
    written = {}
    for format in ("TIFF", "PPM", "TGA", "PCX", "ICO", "ICNS", "DDS", "EPS", "PDF", "SGI", "JPEG2000", "AVIF"):
        try:
            written[format] = saved(colour, format)
        except (OSError, KeyError, ValueError):
            continue
    return written | {
        "PS": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n",
        "SVG": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
        "WMF": b"\xd7\xcd\xc6\x9a" + bytes(100),
        "FITS": b"SIMPLE  =                    T".ljust(80) + b"BITPIX  = 8".ljust(80) + bytes(2880),
        "PSD": b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 60000, 60000, 8, 3) + bytes(100),
        "BLP": b"BLP2" + struct.pack("<IBBBB", 1, 1, 0, 0, 0) + struct.pack("<II", 60000, 60000) + bytes(200),
        "FLI": struct.pack("<IHHHHH", 200, 0xAF12, 100, 320, 200, 8) + bytes(200),
        "huge TIFF": b"II*\0\x08\0\0\0\x02\0\0\1\4\0\1\0\0\0\xff\xff\xff\x7f\1\1\4\0\1\0\0\0\xff\xff\xff\x7f\0\0\0\0",
        "huge JPEG 2000": b"\0\0\0\x0cjP  \r\n\x87\n"
        + struct.pack(">I", 22)
        + b"ihdr"
        + b"\x7f\xff\xff\xff" * 2
        + bytes(6),
        "HTML": b"<!doctype html><script>alert(1)</script>",
        "a playlist": b"#EXTM3U\n#EXTINF:10,\nhttp://127.0.0.1/secret\n",
        "a ZIP": b"PK\x03\x04" + bytes(100),
    }
