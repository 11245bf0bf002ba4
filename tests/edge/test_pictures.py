"""Corpus 4f: pictures as bombs, ruins and curiosities, against examples/digits. Never a 5xx, never long or large."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from support import pictures
from support.pictures import chunk, header, png, saved, six, small_png
from support.server import ROOT, Server, serving
from support.traffic import times

"""Seconds for the worst of them on a busy machine; the mild ones take milliseconds."""

CLIENTS_FAULT = {400, 413, 415, 422}
FINE = {200} | CLIENTS_FAULT


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(ROOT / "examples" / "digits", "--workers", "1") as running:
        (worker,) = running.workers()
        yield running
        assert running.workers() == [worker], "the worker was replaced"
        assert running.metric("panglot_worker_restarts_total") == 0
        assert most_memory(worker) < 1 << 30
    assert "Traceback" not in running.log


def most_memory(worker: psutil.Process) -> int:
    """The most a process has ever held."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def show(server: Server, data: bytes, name: str = "a.png") -> httpx.Response:
    return server.predict(files={"image": (name, data, "image/png")})


def test_nothing_or_nearly(server: Server) -> None:
    """Nothing, one byte, and the first bytes of each format."""
    for whole in pictures.each_format().values():
        for length in (0, 1, 2, 4, 8, 12, 16, 20):
            assert show(server, whole[:length]).status_code in CLIENTS_FAULT


@pytest.mark.parametrize("format", pictures.FORMATS)
def test_truncated(server: Server, format: str) -> None:
    """Cut at every sixteenth: refused, or read as far as it goes."""
    for data in pictures.truncated(pictures.each_format()[format]):
        assert show(server, data).status_code in FINE


@pytest.mark.parametrize("format", pictures.FORMATS)
def test_flipped_bytes(server: Server, format: str) -> None:
    for data in pictures.flipped(pictures.each_format()[format], times(60, 2000)):
        assert show(server, data).status_code in FINE


BOMBS: dict[str, tuple[Callable[[], bytes], set[int]]] = {
    "a PNG of 9,000²": (lambda: pictures.one_bit(9000, 9000), {413}),
    "a PNG of 13,000²": (lambda: pictures.one_bit(13_000, 13_000), {413}),
    "a PNG of 20,000²": (lambda: pictures.one_bit(20_000, 20_000), {413}),
    "a PNG of 32,000²": (lambda: pictures.one_bit(32_000, 32_000), {413}),
    "a PNG that claims 2³¹": (lambda: png(header(2**31 - 1, 2**31 - 1), chunk(b"IDAT", b"")), {413, 422}),
    "a PNG just within": (lambda: pictures.one_bit(6300, 6300), {422}),
    "a GIF of a huge screen": (lambda: pictures.gif_screen(65535, 65535), {413}),
    "a GIF of 50,000 frames": (lambda: pictures.gif_frames(50_000), {200, 422}),
    "a BMP of 2³¹": (lambda: pictures.bmp(2**31 - 1, 2**31 - 1), {413, 422}),
    "a BMP with a negative height": (lambda: pictures.bmp(5, -(2**31)), {413, 422}),
    "a BMP with a negative width": (lambda: pictures.bmp(-5, 5), {413, 422}),
    "a WebP of 16,384²": (lambda: pictures.webp(16_384, 16_384), {413, 422}),
    "a JPEG of 10,000 scans": (lambda: pictures.jpeg_of_scans(4000, 10_000), {413}),
    "a JPEG of 20 scans": (lambda: pictures.jpeg_of_scans(1000, 20), {422}),
    "a text of 64 MiB inflated": (lambda: bomb_text(b"zTXt", b"a\0\0"), FINE),
    "an international text of 64 MiB": (lambda: bomb_text(b"iTXt", b"a\0\1\0\0\0"), FINE),
    "a colour profile of 64 MiB": (lambda: bomb_text(b"iCCP", b"a\0\0"), FINE),
    "100,000 chunks": (lambda: small_png(*[chunk(b"tEXt", b"a\0b")] * 100_000), FINE),
    "100,000 data chunks": (lambda: small_png(*[chunk(b"IDAT", b"")] * 100_000), FINE),
    "data that inflates to far more": (lambda: png(header(8, 8, 8), chunk(b"IDAT", deflated(64 << 20))), FINE),
}


def deflated(size: int) -> bytes:
    return zlib.compress(bytes(size), 9)


def bomb_text(kind: bytes, start: bytes) -> bytes:
    return small_png(chunk(kind, start + deflated(64 << 20)))


@pytest.mark.parametrize(("make", "allowed"), BOMBS.values(), ids=BOMBS.keys())
def test_bombs(server: Server, make: Callable[[], bytes], allowed: set[int]) -> None:
    """A small file that asks for much work or memory is refused by what its header says."""
    data = make()
    answer = show(server, data)
    assert answer.status_code in allowed, answer.text
    assert server.predict(content=saved(six(), "PNG"), headers={"content-type": "image/png"}).status_code == 200


def test_bombs_among_good_pictures(server: Server) -> None:
    """Bombs, ruins and good pictures at the same time, in the same batches: every good one is read."""
    bad = [pictures.one_bit(20_000, 20_000), saved(six(), "PNG")[:100], b"nothing"]
    good = saved(six(side=64), "PNG")
    with ThreadPoolExecutor(16) as pool:
        shown = [pool.submit(show, server, data) for _ in range(times(10, 200)) for data in (*bad, good, good)]
    statuses = [future.result().status_code for future in shown]
    assert statuses == [413, 422, 422, 200, 200] * (len(statuses) // 5)
    assert {future.result().json()["digit"] for future in shown[3::5]} == {6}


SIZES = [(1, 1), (1, 2), (2, 1), (1, 65_500), (65_500, 1), (3, 3), (100_000, 1), (1, 100_000)]


@pytest.mark.parametrize("size", SIZES)
def test_odd_sizes(server: Server, size: tuple[int, int]) -> None:
    for colour, paint in ((0, 255), (255, 0)):
        image = six().resize((min(size[0], 300), min(size[1], 300))).resize(size)
        image.putpixel((0, 0), paint)
        image.putpixel((size[0] - 1, size[1] - 1), colour)
        assert show(server, saved(image, "PNG")).status_code in {200, 413, 422}


def test_sizes_that_are_none(server: Server) -> None:
    for width, height in ((0, 0), (0, 5), (5, 0), (2**32 - 1, 1), (1, 2**32 - 1)):
        data = png(header(width, height), chunk(b"IDAT", deflated(100)))
        assert show(server, data).status_code in CLIENTS_FAULT


def test_moving_pictures(server: Server) -> None:
    """Of an animation the first picture counts."""
    frames = [six().rotate(90 * number) for number in range(4)]
    for format in ("PNG", "WEBP", "GIF"):
        data = saved(frames[0], format, save_all=True, append_images=frames[1:], duration=0)
        assert show(server, data).json()["digit"] == 6


def test_exif(server: Server) -> None:
    """Every orientation, those that do not exist too; broken and huge extra data."""
    for orientation in range(10):
        assert show(server, pictures.with_exif(orientation)).status_code == 200
    whole = pictures.with_exif(6)
    for data in pictures.flipped(whole[:200], 90):
        assert show(server, data + whole[200:]).status_code in FINE
    for extra in ({"icc_profile": b"x" * 65_000}, {"exif": b"Exif\0\0" + b"\xff" * 60_000}, {"xmp": b"<" * 60_000}):
        assert show(server, saved(six(), "JPEG", **extra)).status_code in FINE


STRANGE_PNG = {
    "a wrong checksum": small_png(chunk(b"tEXt", b"a\0b", good=False)),
    "a wrong checksum of the header": png(header(8, 8)[:-1] + b"x", chunk(b"IDAT", deflated(100))),
    "no header": png(chunk(b"IDAT", deflated(100))),
    "two headers": small_png(header(30_000, 30_000)),
    "data first": png(chunk(b"IDAT", deflated(100)), header(8, 8)),
    "no data": png(header(8, 8)),
    "no end": small_png()[:-12],
    "too little data": png(header(800, 800, 8), chunk(b"IDAT", deflated(100))),
    "data that is not deflated": png(header(8, 8), chunk(b"IDAT", b"nonsense")),
    "interlaced": saved(six(), "PNG"),
    "an unknown critical chunk": small_png(chunk(b"ABCD", b"x")),
    "a palette that is missing": png(header(8, 8, 8, 3), chunk(b"IDAT", deflated(100))),
    "a palette beyond its size": png(header(8, 8, 8, 3), chunk(b"PLTE", b"\0" * 3000), chunk(b"IDAT", deflated(100))),
    "an impossible depth": png(header(8, 8, 7), chunk(b"IDAT", deflated(100))),
    "an impossible colour": png(header(8, 8, 8, 5), chunk(b"IDAT", deflated(100))),
    "interlaced without data": png(header(8, 8, 8, 0, 1), chunk(b"IDAT", deflated(10))),
    "a chunk longer than the file": small_png()[:33] + b"\x7f\xff\xff\xffIDAT" + b"x" * 50,
}


@pytest.mark.parametrize("data", STRANGE_PNG.values(), ids=STRANGE_PNG.keys())
def test_strange_chunks(server: Server, data: bytes) -> None:
    assert show(server, data).status_code in FINE


READ = {
    "16 bit": lambda: saved(six("I;16"), "PNG"),
    "16 bit, full range": lambda: saved(six("I").point(lambda value: value * 257).convert("I;16"), "PNG"),
    "a palette": lambda: saved(six("RGB").quantize(16), "PNG"),
    "a palette with transparency": lambda: saved(six("RGB").quantize(16), "PNG", transparency=3),
    "grey with transparency": lambda: saved(six("LA"), "PNG"),
    "colour with transparency": lambda: saved(six("RGBA"), "PNG"),
    "one bit": lambda: saved(six("1"), "PNG"),
    "CMYK": lambda: saved(six("CMYK"), "JPEG"),
    "YCbCr": lambda: saved(six("YCbCr"), "JPEG"),
    "progressive": lambda: saved(six(), "JPEG", progressive=True),
    "a GIF palette": lambda: saved(six("P"), "GIF"),
    "WebP without loss": lambda: saved(six("RGB"), "WEBP", lossless=True),
    "a BMP of one bit": lambda: saved(six("1"), "BMP"),
}  # fmt: skip


@pytest.mark.parametrize("make", READ.values(), ids=READ.keys())
def test_every_kind_of_pixel(server: Server, make: Callable[[], bytes]) -> None:
    """Unusual but correct: read, and mostly read rightly."""
    answer = show(server, make())
    assert answer.status_code == 200, answer.text
    assert 0 <= answer.json()["digit"] <= 9


def test_foreign_formats(server: Server) -> None:
    """Formats beyond the list are refused, whatever the name says; their readers are never asked."""
    for format, data in pictures.foreign().items():
        answer = show(server, data)
        assert answer.status_code in (415, 422), format


def test_two_things_in_one(server: Server) -> None:
    """A picture that is something else too is a picture; nothing of the rest is looked at or sent back."""
    script = b"\n=1;alert(1)//<script>alert(1)</script>"
    for data in (saved(six(), "GIF") + script, saved(six(), "JPEG") + b"PK\x05\x06" + bytes(18), small_png() + script):
        answer = show(server, data, "a.png<script>")
        assert answer.status_code == 200
        assert "script" not in answer.text


def test_what_is_no_picture_at_all(server: Server) -> None:
    for value in ({"image": "text"}, [1], "x", {}, None):
        assert server.predict(value).status_code in CLIENTS_FAULT
    assert server.predict(data={"image": "text"}).status_code in CLIENTS_FAULT
    two = [("image", ("a", b"x", "image/png")), ("image", ("b", saved(six(), "PNG"), "image/png"))]
    assert server.predict(files=two).status_code in FINE


def test_opencv_has_the_same_limit(tmp_path: Path) -> None:
    """Scripts that decode with OpenCV are kept from bombs by the environment the worker gives them."""
    script = tmp_path / "model.py"
    script.write_text(
        "import cv2, numpy\n\n\ndef predict(request):\n"
        "    image = cv2.imdecode(numpy.frombuffer(request.bytes, numpy.uint8), 0)\n"
        "    return None if image is None else list(image.shape)\n"
    )
    with serving(tmp_path) as server:
        (worker,) = server.workers()
        small = server.predict(content=saved(six(), "PNG"), headers={"content-type": "image/png"})
        assert small.json() == [28, 28]
        before = most_memory(worker)
        bomb = server.predict(content=pictures.one_bit(32_000, 32_000), headers={"content-type": "image/png"})
        assert bomb.status_code == 500 or bomb.json() is None
        assert most_memory(worker) - before < 300 << 20
        assert server.metric("panglot_worker_restarts_total") == 0
