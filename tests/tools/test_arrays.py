"""Arrays in files, read without running anything in them; and how arrays are compared."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from panglot.errors import StartError
from panglot.tools import arrays
from panglot.tools.check.compare import Tolerance, Verdict, compare, flat
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


def same(found: Any, wanted: Any) -> bool:
    return bool((found == wanted).all()) and (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_dictionaries_of_arrays_are_read(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "saved.npy"
    whole = np.empty((), dtype=object)
    whole[()] = {**ARRAYS, "scalar": np.float32(2.5), "plain": [1, "x", None, {"deep": 2.5}]}
    np.save(path, ARRAYS["prob"])
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }"
    head += b" " * (118 - len(head) - 1) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + pickle.dumps(whole, protocol))
    found = arrays.read(path)
    for name, array in ARRAYS.items():
        assert same(found[name], array), name
    assert (found["scalar"], found["scalar"].dtype) == (2.5, np.float32)
    assert found["plain"] == [1, "x", None, {"deep": 2.5}]


def test_what_numpy_saves_is_read(tmp_path: Path) -> None:
    path = tmp_path / "saved.npy"
    np.save(path, ARRAYS)  # type: ignore[arg-type]
    assert all(same(arrays.read(path)[name], array) for name, array in ARRAYS.items())
    for array in ARRAYS.values():
        np.save(path, array)
        assert same(arrays.read(path)[""], array)


def test_what_is_written_is_read_by_numpy(tmp_path: Path) -> None:
    """A single value is an array of one, as scripts give it to reprod_log."""
    path = tmp_path / "saved.npy"
    values = {"a": [[1.5, 2], [3, 4]], "b": 7, "c": ["héé", "b"], "d": [True], "e": [], "f": "x"}
    made = {name: arrays.as_saved(value) for name, value in values.items()}
    arrays.write(path, made)
    found = np.load(path, allow_pickle=True).item()
    assert {name: array.tolist() for name, array in found.items()} == {**values, "b": [7], "f": ["x"]}
    assert all(same(arrays.read(path)[name], array) for name, array in made.items())
    arrays.write(path, {"raw": np.array([b"cnumpy._core.multiarray\n"])})
    assert arrays.read(path)["raw"].tolist() == [b"cnumpy._core.multiarray\n"]
    arrays.write(path, {})
    assert np.load(path, allow_pickle=True).item() == {}


def test_a_file_names_numpy_as_its_first_generation_does(tmp_path: Path) -> None:
    """Numpy 2 reads both names, numpy before 1.26 only the old one: there a script's reprod_log must read it too."""
    arrays.write(tmp_path / "saved.npy", ARRAYS)
    written = (tmp_path / "saved.npy").read_bytes()
    assert b"numpy.core.multiarray" in written
    assert b"numpy._core" not in written


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
        arrays.read(path)
    assert not Path("/tmp/panglot-was-here").exists()


def test_broken_files_are_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "saved.npy"
    np.save(path, ARRAYS)  # type: ignore[arg-type]
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(StartError):
            arrays.read(path)
    for place in range(128, len(whole), 3):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        try:
            arrays.read(path)
        except StartError:
            continue
    done = panglot("check", str(tmp_path / "none.npy"), str(path))
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)


# Comparing


def verdict(left: Any, right: Any, **tolerance: Any) -> Verdict:
    [found] = compare({"x": left}, {"x": right}, Tolerance(**tolerance))
    return found


def differences(left: Any, right: Any, **tolerance: Any) -> dict[str, str]:
    found = verdict(left, right, **tolerance)
    return {found.key: found.differs} if found.differs else {}


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
        (lambda array: array[None], r"shape: \[4, 3\] against \[1, 4, 3\]"),
        (lambda array: array.astype(np.float64), "dtype: float32 against float64"),
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
    assert differences(np.array([True]), np.array([1]), types=False), "a truth is no number"


@pytest.mark.document("paddle.21")
@pytest.mark.parametrize(
    ("left", "right", "what"),
    [
        ({"cat": 3}, {"dog": [3]}, [("cat", "key"), ("dog", "key")]),
        ({"cat": 3}, {"dog": 3}, [("cat", "key"), ("dog", "key")]),
        ({"x": np.array(3)}, {"x": np.array([3])}, [("x", "shape")]),
        ({"x": 3}, {"x": [3]}, [("x", "shape")]),
        ({"x": np.array([3])}, {"x": np.array([3], np.int32)}, [("x", "dtype")]),
        ({"x": 3}, {"x": 3.0}, [("x", "dtype")]),
        ({"x": True}, {"x": 1}, [("x", "dtype")]),
        ({"x": "3"}, {"x": 3}, [("x", "dtype")]),
        ({"x": None}, {"x": 0.0}, [("x", "dtype")]),
        ({"x": np.array([3.0])}, {"x": np.array([[4]])}, [("x", "shape dtype")]),
        ({"x": np.array([3.0])}, {"x": np.array([4])}, [("x", "dtype value")]),
        ({"x": np.array([100_000])}, {"x": np.array([100_001])}, [("x", "value")]),
        ({"x": 2**70}, {"x": 2**70 + 1}, [("x", "value")]),
        ({"x": np.array([2**64 - 1], np.uint64)}, {"x": np.array([0], np.uint64)}, [("x", "value")]),
        ({"x": np.array([complex(np.inf, 1)])}, {"x": np.array([complex(np.inf, 2)])}, [("x", "value")]),
        ({"x": []}, {"y": 1}, [("x", "key"), ("y", "key")]),
        ({"x": {}}, {"x": []}, [("x", "dtype")]),
        ({"x": {"y": []}}, {"x": {}}, [("x.y", "key"), ("x", "key")]),
        ({"x": np.zeros((0, 4))}, {"x": np.zeros((0, 5))}, [("x", "shape")]),
        ({"x": ["a", "b"]}, {"x": ["a"]}, [("x[1]", "key")]),
        ({"x": np.array(["NaT"], "M8[s]")}, {"x": np.array(["NaT"], "M8[s]")}, []),
    ],
)
def test_nothing_passes_that_is_not_the_same(left: Any, right: Any, what: list[tuple[str, str]]) -> None:
    """Which of key, shape, dtype and value differs is said, and the same value is never a difference."""
    found = compare(dict(flat(left)), dict(flat(right)), Tolerance())
    assert [(entry.key, " ".join(entry.differs_in)) for entry in found if entry.differs] == what
    assert all(f"{aspect}: " in entry.differs for entry in found for aspect in entry.differs_in)
    for side in (left, right):
        assert not any(entry.differs for entry in compare(dict(flat(side)), dict(flat(side)), Tolerance()))


def test_lenient() -> None:
    """The only value of each side needs no name, and a number is an array of one; another value is another value."""
    assert not compare({"cat": 3}, {"dog": [3]}, Tolerance(lenient=True))[0].differs
    assert compare({"cat": 3}, {"dog": [4]}, Tolerance(lenient=True))[0].differs_in == ("value",)
    assert compare({"a": 3, "b": 3}, {"a": 3, "c": 3}, Tolerance(lenient=True))[1].differs_in == ("key",)
    assert verdict(np.zeros(2), np.zeros((2, 1)), lenient=True).differs_in == ("shape",)


def test_tolerances_are_for_values() -> None:
    wide = {"atol": 1e9, "rtol": 1e9}
    assert verdict(np.array([1]), np.array([2]), **wide).differs == ""
    assert verdict(np.array([1]), np.array([[2]]), **wide).differs_in == ("shape",)
    assert verdict(np.array([1]), np.array([2.0]), **wide).differs_in == ("dtype",)
    assert verdict(np.array([200], np.uint8), np.array([201], np.uint8), atol=1).differs == "", "a pixel off by one"


@pytest.mark.quiet
def test_a_million_numbers_take_no_time() -> None:
    left = np.random.default_rng(0).random((1000, 1000), dtype=np.float32)
    right = left + np.float32(1e-7)
    began = time.perf_counter()
    found = verdict(left, right)
    alone = time.perf_counter() - began
    began = time.perf_counter()
    assert max(abs(one - other) for one, other in zip(left.ravel().tolist(), right.ravel().tolist(), strict=True))
    assert found.differs == ""
    assert alone < time.perf_counter() - began


WITHOUT = """
import sys
sys.modules["numpy"] = None
from panglot.cli import main
main()
"""


@pytest.mark.parametrize(
    "words",
    [("check", "a.npy", "b.npy"), ("run", ".", "{}", "--save", "x.npy"), ("bench", ".", "{}", "--check")],
    ids=lambda words: words[0],
)
def test_without_numpy_one_line_says_what_to_install(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    [line] = done.stderr.splitlines()
    assert "needs numpy" in line
    assert "pip install 'panglot[arrays]'" in line


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
    done = panglot("check", left, right, "--json")
    assert [row["differs_in"] for row in json.loads(done.stdout)["keys"]] == [[], []]
    np.save(left, {})  # type: ignore[arg-type]
    done = panglot("check", left, left)
    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing to compare" in done.stderr
