"""Servers of the dialect `atlas`, which uses all that a contract can say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.desk import install
from support.server import ROOT, Server, serving

ATLAS = ROOT / "tests" / "distributions" / "atlas"


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes packages of the atlas by name, in a folder beside which the dialect is installed."""
    folder = tmp_path_factory.mktemp("atlas")
    install(ATLAS, folder / "outside")

    def make(name: str) -> Path:
        """The folder of a package."""
        package = folder / name
        package.mkdir(parents=True)
        (package / "atlas.py").write_text("def answer(told):\n    return told\n")
        return package

    return make


@pytest.fixture(scope="module")
def server(atlas: Callable[..., Path]) -> Iterator[Server]:
    """Two models of the atlas; the first is the default. A plain one is served beside them."""
    first, second = atlas("first"), atlas("second")
    plain = f"plain={ROOT / 'tests' / 'packages' / 'function'}"
    env = {"PYTHONPATH": str(first.parent / "outside")}
    with serving(first, f"second={second}", plain, env=env) as running:
        yield running
