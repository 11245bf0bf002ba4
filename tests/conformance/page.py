"""docs/reference/conformance.md: a row per feature, with its state when its tests last ran."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance import table

FILE = table.ROOT / "docs" / "reference" / "conformance.md"
PASSES, SKIPPED, NOT_RUN, FAILS, NO_TEST = STATES = "passes", "skipped", "not run", "fails", "no test"
"""From the best to the worst: a feature is as well as the worst of its tests."""

HEAD = """\
# Conformance

<!-- Written by `make conformance`; do not edit. -->

Each platform promises something to the people who write scripts for it. Here you see these promises, in our words, and
the tests that prove that Panglot keeps them. Every dialect has a table, and every row is one promise.

- The first five dialects have a document of their platform. The column *lines* says where it makes the promise.
- For the others, the platform's own server was installed and measured. That of PAI-EAS is closed: its rows follow its
  public documents and scripts. The column *of* says which part a row is about.

| state | meaning |
| --- | --- |
| passes | every test of the row passed when it last ran |
| fails | at least one test failed |
| skipped | a test needs something that was not there; the row says what |
| not run | `make conformance` has not run it yet |
| no test | nothing proves it; the row says why |

What a dialect does differently on purpose, and what it does not support, is on its own page.
"""
PROOF = """\
## How it is proven

The tests of a row are in its last column. The first five platforms' documents are not part of this repository, so
tests that run their listings word for word are skipped where these documents are absent.
[CONTRIBUTING](../../CONTRIBUTING.md) says how this page is made.
"""
COLUMNS = ("", "feature", "lines", "state", "tests")
MEASURED = ("", "feature", "of", "state", "tests")
COUNTED = (PASSES, FAILS, NO_TEST, SKIPPED, NOT_RUN)
ROW = re.compile(rf"\| (?P<number>\w+) \| .* \| (?P<state>{'|'.join(STATES)}) \| (?P<proof>.*) \|")


@dataclass(frozen=True)
class Row:
    """A feature on the page; `proof` is what its last column holds: its tests, or why there are none."""

    feature: table.Feature
    state: str
    proof: str

    @property
    def cells(self) -> tuple[str, ...]:
        return self.feature.id.partition(".")[2], self.feature.text, self.feature.lines, self.state, self.proof


def rows(results: Mapping[str, str], before: str = "") -> list[Row]:
    """Every feature. One whose tests have not run here keeps the state the page showed for the same tests before."""
    shown = dict(_shown(before))
    proven = table.proofs()
    found = []
    for feature in table.features().values():
        tests = proven.get(feature.id, [])
        needs = [f"not run by CI, which has no {feature.needs}"] if feature.needs else []
        proof = "<br>".join([_link(test) for test in tests] + needs) or feature.open
        states = [results.get(test, NOT_RUN) for test in tests] or [NO_TEST]
        state = max(states, key=STATES.index)
        if state == NOT_RUN:
            state = shown.get((feature.id, proof), state)
        found.append(Row(feature, state, proof))
    return found


def _shown(page: str) -> Iterator[tuple[tuple[str, str], str]]:
    document = ""
    for line in page.splitlines():
        if line.startswith("## "):
            document = line[3:]
        elif found := ROW.fullmatch(line):
            yield (f"{document}.{found['number']}", found["proof"]), found["state"]


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name}](../../{file})"


# Rendering


def render(rows: list[Row]) -> str:
    """The whole page."""
    parts = [HEAD, _summary(rows), PROOF]
    for document in table.documents():
        cells = [row.cells for row in rows if row.feature in document.features]
        columns = COLUMNS if document.file else MEASURED
        parts.append(f"## {document.name}\n\n{document.title}.\n\n{_links(document)}\n\n{_table(columns, cells)}")
    return "\n".join(parts)


def _links(document: table.Document) -> str:
    """Where to read about a dialect, and where its rows and its tests are."""
    name, rows = document.name, document.listed_in.relative_to(table.ROOT)
    pages = f"[the dialect](../dialects/{name}.md), [coming from this platform](../coming-from/{name}.md)"
    return f"Read more: {pages}. Evidence: [its rows](../../{rows}), [its tests](../../tests/{name})."


def _summary(rows: list[Row]) -> str:
    lines = []
    for document in table.documents():
        states = [row.state for row in rows if row.feature in document.features]
        counts = (str(states.count(state) or "") for state in COUNTED)
        page = f"[{document.name}](../dialects/{document.name}.md)"
        lines.append((page, f"[{len(states)} rows](#{document.name})", *counts))
    return _table(("dialect", "promises", *COUNTED), lines)


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def without_states(page: str) -> str:
    """A page with what a run decides left out: the summary, and the column of states."""
    lines = (line for line in page.splitlines() if not line.startswith("| ["))
    return "\n".join(re.sub(rf"(?<=\| )({'|'.join(STATES)})(?= \|)", "", line, count=1) for line in lines)
