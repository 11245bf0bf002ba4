"""When TF_USE_LEGACY_KERAS is set: the package holds a SavedModel, tf-keras is there, and nobody has decided yet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from panglot_worker.compat import keras


@pytest.fixture(autouse=True)
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keras.VARIABLE, "0")
    monkeypatch.delenv(keras.VARIABLE)


def saved(folder: Path, *below: str) -> Path:
    where = folder.joinpath(*below)
    where.mkdir(parents=True, exist_ok=True)
    (where / "saved_model.pb").touch()
    return where / "saved_model.pb"


CASES = {
    "no SavedModel": (False, True, None, None),
    "SavedModel and tf-keras": (True, True, None, "1"),
    "SavedModel without tf-keras": (True, False, None, None),
    "decided by whoever runs it": (True, True, "0", "0"),
}


@pytest.mark.parametrize("name", CASES)
def test_rule(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holds, installed, before, after = CASES[name]
    file = saved(tmp_path, "model", "1") if holds else None
    monkeypatch.setattr(keras, "is_installed", lambda _: installed)
    if before is not None:
        monkeypatch.setenv(keras.VARIABLE, before)
    legacy = keras.Legacy(str(tmp_path), str(tmp_path))
    assert os.environ.get(keras.VARIABLE) == after
    assert legacy.missing == (str(file) if holds and not installed else "")


def test_where_it_is_looked_for(tmp_path: Path) -> None:
    assert keras.saved_model(str(tmp_path)) is None
    saved(tmp_path, ".hidden")
    saved(tmp_path, *"abcdefgh")
    assert keras.saved_model(str(tmp_path)) is None
    file = saved(tmp_path, "z", "model")
    assert keras.saved_model(str(tmp_path / "none"), str(tmp_path)) == str(file)
