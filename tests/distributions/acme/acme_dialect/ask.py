"""How an input becomes a question: JSON as it is, a file as its text."""

from __future__ import annotations

from panglot.inputs.base import About, Ask, Given, Json


def ask(about: About, given: Given) -> Ask:
    value = given.value if given.file is None else {"question": given.file.read_text()}
    return Ask(about.path, Json(value))
