"""Bars that scripts draw again and again are one line of the log, or none, however their pieces come."""

from __future__ import annotations

import pytest

from panglot.engine.processes.output import ScriptOutput

BLANK = " " * 80
CASES = {
    "Spark wipes its bar out, and a line follows": (
        ["\r[Stage 0:>  (0 + 1) / 12]", "\r[Stage 0:=> (6 + 1) / 12]", f"\r{BLANK}\r", "a line\n"], ["a line"],
    ),
    "the last of a bar stays": (["\r 1/10", "\r 9/10", "\r10/10", "\n"], ["10/10"]),
    "its end comes alone": (["\r 1/10\r", "\r10/10", "\r", "\n", "after\n"], ["10/10", "after"]),
    "lines that end as those of Windows": (["one\r\n", "two\r", "\nthree\r\n"], ["one", "two", "three"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_of_a_bar(name: str) -> None:
    pieces, expected = CASES[name]
    lines: list[str] = []
    output = ScriptOutput(lines.append, lambda size: None, lambda: 0.0, longest=1000, rate=100_000)
    for piece in pieces:
        output.data_received(piece.encode())
    assert [line.rstrip() for line in lines] == expected
