"""A script whose page has a field of every kind, and answers of every kind."""

from __future__ import annotations

import base64
import time
from enum import Enum

from panglot import File, Response, route


class Tone(Enum):
    CALM = "calm"
    LOUD = "loud"


def predict(
    text: str, tone: Tone = Tone.LOUD, note: str | None = None, most: int | None = None, again: bool = False
) -> dict:
    """How does a sentence feel? Says back what it was given, with the type of each."""
    given = {"text": text, "tone": tone.name, "note": note, "most": most, "again": again}
    return {name: f"{type(value).__name__} {value}" for name, value in given.items()}


@route("/mood")
def mood(text: str) -> dict:
    """The mood of a text."""
    return {"label": "joy", "scores": [{"label": "joy", "score": 0.9312}, {"label": "fear", "score": 0.0688}]}


@route("/form")
def form(image: File, note: str | None = None) -> dict:
    return {"size": len(image), "note": repr(note)}


@route("/page")
def page(text: str) -> Response:
    html = f"<h1 style='color: rgb(1, 2, 3)'>{text}</h1><script>parent.harmed = 1</script><img src='/status.json'>"
    return Response(html, content_type="text/html")


@route("/markdown")
def markdown(text: str) -> Response:
    return Response(
        f"# {text}\n\n- one\n- two\n\n**bold** <img src=x onerror='window.harmed=1'>", content_type="text/markdown"
    )


@route("/broken")
def broken(text: str) -> Response:
    return Response(b"this is no picture", content_type="image/png")


@route("/sound")
def sound(text: str) -> Response:
    return Response(
        base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="), content_type="audio/wav"
    )


@route("/table")
def table(text: str) -> Response:
    return Response('name,count\nfox,3\n"a, b",4\n', content_type="text/csv")


@route("/fails")
def fails(text: str):
    for word in ("one ", "two "):
        yield {"text": word}
        time.sleep(0.2)
    raise RuntimeError("the third word is missing")


@route("/at-once")
def at_once(text: str):
    """Fails right behind its last part."""
    for number in range(6):
        yield {"text": f"word{number} "}
    raise RuntimeError("there is no seventh word")


@route("/slow")
def slow(text: str):
    for number in range(6):
        time.sleep(0.1)
        yield {"text": f"{number} "}
