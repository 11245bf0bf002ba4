"""A value that does not fit its hint: where, and why."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

from panglot_worker.errors import ClientError

Key = Union[str, int]
Wrong = Tuple[Tuple[Key, ...], str]
"""The place of a value in the request, and its fault."""

MOST = 50
"""The most wrong values of one request that are reported."""
LONGEST, LONGEST_PATH = 8192, 400
"""The most characters that are reported of all wrong values together, and of one path."""


class Misfit(Exception):
    """One value, or several inside of it, do not fit. Paths grow as the error passes the containers."""

    def __init__(self, message: str = "", wrong: Optional[List[Wrong]] = None) -> None:
        super().__init__(message)
        self.wrong: List[Wrong] = [((), message)] if wrong is None else wrong


class Gathering:
    """The wrong values of one container, gathered while its other values are read."""

    def __init__(self) -> None:
        self.wrong: List[Wrong] = []

    def add(self, key: Key, misfit: Misfit) -> None:
        self.wrong += [((key, *path), message) for path, message in misfit.wrong[: MOST - len(self.wrong)]]

    def say(self, key: Key, message: str) -> None:
        if len(self.wrong) < MOST:
            self.wrong.append(((key,), message))

    @property
    def full(self) -> bool:
        return len(self.wrong) >= MOST

    def misfit(self) -> Misfit:
        return Misfit(wrong=self.wrong)


class InvalidInput(ClientError):
    """A request with fields that do not fit the script's hints; `fields` is sent along with the message."""

    def __init__(self, misfit: Misfit) -> None:
        self.fields = shown_fields(misfit.wrong)
        super().__init__({"message": headline(self.fields), "fields": self.fields}, 422, "invalid_input")


def shown_fields(wrong: List[Wrong]) -> List[Dict[str, str]]:
    """The wrong values as a client reads them; very long lists are cut."""
    fields: List[Dict[str, str]] = []
    characters_left = LONGEST
    for path, message in wrong:
        fields.append({"path": shown_path(path), "message": message})
        characters_left -= len(fields[-1]["path"]) + len(message)
        if characters_left < 0:
            break
    return fields


def shown_path(path: Tuple[Key, ...]) -> str:
    """A path as a client reads it: `boxes[2].label`; empty for the whole body."""
    text = ""
    for key in path[:70]:
        if isinstance(key, int):
            text += "[%d]" % key
        elif key.isidentifier() and len(key) <= 80:
            text += "." + key if text else key
        else:
            text += "[%s]" % quoted(key)
    return text if len(text) <= LONGEST_PATH else "..." + text[-LONGEST_PATH:]


def headline(fields: List[Dict[str, str]]) -> str:
    """One sentence for people who read only the message."""
    first, more = fields[0], len(fields) - 1
    text = "%s %s" % (first["path"] or "the body", first["message"])
    if not more:
        return text
    return "%s (and %s%d more, see fields)" % (text, "at least " if more + 1 >= MOST else "", more)


def quoted(text: str) -> str:
    """A text of a stranger in quotes, cut when it is long."""
    import json

    return json.dumps(text if len(text) <= 60 else text[:57] + "...", ensure_ascii=False)


def shown(value: Any) -> str:
    """A value that was sent, in few words."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (int, float)):
        return repr(value)[:40]
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, dict) else "a file" if hasattr(value, "bytes") else type(value).__name__


def must_be(expected: str, value: Any) -> Misfit:
    return Misfit("must be %s, not %s" % (expected, shown(value)))
