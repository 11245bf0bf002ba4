"""Servers that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import Server, serving


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    """A script that gets the text of the body."""
    with serving("azureml_plain") as server:
        yield server


@pytest.fixture(scope="module")
def raw() -> Iterator[Server]:
    """A script that gets the request, in an interpreter without Flask."""
    with serving("azureml_raw") as server:
        yield server
