"""Scores a text against labels."""

from __future__ import annotations

from typing import Literal, TypedDict

from panglot import ClientError


class Options(TypedDict, total=False):
    top: int
    order: Literal["score", "name"] | None


class Query(TypedDict):
    text: str
    labels: list[str]
    options: Options | None


class Score(TypedDict):
    label: str
    score: float
    rank: int | None


def predict(request: Query) -> list[Score]:
    if not isinstance(request, dict) or not isinstance(request.get("labels"), list):
        raise ClientError("labels must be a list", status=422)
    if request.get("text") == "fail":
        raise RuntimeError("<b>asked</b> to fail")
    text = str(request.get("text"))
    return [
        {"label": str(label), "score": text.count(str(label)) / (len(text) or 1), "rank": None}
        for label in request["labels"]
    ]


def example() -> Query:
    return {"text": "a quick brown fox", "labels": ["fox", "dog"], "options": {"top": 1}}
