"""What the five source documents promise their readers, which tests prove it, and the page that tells.

`features.toml` lists the promises. A test that proves one is marked with its id, `@pytest.mark.document("tiinfer.07")`;
the marks are read from the tests' text, so that reading them costs nothing.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
FEATURES = Path(__file__).with_name("features.toml")
RESULTS = "conformance/results"
"""Where pytest's cache keeps how each marked test went when it last ran."""

PASSES, SKIPPED, NOT_RUN, FAILS, NO_TEST = STATES = "passes", "skipped", "not run", "fails", "no test"
"""From the best to the worst: a feature is as well as the worst of its tests."""

HEAD = """\
# Conformance

Written by `make conformance`; do not edit. Five documents tell those who write scripts what each platform does. Every
feature they promise is a row here, in our words, with the lines of the document it comes from and the tests that
prove it.

- **passes**: every test of the row passed when it last ran. **fails**: one did not.
- **skipped**: a test of the row needs something that was not there. **not run**: `make conformance` has yet to run it.
- **no test**: nothing proves it; the row says why.

The rows are kept in [features.toml](../tests/conformance/features.toml), and a test names those it proves:
`@pytest.mark.document("tiinfer.07")`. The documents are not part of this repository; `PANGLOT_SEED_DOCS` says where
they lie, and tests that run their listings to the letter are skipped without them. [dialects.md](dialects.md) says what
is deliberately different.
"""
COLUMNS = ("", "feature", "lines", "state", "tests")


@dataclass(frozen=True)
class Feature:
    """One promise of a document; `open` says why no test proves it."""

    id: str
    text: str
    lines: str
    open: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last line it comes from."""
        numbers = [int(number) for number in re.findall(r"\d+", self.lines)]
        return min(numbers), max(numbers)


@dataclass(frozen=True)
class Document:
    """A source document: whose it is, what it is called, and the file that holds it."""

    name: str
    title: str
    file: str
    features: tuple[Feature, ...]


def documents() -> list[Document]:
    tables = tomllib.loads(FEATURES.read_text(encoding="utf-8"))
    return [_document(name, table) for name, table in tables.items()]


def _document(name: str, table: dict[str, object]) -> Document:
    rows = table["features"]
    assert isinstance(rows, dict)
    features = tuple(Feature(f"{name}.{number}", **row) for number, row in rows.items())
    return Document(name, str(table["title"]), str(table["file"]), features)


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


# The page


def state(feature: Feature, tests: list[str], results: Mapping[str, str]) -> str:
    if not tests:
        return NO_TEST
    return max((results.get(test, NOT_RUN) for test in tests), key=STATES.index)


def page(results: Mapping[str, str]) -> str:
    """The whole page."""
    proven = proofs()
    parts = [HEAD, _summary(proven, results)]
    for document in documents():
        rows = [_row(feature, proven.get(feature.id, []), results) for feature in document.features]
        parts.append(f"## {document.name}\n\n{document.title}.\n\n{_table(COLUMNS, rows)}")
    return "\n".join(parts)


def _summary(proven: Mapping[str, list[str]], results: Mapping[str, str]) -> str:
    shown = [name for name in STATES if name not in (SKIPPED, NOT_RUN)] + [SKIPPED, NOT_RUN]
    rows = []
    for document in documents():
        states = [state(feature, proven.get(feature.id, []), results) for feature in document.features]
        counts = (str(states.count(name) or "") for name in shown)
        rows.append((f"[{document.name}](#{document.name})", str(len(states)), *counts))
    return _table(("document", "features", *shown), rows)


def _row(feature: Feature, tests: list[str], results: Mapping[str, str]) -> tuple[str, ...]:
    links = "<br>".join(f"[{test.partition('::')[2]}](../{test.partition('::')[0]})" for test in tests)
    number = feature.id.partition(".")[2]
    return number, feature.text, feature.lines, state(feature, tests, results), links or feature.open


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def without_states(page: str) -> str:
    """A page with what a run decides left out: the summary, and the column of states."""
    rows = (line for line in page.splitlines() if not line.startswith("| ["))
    words = "|".join(STATES)
    return "\n".join(re.sub(rf"(?<=\| )({words})(?= \|)", "", row, count=1) for row in rows)
