"""`@pytest.mark.document("tiinfer.07")`: ids are checked, and how marked tests went is kept for the page."""

from __future__ import annotations

import pytest

from conformance import page, table

ORDER = {"failed": page.FAILS, "passed": page.PASSES, "skipped": page.SKIPPED}
"""What a test with parameters comes to: the first of these that one of them had."""


def check_marks(items: list[pytest.Item]) -> None:
    """Reports carry the ids, since they cross processes and items do not."""
    known = table.features()
    for item in items:
        ids = [id for mark in item.iter_markers("document") for id in mark.args]
        for id in ids:
            if id not in known:
                raise pytest.UsageError(f"{item.nodeid}: no feature {id!r} in tests/conformance/features.toml")
        if ids:
            item.user_properties.append(("document", ids))


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Keeper(config), "conformance")


class Keeper:
    """Keeps how marked tests went, in the process that hears of all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.outcomes: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if any(name == "document" for name, _ in report.user_properties):
            told = report.when == "call" or report.outcome != "passed"
            if told:
                self.outcomes.setdefault(report.nodeid.partition("[")[0], set()).add(report.outcome)

    def pytest_sessionfinish(self) -> None:
        cache = getattr(self.config, "cache", None)
        if self.outcomes and cache is not None:
            kept = cache.get(table.RESULTS, {})
            for test, outcomes in self.outcomes.items():
                kept[test] = next(ORDER[outcome] for outcome in ORDER if outcome in outcomes)
            cache.set(table.RESULTS, kept)
