"""Arrays in files: what numpy writes is read without numpy and without running anything, and the other way round."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from panglot.errors import StartError
from panglot.tools import npy
from panglot.tools.arrays import Array, of_value
from panglot.tools.check.compare import Tolerance, compare_keys
from support.server import panglot

ARRAYS = {
    "prob": np.array([0.5, -1.25], np.float32),
    "half": np.array([[1.5]], np.float16),
    "class_id": np.array([7]),
    "columns": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "big_endian": np.arange(5, dtype=">i4"),
    "flags": np.array([True, False]),
    "waves": np.array([1 + 2j, -3j], np.complex64),
    "names": np.array(["cat", "größer"]),
    "raw": np.array([b"ab", b"c"]),
    "none": np.zeros((0, 3)),
    "large": np.array([2**63], np.uint64),
}


def same(found: Array, wanted: Any) -> bool:
    return list(found.values()) == np.asarray(wanted).ravel().tolist() and found.shape == wanted.shape


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_dictionaries_of_arrays_are_read(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "saved.npy"
    whole = np.empty((), dtype=object)
    whole[()] = {**ARRAYS, "scalar": np.float32(2.5), "plain": [1, "x", None, {"deep": 2.5}]}
    np.save(path, ARRAYS["prob"])
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }"
    head += b" " * (118 - len(head) - 1) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + pickle.dumps(whole, protocol))
    found = npy.read(path)
    for name, array in ARRAYS.items():
        assert same(found[name], array), name
    assert list(found["scalar"].values()) == [2.5]
    assert found["plain"] == [1, "x", None, {"deep": 2.5}]


def test_what_numpy_saves_is_read(tmp_path: Path) -> None:
    path = tmp_path / "saved.npy"
    np.save(path, ARRAYS)  # type: ignore[arg-type]
    assert all(same(npy.read(path)[name], array) for name, array in ARRAYS.items())
    for array in ARRAYS.values():
        np.save(path, array)
        assert same(npy.read(path)[""], array)


def test_what_is_written_is_read_by_numpy(tmp_path: Path) -> None:
    path = tmp_path / "saved.npy"
    values = {"a": [[1.5, 2], [3, 4]], "b": 7, "c": ["héé", "b"], "d": [True], "e": [], "f": "x"}
    arrays = {name: array for name, value in values.items() if (array := of_value(value)) is not None}
    npy.write(path, arrays)
    found = np.load(path, allow_pickle=True).item()
    assert {name: array.tolist() for name, array in found.items()} == {**values, "b": [7], "f": ["x"]}
    assert npy.read(path) == arrays
    npy.write(path, {})
    assert np.load(path, allow_pickle=True).item() == {}


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/panglot-was-here",)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": Evil()}, "it would import posix.system"),
        ({"a": np.array([Evil()], dtype=object)}, "it would import posix.system"),
        ({"a": Path("x")}, "it would import pathlib"),
        ({"a": np.dtype("f4")}, "a type where a value should be"),
        ([1, 2], "not a dictionary of arrays"),
    ],
)
def test_a_pickle_of_anything_else_is_refused(tmp_path: Path, value: Any, said: str) -> None:
    path = tmp_path / "evil.npy"
    whole = np.empty((), dtype=object)
    whole[()] = value
    np.save(path, whole, allow_pickle=True)
    with pytest.raises(StartError, match=said):
        npy.read(path)
    assert not Path("/tmp/panglot-was-here").exists()


def test_broken_files_are_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "saved.npy"
    np.save(path, ARRAYS)  # type: ignore[arg-type]
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(StartError):
            npy.read(path)
    for place in range(128, len(whole), 3):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        try:
            npy.read(path)
        except StartError:
            continue
    done = panglot("check", str(tmp_path / "none.npy"), str(path))
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)


# Comparing


def differences(left: Any, right: Any, **tolerance: Any) -> dict[str, str]:
    sides = [{"x": Array(array.dtype.str, array.shape, array.tobytes())} for array in (left, right)]
    return {entry.key: entry.differs for entry in compare_keys(*sides, Tolerance(**tolerance)) if entry.differs}


def with_(array: Any, place: tuple[int, int], value: float) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


def test_numbers_within_the_tolerance_agree() -> None:
    array = np.linspace(0, 10, 100, dtype=np.float32)
    assert differences(array, array) == {}
    assert differences(array, array + np.float32(1e-6)) == {}
    assert differences(array, array, atol=0, rtol=0) == {}
    nan = np.array([np.nan, np.inf, 1.0])
    assert differences(nan, nan.copy()) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda array: with_(array, (3, 2), array[3, 2] + 1e-3), r"1 of 12 differ, most at \[3, 2\]: .*off by 0.001"),
        (lambda array: with_(array, (0, 1), np.nan), r"1 of 12 are NaN on one side only, first at \[0, 1\]"),
        (lambda array: with_(array, (1, 1), np.inf), "off by inf"),
        (lambda array: array[None], r"the shape \[4, 3\] against \[1, 4, 3\]"),
        (lambda array: array.astype(np.float64), "float32 against float64"),
    ],
)
def test_what_differs_is_told_with_place_and_size(change: Any, said: str) -> None:
    array = np.random.default_rng(1).random((4, 3), dtype=np.float32)
    found = differences(array, change(array))
    assert list(found) == ["x"]
    assert re.search(said, found["x"]), found


def test_types_may_be_left_aside() -> None:
    array = np.arange(3, dtype=np.float32)
    assert differences(array, array.astype(np.float64), types=False) == {}
    assert differences(array, array.astype(np.int64), types=False) == {}
    assert differences(np.array(["a"]), np.array(["b"]), types=False)


def test_the_command_has_a_report_and_an_exit_code(tmp_path: Path) -> None:
    left, right, other = (str(tmp_path / name) for name in ("a.npy", "b.npy", "c.npy"))
    np.save(left, {"prob": np.array([0.25]), "class_id": np.array([1])})  # type: ignore[arg-type]
    np.save(right, {"prob": np.array([0.2500001]), "class_id": np.array([1])})  # type: ignore[arg-type]
    np.save(other, {"prob": np.array([0.25]), "score": np.array([1])})  # type: ignore[arg-type]
    done = panglot("check", left, right)
    assert done.returncode == 0, done.stderr
    assert "all 2 agree" in done.stdout
    # Tolerance 0 works, and fails honestly.
    done = panglot("check", left, right, "--atol", "0", "--rtol", "0")
    assert done.returncode == 1
    assert "off by 1e-07 (allowed 0)" in done.stdout
    assert "1 of 2 differ" in done.stdout
    done = panglot("check", left, other)
    assert done.returncode == 1
    assert "missing on the right" in done.stdout
    assert "missing on the left" in done.stdout
    np.save(left, {})  # type: ignore[arg-type]
    done = panglot("check", left, left)
    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing to compare" in done.stderr
