"""Makes text of unknown origin safe to show."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from typing import TextIO

UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories that are invisible, or change the look of the text around them."""


def visible(text: str, keep: str = "") -> str:
    """The text with control characters, direction marks and lone surrogates spelt out, except those in `keep`."""
    shown = text
    for character in keep:
        shown = shown.replace(character, "")
    if shown.isprintable():
        return text
    return "".join(
        character if character in keep or not _is_unseen(character) else _spelt(character) for character in text
    )


def brief(text: str, most: int = 400) -> str:
    """The text on one line, without its middle where it is long."""
    # Cut before: spelling out a text of many megabytes takes long. And cut again: spelt out, it may be longer.
    shown = visible(text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}")
    return shown if len(shown) <= most else f"{shown[:most]} ..."


def counted(number: float, noun: str) -> str:
    """A number of things in words: 1 request, 2 requests."""
    shown = number if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun}" if number == 1 else f"{shown} {noun}s"


def at_words(text: str, target: TextIO) -> str:
    """The text, with lines that are wider than the terminal broken between words; unchanged for a file or a pipe.

    A terminal itself breaks lines within words. Words that are wider than a line, such as addresses, stay whole.
    """
    if not target.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (
        textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) or [""]
        if len(line) > width
        else [line]
        for line in text.split("\n")
    )
    return "\n".join("\n".join(broken) for broken in lines)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in UNSEEN


def _spelt(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
