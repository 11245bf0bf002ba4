"""docs/reference/conformance.md says what the marks on tests say, and no feature of the documents is forgotten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import page, table
from support import documents

PROOFS, FEATURES = table.proofs(), table.features()


def test_marks_name_features_that_are_listed() -> None:
    assert set(PROOFS) - set(FEATURES) == set()


def test_every_feature_has_a_test_or_a_reason() -> None:
    """Never both: who writes the test takes the reason away."""
    forgotten = [id for id, feature in FEATURES.items() if bool(feature.open) == (id in PROOFS)]
    assert forgotten == []


def test_every_row_that_the_page_shows_without_evidence_says_what_stands_in_the_way() -> None:
    shown = page.rows({}, page.FILE.read_text(encoding="utf-8"))
    bare = [row.feature for row in shown if row.state in (page.SKIPPED, page.NO_TEST)]
    silent = [feature.id for feature in bare if len(feature.open or feature.needs) < 20]
    assert silent == [], f"give them `open` or `needs`, or write the page where {documents.VARIABLE} is set"


def test_the_page_is_up_to_date() -> None:
    written = page.without_states(page.FILE.read_text(encoding="utf-8"))
    due = page.without_states(page.render(page.rows({})))
    assert written == due, "run `make conformance`, or tests/conformance/write.py"


def test_states() -> None:
    """The worst of a row's tests counts; where one has not run, the page keeps what it showed."""
    id, tests = next((id, tests) for id, tests in PROOFS.items() if len(tests) > 1)

    def state(results: dict[str, str], before: str = "") -> str:
        return next(row.state for row in page.rows(results, before) if row.feature.id == id)

    well = dict.fromkeys(tests, page.PASSES)
    assert state(well) == page.PASSES
    assert state({**well, tests[-1]: page.SKIPPED}) == page.SKIPPED
    assert state({**well, tests[0]: page.FAILS}) == page.FAILS
    assert state({}) == page.NOT_RUN
    assert state({}, page.render(page.rows(well))) == page.PASSES


@pytest.mark.rest("the source documents")
@pytest.mark.parametrize(
    "document", [document for document in table.documents() if document.file], ids=lambda document: document.name
)
def test_lines_are_those_of_the_document(document: table.Document) -> None:
    length = len(documents.text(document.name).splitlines())
    spans = [feature.span for feature in document.features]
    assert all(1 <= first <= last <= length for first, last in spans)
    assert spans == sorted(spans, key=lambda span: span[0]), "rows are in the document's order"


def test_where_the_documents_lie_is_read_in_one_place() -> None:
    """And by what skips tests only: what a test does hangs on it nowhere else."""
    own = {"tests/support/documents.py", "tests/conformance/page.py", "tests/unit/test_conformance.py"}
    files = (file for file in (table.ROOT / "tests").rglob("*.py") if documents.VARIABLE in file.read_text())
    assert {file.relative_to(table.ROOT).as_posix() for file in files} <= own


@pytest.mark.rest("every framework that a document names")
def test_the_documents_add_tests_and_take_none_away() -> None:
    """The same tests are there with and without; only some are skipped."""
    signs = ("documents", "document_script", "document_listings")
    text = {file: file.read_text() for file in sorted((table.ROOT / "tests").rglob("test_*.py"))}
    files = [str(file) for file, code in text.items() if any(sign in code for sign in signs)]

    def collected(where: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *files]
        env = {**os.environ, documents.VARIABLE: where}
        done = subprocess.run(command, cwd=table.ROOT, env=env, capture_output=True, text=True, check=True)
        return [line for line in done.stdout.splitlines() if "::" in line]

    assert collected("") == collected("/nowhere") != []


def test_an_unknown_id_is_an_error(tmp_path: Path) -> None:
    file = table.ROOT / "tests" / "conftest.py"
    (tmp_path / "conftest.py").write_text(file.read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = document\n")
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.document('acme.99')\ndef test_it(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "PYTHONPATH": str(table.ROOT / "tests")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no feature 'acme.99'" in done.stderr
