"""Two tiers of tests: `make test` runs the quick one, `make test-all` the rest as well.

The quick tier is what a contributor waits for: ten minutes on two cores, after a small installation. Everything that
needs a framework, Ray, a browser, another CPython or minutes of its own belongs to the rest.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
QUICK = frozenset(
    {
        "client",
        "contract",
        "documents",
        "e2e",
        "edge",
        "engine",
        "faults",
        "fetching",
        "fuzz",
        "http2",
        "life",
        "models",
        "plain",
        "pools",
        "promises",
        "terminal",
        "unit",
        "v2",
        "web",
        "worker",
    }
)
"""Folders of the quick tier."""
REST = {
    "client/test_lost_connections.py": "cuts connections for many seconds",
    "client/test_restarts.py": "serves every example, frameworks included",
    "v2/test_clients.py": "installs clients of others, and serves an example of every dialect",
    "documents/test_pages.py": "runs every block of every page",
    "documents/test_readmes.py": "runs the examples as their pages say",
    "documents/test_site.py": "builds the site and looks at it in a browser",
    "e2e/test_dialect_from_outside.py": "builds two wheels and an environment for them",
    "e2e/test_wheel.py": "builds a wheel and an environment for it",
    "edge/test_openapi_fuzz.py": "minutes of made-up requests",
    "fetching/test_namespace.py": "a network of its own, for a run of pytest inside of it",
    "pools/test_random_kills.py": "a load, under which workers of every stage are killed",
    "terminal/test_pictures.py": "draws every picture of a terminal anew, among them those of a bench",
}
"""Files of these folders that belong to the rest, and why."""
TWO_FRONTS = frozenset(
    {
        "contract/test_contract.py",
        "edge/test_framing.py",
        "edge/test_leaving.py",
        "edge/test_limits.py",
        "faults/test_deaths.py",
        "fronts/test_jobs.py",
        "fronts/test_without_workers.py",
        "plain",
        "web",
    }
)
"""Folders and files whose tests `make test-all` runs with servers of two fronts too."""
ALL, FRONTS = "all", "fronts"


def is_quick(path: Path) -> bool:
    """Whether a test file belongs to the quick tier."""
    if not path.is_relative_to(TESTS):
        return True
    name = path.relative_to(TESTS)
    return name.parts[0] in QUICK and str(name) not in REST


def runs_with_two_fronts(path: Path) -> bool:
    """Whether the tests of a file run with servers of two fronts too."""
    name = path.relative_to(TESTS)
    return str(name) in TWO_FRONTS or (name.parts[0] in TWO_FRONTS and str(name) not in REST)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=("quick", "rest", FRONTS, ALL), default=ALL, help="which tier of tests to run")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of the other tier before they are imported: what they import may not be installed."""
    tier = config.getoption("--tier")
    if tier == ALL or not collection_path.name.startswith("test_") or collection_path.is_dir():
        return None
    if tier == FRONTS:
        return None if runs_with_two_fronts(collection_path) else True
    if tier == "quick":
        return None if is_quick(collection_path) else True
    return True if is_quick(collection_path) and "mark.rest" not in collection_path.read_text() else None


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out single tests of the other tier: those marked `rest` are no part of the quick one."""
    tier = config.getoption("--tier")
    if tier == ALL:
        return
    chosen, other = [], []
    for item in items:
        is_rest = item.get_closest_marker("rest") is not None
        if tier == FRONTS:
            (other if is_rest else chosen).append(item)
            continue
        quick = is_quick(item.path) and not is_rest
        (chosen if quick == (tier == "quick") else other).append(item)
    config.hook.pytest_deselected(items=other)
    items[:] = chosen
