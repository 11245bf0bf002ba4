"""The browser of the pages' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.browser import Browser, browsing


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        browser.resize(1280, 900)
        yield browser
