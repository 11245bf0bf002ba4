"""Marks of the conformance page. The worker's own tests also run on interpreters that cannot read it."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):  # noqa: UP036  such an interpreter may be an older one
    from conformance.plugin import pytest_collection_modifyitems, pytest_configure

    __all__ = ["pytest_collection_modifyitems", "pytest_configure"]
