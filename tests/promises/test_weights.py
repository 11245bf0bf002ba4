"""The promise: weights that cannot be loaded are a clear failure of the start, and the server itself opens none."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from support.server import panglot, serving

SCRIPT = """
import pathlib
import pickle

class Model:
    def load(self):
        self.factor = pickle.loads((pathlib.Path(__file__).parent / "weights.pkl").read_bytes())["factor"]

    def predict(self, item):
        return item * self.factor
"""
GOOD = pickle.dumps({"factor": 3})
BAD = {
    "missing": (None, "FileNotFoundError"),
    "empty": (b"", "EOFError"),
    "truncated": (GOOD[:-4], "UnpicklingError|EOFError"),
    "no pickle": (b"\x89PNG\r\n", "UnpicklingError|ValueError"),
    "something else": (pickle.dumps([1, 2]), "TypeError"),
}


class Evil:
    """Says where it was unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"echo $PPID >> {self.file}",)


@pytest.mark.parametrize(("weights", "error"), BAD.values(), ids=BAD)
def test_weights_that_cannot_be_loaded(tmp_path: Path, weights: bytes | None, error: str) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    if weights is not None:
        (tmp_path / "weights.pkl").write_bytes(weights)
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert any(word in done.stderr for word in error.split("|")), done.stderr
    assert "model.py" in done.stderr, "the script's own traceback says where"


def test_the_server_never_unpickles(tmp_path: Path) -> None:
    """What an evil file does happens in the process of the script that opened it, and nowhere if none did."""
    folder, trace = tmp_path / "package", tmp_path / "trace"
    folder.mkdir()
    (folder / "model.py").write_text("def predict(item):\n    return item\n")
    (folder / "weights.pkl").write_bytes(pickle.dumps(Evil(trace)))
    assert panglot("inspect", str(folder)).returncode == 0
    with serving(folder) as server:
        assert server.predict(1).json() == 1
    assert not trace.exists()
    (folder / "model.py").write_text(SCRIPT.replace('["factor"]', ""))
    with serving(folder) as server:
        (worker,) = server.workers()
        assert trace.read_text().split() == [str(worker.pid)]
