"""Finds cars and people in an image, and answers with media of every kind."""

from __future__ import annotations

import io
import math
import struct
import time
import wave
from typing import Annotated, Literal

import av
import numpy as np
from annotated_types import Ge, Le
from PIL import Image, ImageDraw

from panglot import ClientError, Response, progress, route

FOUND = (("car", 0.94, (0.08, 0.45, 0.42, 0.8)), ("person", 0.81, (0.6, 0.3, 0.72, 0.85)))


def street(width: int = 480, height: int = 320, colour: str = "#3b6ea5") -> Image.Image:
    """A street with a car and a person, as a child draws them."""
    image = Image.new("RGB", (width, height), colour)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0.7 * height, width, height), "#555b63")
    for name, _, (left, top, right, bottom) in FOUND:
        box = (left * width, top * height, right * width, bottom * height)
        draw.rounded_rectangle(box, 12, "#d9532c" if name == "car" else "#e8c39e")
    return image


def predict(image: Image.Image, least: Annotated[float, Ge(0), Le(1)] = 0.5) -> list[dict]:
    """Find cars and people. Draws a box around each, with how sure it is."""
    width, height = image.size
    return [
        {"label": name, "score": score, "box": [left * width, top * height, right * width, bottom * height]}
        for name, score, (left, top, right, bottom) in FOUND
        if score >= least
    ]


@route("/draw")
def draw(colour: Literal["#3b6ea5", "#2e8b57"] = "#3b6ea5") -> Image.Image:
    """Draw a street."""
    return street(colour=colour)


@route("/speak")
def speak(text: str = "a short tone") -> Response:
    """Say a text as a tone."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(n / 3))) for n in range(12000)))
    return Response(sound.getvalue(), content_type="audio/wav")


@route("/film")
def film(seconds: float = 1.0) -> Response:
    """Film a street."""
    target = io.BytesIO()
    with av.open(target, "w", format="webm") as container:
        stream = container.add_stream("libvpx", rate=10)
        stream.width, stream.height, stream.pix_fmt = 320, 214, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.asarray(street(320, 214)), format="rgb24")
        for number in range(int(10 * seconds)):
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return Response(target.getvalue(), content_type="video/webm")


@route("/rows")
def rows(count: int = 4) -> list[dict]:
    """A table of sales."""
    cities = ("Paris", "Rome", "Beijing", "Reykjavík")
    return [
        {"city": cities[n % 4], "sold": 1250 * (n + 1), "growth": round(0.031 * (n - 1), 3), "open": n % 2 == 0}
        for n in range(count)
    ]


@route("/slow")
def slow(steps: int = 600) -> int:
    """Take long, and say how far it is."""
    for step in range(steps):
        progress(0.4 + step / steps / 2, f"epoch {step + 2} of 5")
        time.sleep(0.5)
    return steps


@route("/refuse")
def refuse(text: str = "anything"):
    """Refuse whatever comes."""
    raise ClientError("the text has no verb, and a sentence needs one")


@route("/file")
def file() -> Response:
    """A file to keep."""
    return Response(
        b"PK\x05\x06" + bytes(18),
        content_type="application/zip",
        headers={"content-disposition": 'attachment; filename="weights.zip"'},
    )
