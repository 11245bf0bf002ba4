"""Lines of the source documents, which lie where PANGLOT_SEED_DOCS says."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from conformance import table


def lines(dialect: str, first: int, last: int) -> str:
    """Some lines of a dialect's document, both ends included, to the letter; skips the test where there is none."""
    where = os.environ.get("PANGLOT_SEED_DOCS")
    if not where:
        pytest.skip("PANGLOT_SEED_DOCS does not say where the source documents are")
    [document] = [document for document in table.documents() if document.name == dialect]
    text = (Path(where) / document.file).read_text(encoding="utf-8").splitlines()
    return "\n".join(text[first - 1 : last]) + "\n"


def code(dialect: str, first: int, last: int, indent: str = "") -> str:
    """The same, moved to a margin."""
    return textwrap.indent(textwrap.dedent(lines(dialect, first, last)), indent)
