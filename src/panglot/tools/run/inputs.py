"""The inputs of a command: from files, folders, globs, JSON, JSON lines, or standard input."""

from __future__ import annotations

import glob
import json
import math
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from panglot import inputs as requests
from panglot.errors import StartError
from panglot.inputs.base import About, ClientRequest, Given
from panglot.inputs.curl_line import how_to, known_example
from panglot.settings import suggestion
from panglot.terminal.text import brief

LONGEST_SHOWN = 200
LINES = (".jsonl", ".ndjson")
SOURCE = (".py", ".pyc", ".toml", ".md")
"""Endings of files that are no inputs, where a whole folder is given."""


@dataclass(frozen=True)
class UnreadableInput:
    """An input that cannot be read, and the reason."""

    name: str
    problem: str


@dataclass(frozen=True)
class OwnExample:
    """The example of a package or a server, used where no input is given."""

    request: ClientRequest
    name: str = "its example"


Input = Given | UnreadableInput


def own_example(about: About, folder: Path | None) -> OwnExample:
    """The example of a package or a server. Raises StartError where there is none that can be sent."""
    request = known_example(about, folder, math.inf)
    if request is None:
        fix = f"name files, folders, globs or JSON such as '{{\"x\": 1}}'; or {how_to(about)}"
        raise StartError("no inputs, and there is no example that could be sent", fix=fix)
    return OwnExample(request)


def request_for(about: About, entry: Given | OwnExample) -> ClientRequest:
    """The request that sends an input. Raises StartError."""
    return entry.request if isinstance(entry, OwnExample) else requests.make_request(about, entry)


def gather(words: Sequence[str], stdin: TextIO | None = None) -> list[Input]:
    """The inputs in their order. Raises StartError when there is none, or a path does not exist."""
    if not words:
        raise StartError(
            "no inputs", fix="name files, folders or globs, JSON such as '{\"x\": 1}', or - for lines of it"
        )
    numbered = enumerate(words, 1)
    inputs = [entry for number, word in numbered for entry in _expand(word, f"input {number}", stdin or sys.stdin)]
    if not inputs:
        raise StartError(f"no inputs in {' '.join(words)}")
    return inputs


def _expand(word: str, name: str, stdin: TextIO) -> Iterator[Input]:
    if word == "-":
        yield from _lines("-", stdin.read())
        return
    # Not `Path.exists`, which raises OSError for a text that is too long for a name of a file. JSON often is.
    path = Path(word)
    if not os.path.exists(word) and _looks_like_json(word):
        yield _value(name, word)
    elif os.path.isdir(word):
        inside = sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        for entry in inside:
            if entry.suffix not in SOURCE:
                yield from _file(entry)
    elif os.path.exists(word):
        yield from _file(path)
    else:
        yield from _matches(word)


def _looks_like_json(word: str) -> bool:
    """Whether a word begins like an object or a list, or is another JSON value: a number, true, "text"."""
    if word.lstrip()[:1] in ("{", "["):
        return True
    try:
        json.loads(word)
    except ValueError:
        return False
    return True


def _matches(pattern: str) -> Iterator[Input]:
    if not glob.has_magic(pattern):
        folder = Path(pattern).parent
        near = [str(entry) for entry in folder.iterdir()] if os.path.isdir(folder) else []
        fix = suggestion(pattern, near) or _as_text(pattern)
        raise StartError(f"the input {brief(pattern, LONGEST_SHOWN)} does not exist", fix=fix)
    names = sorted(glob.glob(pattern, recursive=True))
    if not names:
        raise StartError(f"no file matches {pattern}")
    for name in names:
        if Path(name).is_file():
            yield from _file(Path(name))


def _as_text(word: str) -> str:
    """How to send a word as a text; empty where it looks more like the name of a file."""
    if "/" in word or (" " not in word and Path(word).suffix):
        return ""
    return f"a text is JSON, in quotes: {shlex.quote(json.dumps(brief(word, LONGEST_SHOWN), ensure_ascii=False))}"


def _file(path: Path) -> Iterator[Input]:
    try:
        if path.suffix == ".json":
            yield _value(str(path), path.read_text(encoding="utf-8"))
        elif path.suffix in LINES:
            yield from _lines(str(path), path.read_text(encoding="utf-8"))
        else:
            # Opened only to see that it can be read: the request reads it when it is sent.
            with path.open("rb"):
                yield Given(str(path), file=path)
    except (OSError, UnicodeDecodeError) as error:
        yield UnreadableInput(str(path), getattr(error, "strerror", "") or f"not UTF-8: {error}")


def _lines(name: str, text: str) -> Iterator[Input]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _value(f"{name}:{number}", line)


def _value(name: str, text: str) -> Input:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        return UnreadableInput(name, f"not JSON: {error}")
    return Given(name, value=value)
