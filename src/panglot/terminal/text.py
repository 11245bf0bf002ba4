"""Making text of unknown origin fit to be shown."""

from __future__ import annotations

import unicodedata

UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories that show as nothing, or change how the text around them shows."""


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
    shown = visible(text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}")
    return shown if len(shown) <= most else f"{shown[:most]} ..."


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in UNSEEN


def _spelt(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
