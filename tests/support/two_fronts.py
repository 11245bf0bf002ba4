"""Test runs in which servers have several fronts, by TEST_FRONTS=2. What needs one front is skipped, and counted."""

from __future__ import annotations

import os

import pytest

FRONTS = os.environ.get("TEST_FRONTS", "")
"""How many fronts a server has that says nothing of them; empty: one."""
REASON = "needs one front: "


def select(items: list[pytest.Item]) -> None:
    """Skip the tests that are marked `one_front`, where servers have several."""
    for item in items:
        mark = item.get_closest_marker("one_front")
        if mark is not None:
            assert mark.args, f"{item.nodeid}: say why it needs one front"
            if FRONTS:
                item.add_marker(pytest.mark.skip(reason=REASON + mark.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how many were skipped for that."""
    if FRONTS:
        skipped = terminalreporter.getreports("skipped")
        number = sum(isinstance(report.longrepr, tuple) and REASON in report.longrepr[2] for report in skipped)
        terminalreporter.write_line(f"servers with {FRONTS} fronts; {number} test(s) need one front and were skipped")
