"""Marks of the conformance page, which the oldest interpreters cannot read, and the patience of hypothesis."""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, settings

# Beside other tests a thought may take long; what is asserted never is a time.
settings.register_profile("beside others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beside others")

if sys.version_info >= (3, 11):  # noqa: UP036  such an interpreter may be an older one
    from conformance.plugin import pytest_collection_modifyitems, pytest_configure

    __all__ = ["pytest_collection_modifyitems", "pytest_configure"]
