"""What platforms promise those who write scripts for them, and which tests prove it.

`features.toml` lists the promises of the five source documents. A platform whose original was measured instead has a
file of its own beside it, such as `hfendpoint.toml`. A test that proves a row is marked with its id,
`@pytest.mark.document("tiinfer.07")`; the marks are read from the tests' text, so that reading them costs nothing.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FEATURES = Path(__file__).with_name("features.toml")
RESULTS = "conformance/results"
"""Where pytest's cache keeps how each marked test went when it last ran."""


@dataclass(frozen=True)
class Feature:
    """One promise of a document, or one row of what was measured.

    `open` says why no test proves it, `needs` what its tests need that CI has not.
    """

    id: str
    text: str
    lines: str
    open: str = ""
    needs: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last line it comes from."""
        numbers = [int(number) for number in re.findall(r"\d+", self.lines)]
        return min(numbers), max(numbers)


@dataclass(frozen=True)
class Document:
    """A source document: its platform, its title, and the file that holds it; empty: an original was measured."""

    name: str
    title: str
    file: str
    features: tuple[Feature, ...]
    listed_in: Path = FEATURES
    """The file of its rows."""


def documents() -> list[Document]:
    others = sorted(file for file in FEATURES.parent.glob("*.toml") if file != FEATURES)
    tables = [(file, tomllib.loads(file.read_text(encoding="utf-8"))) for file in (FEATURES, *others)]
    return [_document(name, table, file) for file, named in tables for name, table in named.items()]


def _document(name: str, table: dict[str, object], listed_in: Path) -> Document:
    rows = table["features"]
    assert isinstance(rows, dict)
    features = tuple(Feature(f"{name}.{number}", **row) for number, row in rows.items())
    return Document(name, str(table["title"]), str(table.get("file", "")), features, listed_in)


def features() -> dict[str, Feature]:
    return {feature.id: feature for document in documents() for feature in document.features}


def proofs() -> dict[str, list[str]]:
    """The tests marked with each id, by their pytest names, in the order of files and lines."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "mark.document(" not in text:
            continue
        for test, id in _marked(ast.parse(text)):
            found.setdefault(id, []).append(f"{file.relative_to(ROOT).as_posix()}::{test}")
    return found


def _marked(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        for mark in getattr(node, "decorator_list", ()):
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.document":
                yield from ((node.name, ast.literal_eval(id)) for id in mark.args)  # type: ignore[attr-defined]


def results() -> dict[str, str]:
    """How each marked test went when it last ran, by its pytest name."""
    file = ROOT / ".pytest_cache" / "v" / RESULTS
    return json.loads(file.read_text()) if file.is_file() else {}
