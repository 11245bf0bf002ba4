"""Tiers of tests, marks of the conformance page, and the patience of hypothesis."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, settings

# Beside other tests a thought may take long; what is asserted never is a time.
settings.register_profile("beside others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beside others")

if sys.version_info >= (3, 11):  # noqa: UP036  the worker's tests run on older interpreters too
    import tiers
    from conformance import plugin
    from conformance.plugin import pytest_configure
    from support import two_fronts
    from support.two_fronts import pytest_terminal_summary
    from tiers import pytest_addoption, pytest_ignore_collect

    __all__ = [
        "pytest_addoption",
        "pytest_collection_modifyitems",
        "pytest_configure",
        "pytest_ignore_collect",
        "pytest_terminal_summary",
    ]

    def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
        tiers.select(config, items)
        two_fronts.select(items)
        plugin.check_marks(items)
