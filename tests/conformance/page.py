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

Written by `make conformance`; do not edit. Five documents tell those who write scripts what each platform does. Every
feature they promise is a row here, in our words, with the lines of the document it comes from and the tests that
prove it. Platforms whose own server was measured follow: their rows name the part of the server.

- **passes**: every test of the row passed when it last ran. **fails**: one did not.
- **skipped**: a test of the row needs something that was not there; the row says what.
- **not run**: `make conformance` has yet to run it.
- **no test**: nothing proves it; the row says what stands in the way.

The rows are kept in [tests/conformance](../../tests/conformance), and a test names those it proves:
`@pytest.mark.document("tiinfer.07")`. The documents are not part of this repository; `PANGLOT_SEED_DOCS` says where
they lie, and tests that run their listings to the letter are skipped without them.
[The dialects](../dialects/index.md) say what is deliberately different.
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
    parts = [HEAD, _summary(rows)]
    for document in table.documents():
        cells = [row.cells for row in rows if row.feature in document.features]
        parts.append(
            f"## {document.name}\n\n{document.title}.\n\n{_table(COLUMNS if document.file else MEASURED, cells)}"
        )
    return "\n".join(parts)


def _summary(rows: list[Row]) -> str:
    lines = []
    for document in table.documents():
        states = [row.state for row in rows if row.feature in document.features]
        counts = (str(states.count(state) or "") for state in COUNTED)
        lines.append((f"[{document.name}](#{document.name})", str(len(states)), *counts))
    return _table(("document", "features", *COUNTED), lines)


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def without_states(page: str) -> str:
    """A page with what a run decides left out: the summary, and the column of states."""
    lines = (line for line in page.splitlines() if not line.startswith("| ["))
    return "\n".join(re.sub(rf"(?<=\| )({'|'.join(STATES)})(?= \|)", "", line, count=1) for line in lines)
