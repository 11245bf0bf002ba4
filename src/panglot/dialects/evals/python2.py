"""Sources that only Python 2 can read: the lines to change, and what to write instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from panglot.errors import StartError, near
from panglot_worker.files.package_files import content_if_any

MOST_LINES = 30
LARGEST, LONGEST_LINE = 1 << 20, 1000
"""Bytes of a source that is looked at line by line, and characters of its lines: no person wrote longer ones."""
TEXT = re.compile(
    r"""[uUbBrR]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|\#[^\n]*""", re.DOTALL
)
START = r"(?:^|[:;])\s*"


class Construct(NamedTuple):
    pattern: re.Pattern[str]
    name: str
    instead: str


USUAL = (
    Construct(re.compile(START + r"print(?:\s+[^\s(=.,)\]]|\s*>>|\s*['\"])"), "print statement", "print(...)"),
    Construct(
        re.compile(r"\bexcept\s+(?:[\w.]+|\([^()]*\))\s*,\s*\w+\s*:"), "except with a comma", "except Error as name:"
    ),
    Construct(re.compile(r"\braise\s+[\w.]+\s*,"), "raise with a comma", "raise Error(message)"),
    Construct(re.compile(r"`"), "backquotes", "repr(...)"),
    Construct(re.compile(r"<>"), "the operator <>", "!="),
    Construct(re.compile(START + r"exec(?:\s+[^\s(=.,)\]]|\s*['\"])"), "exec statement", "exec(...)"),
    Construct(
        re.compile(r"(?<![\w.])(?:0[0-7]+(?![\w.])|(?:0[xX][0-9a-fA-F]+|\d+)[lL]\b)"),
        "a number of Python 2",
        "0o777 for 0777, 10 for 10L",
    ),
    Construct(re.compile(r"\b[uU][rR]['\"]"), "a ur string", 'r"..."'),
)
"""The usual differences to Python 3. The interpreter's own message tells the rest."""


def refusal(file: Path, error: SyntaxError) -> StartError:
    """The error for a source that does not parse: every line to change, and how."""
    text = content_if_any(file, LARGEST).decode("utf-8", "replace")
    lines = text.splitlines()
    # Sources with longer lines are generated: they are not searched, and the interpreter's message has to do.
    offending = offences(text) if max(map(len, lines), default=0) <= LONGEST_LINE else []
    problem = "this is Python 2, which Python 3 does not read; change these lines:"
    if not offending:
        offending = [(error.lineno or 1, str(error.msg))]
        problem = "Python 3 does not read this, which may be Python 2; it stops here:"
    shown = [problem]
    for line, what in offending[:MOST_LINES]:
        source = lines[line - 1].strip()[:LONGEST_LINE] if line <= len(lines) else ""
        shown.append(f"  {near(str(file))}:{line}: {source}\n      {what}")
    if len(offending) > MOST_LINES:
        shown.append(f"  and {len(offending) - MOST_LINES} more")
    return StartError("\n".join(shown), file=str(file), line=offending[0][0])


def offences(text: str) -> list[tuple[int, str]]:
    """Line numbers with what stands there and what to write instead."""
    offending: list[tuple[int, str]] = []
    for number, line in enumerate(masked(text).split("\n"), 1):
        offending += [
            (number, f"{construct.name}: write {construct.instead}")
            for construct in USUAL
            if construct.pattern.search(line)
        ]
    return offending


def masked(text: str) -> str:
    """The text with blanks in place of comments and of the inside of strings. Every line keeps its number."""

    def blank(match: re.Match[str]) -> str:
        whole = match[0]
        if whole.startswith("#"):
            return ""
        # The prefix stays: `ur` is itself one of the things to report.
        prefix = whole[: len(whole) - len(whole.lstrip("uUbBrR"))]
        inside = "".join("\n" if character == "\n" else " " for character in whole[len(prefix) + 1 : -1])
        return f'{prefix}"{inside}"'

    return TEXT.sub(blank, text.replace("\r\n", "\n"))
