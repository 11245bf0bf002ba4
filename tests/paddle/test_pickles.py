"""Pickles from clients: they run whatever their sender wrote, so a script gets them only with --allow-pickle."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panglot_worker.dialects.paddle import arrays, pickles
from support.server import Server, panglot, serving

SCRIPT = """
import argparse
import pickle
import numpy as np


class InferenceEngine:
    def __init__(self, args):
        self.args = args

    def preprocess(self, data_path):
        if data_path.endswith((".npy", ".npz")):
            return np.load(data_path, allow_pickle=True)
        with open(data_path, "rb") as file:
            return pickle.load(file)

    def run(self, x):
        return x

    def postprocess(self, x):
        return {"kind": type(x).__name__}


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-path", default=None)
    return parser.parse_args()


def infer_main(args):
    engine = InferenceEngine(args)
    return engine.postprocess(engine.run(engine.preprocess(args.data_path)))
"""
HARM = Path("/tmp/panglot-paddle-was-here")


class Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {HARM}",)


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    numpy.save(file, value, allow_pickle=True)
    return file.getvalue()


def archive(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file.getvalue()


def headed(description: str, content: bytes = b"", version: int = 1) -> bytes:
    """A .npy file whose head says what it likes."""
    text = f"{{'descr': {description}, 'fortran_order': False, 'shape': ()}}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + content


EVIL = numpy.array([Harm()], dtype=object)
BAD = {
    **{f"protocol {protocol}": ("x", pickle.dumps(Harm(), protocol)) for protocol in range(6)},
    "by its name": ("harmless.pkl", b"whatever"),
    "of objects": ("a.npy", saved(EVIL)),
    "an archive of objects": ("a.npz", archive(**{"a.npy": saved(EVIL)})),
    "torch": ("model.zip", archive(**{"model/data.pkl": pickle.dumps(1)})),
    "another word for objects": ("a.npy", headed("'object'", pickle.dumps(EVIL))),
    "written with an escape": ("a.npy", headed(r"'|\x4f'", pickle.dumps(EVIL))),
    "inside of a record": ("a.npy", headed("[('a', '<i4'), ('b', [('c', '|O')])]", pickle.dumps(EVIL))),
    "in a list by commas": ("a.npy", headed("'i4,O'", pickle.dumps(EVIL))),
    "behind a long head": ("a.npy", headed(" " * 70_000 + "'O'", pickle.dumps(EVIL), 2)),
    "an old one that begins with a number": ("x", b"I0x1\n0" + pickle.dumps(Harm(), 0)),
    "with more behind it": ("x", pickle.dumps(Harm(), 0) + b"and more"),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpickles")
    (folder / "infer.py").write_text(SCRIPT)
    return folder


@pytest.fixture(scope="module")
def server(package: Path) -> Iterator[Server]:
    with serving(package) as server:
        yield server


@pytest.mark.parametrize("case", BAD)
def test_without_the_flag_they_are_refused(server: Server, case: str) -> None:
    name, content = BAD[case]
    answer = server.predict(files={"data": (name, content)})
    assert answer.status_code == 400
    assert "--allow-pickle" in answer.json()["error"]["message"]
    assert not HARM.exists()


def test_arrays_of_numbers_are_no_pickles(server: Server) -> None:
    records = numpy.zeros(2, [("a", "<f4"), ("b", "<i8", (2,)), ("c", "<M8[s]")])
    for array in (numpy.zeros((2, 3), "float32"), numpy.array(["text"]), numpy.array(True), records):
        answer = server.predict(files={"data": ("a.npy", saved(array))})
        assert answer.json() == {"kind": "ndarray"}, answer.text
    assert server.predict(files={"data": ("a.npz", archive(**{"a.npy": saved(1)}))}).json() == {"kind": "NpzFile"}
    broken = server.predict(files={"data": ("a.npy", b"no array")})
    assert (broken.status_code, broken.json()["error"]["message"]) == (400, "data_path is no .npy file")


def test_with_the_flag_a_script_gets_both(package: Path) -> None:
    with serving(package, "--allow-pickle") as server:
        server.wait_log("anybody who may send requests can run code")
        assert server.predict(files={"data": ("a.pkl", pickle.dumps({"x": 1}))}).json() == {"kind": "dict"}
        assert server.predict(content=pickle.dumps([1], 0)).json() == {"kind": "list"}
        objects = numpy.array([{"x": 1}, None], dtype=object)
        assert server.predict(files={"data": ("a.npy", saved(objects))}).json() == {"kind": "ndarray"}


def test_the_flag_is_paddles_alone(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(request):\n    return 1\n")
    done = panglot("serve", str(tmp_path), "--port", "0", "--allow-pickle")
    assert done.returncode == 3
    assert "allow-pickle" in done.stderr


@given(st.binary(max_size=300))
def test_any_bytes_can_be_asked(content: bytes) -> None:
    assert pickles.reaches_import(content) in (True, False)
    assert not arrays.is_plain(arrays.description(content))


@given(st.recursive(st.none() | st.text() | st.integers() | st.binary(), st.lists), st.integers(0, 5))
def test_values_before_an_import_do_not_hide_it(value: Any, protocol: int) -> None:
    assert pickles.reaches_import(pickle.dumps([value, Harm()], protocol))


@pytest.mark.parametrize("text", ["a picture of a cat\n", "images/1.png 7\n", "[1, 2]", "cat,dog\n1,2\n", "你好", ""])
def test_texts_are_no_pickles(text: str) -> None:
    assert not pickles.reaches_import(text.encode())
