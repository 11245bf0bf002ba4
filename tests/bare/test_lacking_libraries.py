"""A model file whose library is not installed for the interpreter: what is told can be done as it is told."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.server import panglot

joblib = pytest.importorskip("joblib")
sklearn = pytest.importorskip("sklearn.linear_model")
SETS = [("numpy",), ("numpy", "joblib", "cloudpickle", "loky")]
FIX = "pip install scikit-learn there, or name another --python"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "line.joblib"
    joblib.dump(sklearn.LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]), path)
    return path


@pytest.fixture(
    scope="module", params=[("numpy",), ("numpy", "joblib", "cloudpickle", "loky")], ids=["neither", "joblib alone"]
)
def interpreter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has these libraries of ours and no other."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    [packages] = place.glob("lib/python*/site-packages")
    for name in request.param:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue  # Some builds of joblib bring these along.
        whole = Path(spec.origin).parent
        for folder in (whole, whole.parent / f"{name}.libs"):
            if folder.is_dir():
                (packages / folder.name).symlink_to(folder)
    return str(place / "bin" / "python")


def test_an_estimator_without_scikit_learn(model: Path, interpreter: str) -> None:
    done = panglot("serve", str(model), "--port", "0", "--python", interpreter)
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "scikit-learn" in last
    assert f"is not installed for {interpreter}" in last
    assert last.endswith(f"(fix: {FIX})")
