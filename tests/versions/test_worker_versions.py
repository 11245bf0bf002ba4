"""A worker is the same on every CPython from 3.8 up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import environments, interpreters
from support.server import PACKAGES, ROOT, serving, wait_until
from support.traffic import SOAK

VERSIONS = interpreters.found()
ENDS = {name: VERSIONS[name] for name in (list(VERSIONS) if SOAK else [*VERSIONS][:1] + [*VERSIONS][1:][-1:])}
each_version = pytest.mark.parametrize("python", VERSIONS.values(), ids=VERSIONS.keys())


@each_version
def test_scripts_are_served_the_same_by_every_python(python: str) -> None:
    """Stages, batches, forms, streams and async, all in one server."""
    others = [str(PACKAGES / name) for name in ("batch", "uploads", "stream", "asynchronous")]
    with serving("stages", *others, "--python", python) as server:
        assert server.predict({"value": 21}).json()["value"] == 42
        answer = server.client.post("/models/batch/predict", json=[1.5, "猫", None])
        assert answer.content == '{"value":[1.5,"猫",null],"batch":1}'.encode()
        answer = server.client.post("/models/uploads/predict", files={"image": ("七.png", b"12345", "image/png")})
        assert answer.json() == {"image": {"name": "七.png", "type": "image/png", "size": 5}}
        answer = server.client.post("/models/stream/predict", json={"count": 2})
        assert answer.text == 'data: {"number":0}\n\ndata: {"number":1}\n\n'
        assert server.client.post("/models/asynchronous/predict", json={"id": 5, "sleep": 0}).json() == 5


@each_version
def test_a_row_of_pools_works_on_every_python(python: str, tmp_path: Path) -> None:
    """What goes between pools is large enough for shared memory, and needs no numpy."""
    (tmp_path / "predict.py").write_text(
        "def preprocess(r): return {'n': r['n'], 'bytes': b'x' * 100_000}\n"
        "def predict(v): return (v['n'] + 1, len(v['bytes']))\n"
        "def postprocess(v): return list(v)\n"
    )
    with serving(tmp_path, "--python", python, "--pools", "preprocess=1,postprocess=1") as server:
        assert [server.predict({"n": n}).json() for n in range(5)] == [[n + 1, 100_000] for n in range(5)]
        wait_until(lambda: server.metric("panglot_slots_in_use") == 0)


@pytest.mark.parametrize("python", ENDS.values(), ids=ENDS.keys())
@pytest.mark.timeout(400)
def test_the_workers_own_tests_pass(python: str) -> None:
    """On the oldest and the newest; the suite itself runs on one between, and `make soak` on all."""
    environment = environment_of(python)
    done = subprocess.run(
        [environment, "-m", "pytest", "tests/worker", "-q", "-p", "no:cacheprovider", "-W", "ignore"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def environment_of(python: str) -> str:
    """A virtual environment with what the worker's own tests need, for this interpreter."""
    version = next(version for version, path in VERSIONS.items() if path == python)
    packages = ("pytest", "pytest-timeout", "hypothesis", "typing_extensions")
    return environments.python_with(f"worker-{version}-with-extensions", *packages, base=python)
