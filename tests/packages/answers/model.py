"""Answers with a status, headers and names, and errors with more than a message."""

import numpy
from PIL import Image

from panglot import ClientError, File, Response, route


class Unspeakable(Exception):
    status = 422

    def __str__(self):
        raise ValueError("no words")


ANSWERS = {
    "created": lambda: Response({"id": 7}, status=201, headers={"Location": "/things/7", "X-Count": 3}),
    "cookies": lambda: Response("ok", headers={"Set-Cookie": ["a=1", "b=2"]}),
    "page": lambda: Response("<p>é</p>", content_type="text/html; charset=utf-8"),
    "nothing": lambda: Response(status=204),
    "moved": lambda: Response(None, status=302, headers={"location": "/docs"}),
    "problem": lambda: Response({"title": "no"}, status=503, content_type="application/problem+json"),
    "file": lambda: File("report.csv", "text/csv", b"a,b"),
    "path": lambda: File("../../etc/passwd", "text/plain", b"x"),
    "odd": lambda: File('été "1".png\r\nx: y', "image/png", b"x"),
    "unnamed": lambda: File("", "text/csv", b"a,b"),
    "renamed": lambda: Response(File("a.csv", "text/csv", b"a"), headers={"Content-Disposition": "inline"}),
    "inside": lambda: {"picture": Image.new("RGB", (2, 1), "red"), "boxes": numpy.ones((1, 2)), "raw": b"abc"},
    "line": lambda: Response(1, headers={"X-A": "1\r\nX-Evil: 1"}),
    "name": lambda: Response(1, headers={"X-A: 1\r\nX-Evil": "1"}),
    "unicode": lambda: Response(1, headers={"X-A": "é"}),
    "length": lambda: Response(1, headers={"Content-Length": "0"}),
    "chunked": lambda: Response(1, headers={"transfer-encoding": "chunked"}),
    "type": lambda: Response("a", content_type="text/html\r\nX-Evil: 1"),
    "status": lambda: Response(1, status=99),
    "long": lambda: Response(1, headers={"X-A": "a" * 5000}),
    "body": lambda: Response("text", status=204),
}


class Numbered(ClientError):
    pass


ERRORS = {
    "text": lambda: ClientError("no such thing", status=404, code="unknown_thing"),
    "dict": lambda: ClientError({"message": "two are wrong", "fields": ["a", "b"], "code": "mine"}, 422),
    "bare": lambda: ClientError({"wanted": 3}),
    "odd": lambda: ClientError({"message": "odd", "thing": object()}),
    "huge": lambda: ClientError({"message": "huge", "thing": "x" * 100_000}),
    "unspeakable": Unspeakable,
    "code": lambda: ClientError("x", code=""),
    "own": lambda: Numbered("own", 409),
}


def predict(kind):
    return ANSWERS[kind]()


@route("/fail")
def fail(kind):
    raise ERRORS[kind]()


@route("/together", batch=True)
def answer_together(kinds):
    return [ANSWERS[kind]() for kind in kinds]
