"""Changing a module at its first import, however scripts search for it before."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from panglot_worker.compat.importing import after_import

numbers = itertools.count()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that was never imported, with a module `inner`; what was changed for its import is undone."""
    folder = tmp_path / f"sought_package_{next(numbers)}"
    folder.mkdir()
    (folder / "__init__.py").write_text("value = 1\n")
    (folder / "inner.py").write_text("value = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    yield folder
    sys.meta_path[:] = finders
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


@pytest.mark.parametrize("inner", ["", ".inner"])
def test_a_module_that_was_only_searched_for_is_changed_when_it_is_imported(package: Path, inner: str) -> None:
    name = package.name + inner
    changed: list[ModuleType] = []
    finders = len(sys.meta_path)
    after_import(name, changed.append)
    for _ in range(2):
        assert importlib.util.find_spec(name) is not None
    assert not changed
    module = importlib.import_module(name)
    assert changed == [module]
    assert len(sys.meta_path) == finders


def test_a_search_finds_the_files_of_the_module(package: Path) -> None:
    after_import(package.name, lambda module: None)
    spec = importlib.util.find_spec(package.name)
    assert spec is not None
    assert spec.origin == str(package / "__init__.py")
    assert spec.loader is not None
    assert spec.loader.get_source(package.name) == "value = 1\n"  # type: ignore[attr-defined]
    module = importlib.import_module(package.name)
    assert module.__loader__ is module.__spec__.loader  # type: ignore[union-attr]
    assert type(module.__loader__) is type(importlib.import_module(package.name + ".inner").__loader__)


def test_a_module_whose_first_import_fails_is_changed_by_the_next(package: Path) -> None:
    changed: list[ModuleType] = []
    after_import(package.name, changed.append)
    (package / "__init__.py").write_text("raise ImportError('not yet')\n")
    with pytest.raises(ImportError, match="not yet"):
        importlib.import_module(package.name)
    assert not changed
    (package / "__init__.py").write_text("value = 'now it works'\n")
    assert changed == [importlib.import_module(package.name)]


def test_several_changes_of_a_module_are_made_in_their_order(package: Path) -> None:
    said: list[str] = []
    after_import(package.name, lambda module: said.append("first"))
    after_import(package.name, lambda module: said.append("second"))
    importlib.util.find_spec(package.name)
    importlib.import_module(package.name)
    assert said == ["first", "second"]


def test_a_module_that_is_not_installed_is_not_found() -> None:
    after_import("panglot_has_no_such_module", lambda module: None)
    try:
        assert importlib.util.find_spec("panglot_has_no_such_module") is None
        with pytest.raises(ModuleNotFoundError, match="panglot_has_no_such_module"):
            importlib.import_module("panglot_has_no_such_module")
    finally:
        del sys.meta_path[0]
