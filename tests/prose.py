"""Whether the English pages can be read once and understood: short sentences, and no word that only we know.

`make check` runs it. prose.toml has the words with what to say instead, the pages that must pass, and those that are
made from the program's messages, which must pass too: what is wrong there is put right in the source.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((ROOT / "tests" / "prose.toml").read_text())
WORDS = {re.compile(rf"\b(?:{word})\b", re.IGNORECASE): instead for word, instead in RULES["words"].items()}
NOT_PROSE = re.compile(r"^---\n.*?^---$|^ *```.*?^ *```$|<!--.*?-->|<[^>\n]+>|^\[.*\]: .*$", re.MULTILINE | re.DOTALL)
CODE, LINK = re.compile(r"`[^`]*`"), re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)\s]+\)")
BREAK = re.compile(r"\n\s*\n|\n(?= *[-*|#>]|\d+\. )|\||(?<=[.!?:;])\**\s")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page, without code, comments and addresses."""
    bare = LINK.sub(r"\1", CODE.sub("CODE", NOT_PROSE.sub("", text)))
    yield from (" ".join(part.split()) for part in BREAK.split(bare))


def faults(text: str) -> Iterator[str]:
    """What a reader would stumble over."""
    for sentence in sentences(text):
        if len(sentence.split()) > RULES["longest_sentence"]:
            yield f"{len(sentence.split())} words in one sentence: {sentence[:70]} ..."
        for word, instead in WORDS.items():
            if word.search(sentence):
                yield f"{word.search(sentence)[0]!r}: say {instead}: {sentence[:70]} ..."  # type: ignore[index]


def main() -> int:
    told = {name: list(faults((ROOT / name).read_text())) for name in RULES["rewritten"] + RULES["generated"]}
    shown = [f"{name}: {fault}" for name, every in told.items() for fault in every]
    print("\n".join([*shown, f"prose: {len(told)} pages, {len(shown)} sentences to rewrite"]))
    return bool(shown)


if __name__ == "__main__":
    sys.exit(main())
