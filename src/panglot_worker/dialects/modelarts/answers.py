"""The platform's error bodies."""

from __future__ import annotations

import html
import json
from http import HTTPStatus
from typing import Any, Dict

from panglot_worker.dialects.base import Answer

JSON = "application/json"


def page(status: int, sentence: str) -> Answer:
    """The page of the web framework."""
    phrase = HTTPStatus(status).phrase
    words = (status, phrase, phrase, html.escape(sentence))
    text = "<!doctype html>\n<title>%d %s</title>\n<h1>%s</h1>\n<p>%s</p>\n" % words
    return Answer("text/html", text.encode("utf-8"), status)


def parsed_error(code: str, status: int) -> Answer:
    """MR.0101 and MR.0105, of the engines whose requests are parsed for the script."""
    message = {"MR.0101": "The input parameter is invalid", "MR.0105": "Recognition failed"}[code]
    return _json({"erno": code, "msg": message, "words_result": {}}, status)


def raw_error(code: str, status: int, info: str) -> Answer:
    """PY.0101 and PY.0105, of the engines whose scripts get the body as bytes."""
    message = {"PY.0101": "The input data is invalid", "PY.0105": "Predict failed"}[code]
    return _json({"erno": code, "msg": message, "error_info": info}, status)


def _json(value: Dict[str, Any], status: int) -> Answer:
    return Answer(JSON, json.dumps(value).encode("ascii"), status)


def with_reason(answer: Answer, reason: str) -> Answer:
    """The answer with a header that says why, for development."""
    text = reason.encode("ascii", "backslashreplace").decode("ascii")
    shown = "".join(letter if letter.isprintable() else " " for letter in text).encode("ascii", "backslashreplace")
    return answer._replace(headers=("x-panglot-error: " + " ".join(shown.decode("ascii").split())[:1000],))
