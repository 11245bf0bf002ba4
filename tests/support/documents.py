"""The source documents, which lie where PANGLOT_SEED_DOCS says. This file alone reads that variable.

Where they lie adds tests and takes none away: without them those that need them are skipped, and all others run.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from conformance import table

VARIABLE = "PANGLOT_SEED_DOCS"
WITHOUT = f"{VARIABLE} does not say where the source documents are"
needed = pytest.mark.skipif(not os.environ.get(VARIABLE), reason=WITHOUT)
"""Marks tests that read them."""


def document(dialect: str) -> Path:
    """The file of a dialect's document; skips the test where there is none."""
    where = os.environ.get(VARIABLE)
    if not where:
        pytest.skip(WITHOUT)
    [found] = [document for document in table.documents() if document.name == dialect]
    return Path(where) / found.file


def text(dialect: str) -> str:
    """The whole of a dialect's document; skips the test where there is none."""
    return document(dialect).read_text(encoding="utf-8")


def lines(dialect: str, first: int, last: int) -> str:
    """Some lines of a dialect's document, both ends included, to the letter; skips the test where there is none."""
    return "\n".join(text(dialect).splitlines()[first - 1 : last]) + "\n"


def code(dialect: str, first: int, last: int, indent: str = "") -> str:
    """The same, moved to a margin."""
    return textwrap.indent(textwrap.dedent(lines(dialect, first, last)), indent)
