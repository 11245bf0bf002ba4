"""A shelf of notes, with routes of its own."""

import asyncio
import enum
from dataclasses import dataclass

from panglot import ClientError, File, route


class Order(enum.Enum):
    NEWEST = "newest"
    OLDEST = "oldest"


@dataclass
class Note:
    text: str
    stars: int = 0


NOTES = {1: Note("first", 3)}


def predict(text: str) -> str:
    """Says a text again."""
    return text


@route("/labels", methods="GET")
def labels():
    """What there is to choose from."""
    return ["cat", "dog"]


@route("/reset")
def reset():
    NOTES.clear()
    NOTES[1] = Note("first", 3)
    return len(NOTES)


@route("/notes", methods=["GET"])
def search(least: int = 0, order: Order = Order.NEWEST, tag: list[str] = ()):
    """The notes with at least so many stars."""
    return {"least": least, "order": order.value, "tag": list(tag)}


@route("/notes/{number}", methods=["GET"])
async def show(number: int):
    """One note."""
    await asyncio.sleep(0)
    if number not in NOTES:
        raise ClientError("there is no such note", 404)
    return NOTES[number]


@route("/notes/{number}", methods=["PUT"])
def write(number: int, note: Note, loud: bool = False):
    NOTES[number] = Note(note.text.upper() if loud else note.text, note.stars)
    return NOTES[number]


@route("/notes/{number}", methods=["DELETE"])
def remove(number: int):
    NOTES.pop(number, None)


@route("/echo/{name}", methods=["PUT", "POST"])
def echo(name, body):
    return [name, body]


@route("/raw/{path...}", methods=["GET"])
def raw(path: str):
    return File("path.txt", "text/plain", path.encode())


@route("/count/{most}", methods=["GET"])
def count(most: int):
    yield from range(most)
