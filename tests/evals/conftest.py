from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import Server, serving


@pytest.fixture(scope="module")
def rows() -> Iterator[Server]:
    with serving("evals_rows") as server:
        yield server
