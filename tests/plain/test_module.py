"""The module `panglot` as scripts import it: in a worker, in an editor, in a unit test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import interpreters
from support.server import PACKAGES, panglot, serving

NAMES = "ClientError, File, RequestInfo, Response, request, requests, route"
VERSIONS = interpreters.found()
UNIT_TEST = f"""
import sys
sys.path.insert(0, {str(PACKAGES / "answers")!r})
sys.modules["numpy"] = sys.modules["PIL"] = __import__("types").SimpleNamespace(Image=None)
from panglot import {NAMES}
import model, panglot_worker
assert model.predict("created").status == 201
assert model.predict("file").name == "report.csv"
try:
    model.fail("text")
except ClientError as error:
    assert (error.status, error.code, str(error)) == (404, "unknown_thing", "no such thing")
try:
    request()
except RuntimeError as error:
    print(error)
print("asyncio" in sys.modules, "click" in sys.modules)
"""


@pytest.mark.rest("other CPythons")
@pytest.mark.parametrize("python", VERSIONS.values(), ids=VERSIONS.keys())
def test_a_unit_test_runs_with_the_shims_in_any_interpreter(python: str) -> None:
    environment = {**os.environ, "PYTHONPATH": panglot("shims", "plain").stdout.strip()}
    done = subprocess.run([python, "-c", UNIT_TEST], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("there is no request here")


def test_an_installed_panglot_gives_the_same_names_and_stays_light() -> None:
    done = subprocess.run([sys.executable, "-c", UNIT_TEST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "False False"


def test_in_a_worker_its_own_module_wins(tmp_path: Path) -> None:
    """This interpreter has Panglot installed."""
    (tmp_path / "model.py").write_text("import panglot\n\ndef predict(item):\n    return panglot.__file__\n")
    with serving(tmp_path) as server:
        assert server.predict(1).json().endswith("plain/platform/always/panglot/__init__.py")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "from panglot import Client",
            "model.py:1: importing model.py failed: ImportError: panglot.Client is not there",
        ),
        ("import panglot\npanglot.Client", "model.py:2: importing model.py failed: ImportError: panglot.Client"),
        ("from panglot import Clown", "cannot import name 'Clown'"),
        ("from panglot_worker import ClientError", "cannot import name 'ClientError'"),
    ],
)
def test_what_is_not_for_scripts_is_told(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(text + "\n\ndef predict(item):\n    return 1\n")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert told in done.stderr


@pytest.mark.rest("other CPythons")
@pytest.mark.parametrize("python", VERSIONS.values(), ids=VERSIONS.keys())
def test_routes_answers_and_requests_are_the_same_on_every_python(python: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from panglot import File, Response, request, requests, route\n\n"
        "def predict(item):\n    return Response({'a': request().headers['x-a']}, status=201)\n\n"
        "@route('/file')\ndef file(item):\n    return File('a.txt', 'text/plain', b'x')\n\n"
        "@route('/batch', batch=True)\ndef batch(items):\n    return [one.id for one in requests()]\n\n"
        "def chat(messages):\n    yield 'Hello'\n    yield '.'\n\n"
        "def embed(texts):\n    return [[1, 2.5] for _ in texts]\n"
    )
    with serving(tmp_path, "--python", python) as server:
        answer = server.predict(1, headers={"x-a": "b"})
        assert (answer.status_code, answer.json()) == (201, {"a": "b"})
        assert 'filename="a.txt"' in server.client.post("/file", json=1).headers["content-disposition"]
        assert server.client.post("/batch", json=1, headers={"x-request-id": "i"}).json() == "i"
        said = {"messages": [{"role": "user", "content": "Hi"}]}
        answer = server.client.post("/v1/chat/completions", json=said).json()
        assert answer["choices"][0]["message"]["content"] == "Hello."
        assert server.client.post("/v1/chat/completions", json={**said, "stream": True}).text.endswith("[DONE]\n\n")
        vectors = server.client.post("/v1/embeddings", json={"input": ["a", "b"], "encoding_format": "base64"}).json()
        assert [entry["embedding"] for entry in vectors["data"]] == ["AACAPwAAIEA="] * 2
