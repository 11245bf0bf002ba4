"""A stranger adds a dialect without touching our files: a distribution with an entry point, installed by pip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support import environments
from support.server import PACKAGES, ROOT, Server

ACME = ROOT / "tests" / "distributions" / "acme"
BEHIND = "import site; site.addsitedir({folder!r})\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheels of Panglot and of the dialect, and ours behind it for what they need."""
    folder = tmp_path_factory.mktemp("outside")
    for source in (ROOT, ACME):
        # A copy: setuptools writes beside what it builds.
        copy = folder / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".*", "*.egg-info", "build", "tests"))
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
        subprocess.run([*command, str(copy)], check=True, capture_output=True)
    fresh = environments.fresh(folder / "venv")
    wheels = [str(wheel) for wheel in folder.glob("*.whl")]
    assert len(wheels) == 2
    environments.install(fresh, "--no-deps", *wheels)
    installed = next((folder / "venv" / "lib").iterdir()) / "site-packages"
    ours = next(Path(entry) for entry in sys.path if (Path(entry) / "uvicorn").is_dir())
    (installed / "zz_behind.pth").write_text(BEHIND.format(folder=str(ours)))
    return Path(fresh)


def run(python: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PANGLOT_", "PYTHONPATH"))}
    environment["XDG_CACHE_HOME"] = str(python.parents[2] / "cache")
    command = [str(python), "-m", "panglot", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def package(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk") / "desk"
    assert "acme_service.py" in run(python, "new", "acme", str(folder)).stdout
    return folder


def test_it_is_recognised_explained_and_documented(python: Path, package: Path) -> None:
    told = json.loads(run(python, "inspect", str(package), "--json").stdout)
    assert told["dialect"] == "acme"
    assert told["why"] == ["acme_service.py:1 imports acme"]
    assert told["routes"] == ["POST /acme/ask", "GET /acme/alive (public)"]
    assert told["settings"]["timeout"] == {"value": 7.0, "source": "the dialect", "scope": "model"}
    assert told["settings"]["signature"] == {"value": "ACME", "source": "default", "scope": "model"}
    assert told["about"].startswith("Scripts for ACME's question desk")
    assert Path(told["docs"]).read_text().startswith("# acme")
    assert "/acme/ask" in told["try"]


def test_its_archives_are_unpacked_for_its_detector(python: Path, package: Path, tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "desk"), "zip", package)).rename(tmp_path / "front.desk")
    told = json.loads(run(python, "inspect", str(archive), "--json").stdout)
    assert (told["dialect"], told["package"], told["archive"]) == ("acme", "front", str(archive))


def test_it_is_served_with_its_own_contract(python: Path, package: Path) -> None:
    server = Server(package, "--signature", "W. E. Coyote", python=str(python))
    try:
        server.wait_ready()
        answer = server.client.post("/acme/ask", json={"question": "spam"})
        assert answer.json() == {"answer": "maps", "signed": "W. E. Coyote"}
        assert server.client.get("/acme/alive").text == "yes"
        refused = server.client.post("/acme/ask", json={"question": 3})
        assert (refused.status_code, refused.json()["acme_error"]["text"]) == (422, "a question is text")
        assert server.client.post("/acme/ask", content=b"{").status_code == 400
        assert server.client.get("/nowhere").json()["acme_error"]["number"] == 40
        assert httpx.get(server.url + "/openapi.json", timeout=30).status_code == 200
    finally:
        assert server.stop() == 0


def test_the_tools_know_how_to_ask_it(python: Path, package: Path) -> None:
    done = run(python, "run", str(package), str(package / "request.json"), "--format", "jsonl")
    assert json.loads(done.stdout)["answer"]["answer"] == "maps"


def test_its_settings_are_its_own(python: Path, package: Path) -> None:
    helped = run(python, "serve", "--help").stdout
    assert "--signature" in helped.partition("Packages of acme:")[2]
    assert "--signature" not in helped.partition("Packages of acme:")[0]
    refused = run(python, "serve", str(PACKAGES / "function"), "--signature", "x", code=3).stderr
    assert "--signature is for acme packages, and this one is plain" in refused
    refused = run(python, "serve", str(package), "--no-onednn", code=3).stderr
    assert "--onednn is for paddle packages, and this one is acme" in refused
    assert "worker/platform/always" in run(python, "shims", "acme").stdout


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("detect.py", "LOOKS_FOR = ''\ndef detect(): ...\n", "detect.py line 2: detect() must take 1 or 2 arguments"),
        ("contract.py", "x = 1\n", "contract.py must define contract"),
        ("request.py", "def make_request(\n", "request.py line 1"),
        ("worker/__init__.py", None, "worker/__init__.py is missing"),
    ],
)
def test_one_of_the_wrong_shape_is_named_with_the_rule_it_breaks(
    python: Path, package: Path, file: str, text: str | None, words: str
) -> None:
    where = subprocess.run(
        [str(python), "-c", "import acme_dialect; print(acme_dialect.__path__[0])"],
        capture_output=True, text=True, check=True, cwd="/",
    ).stdout.strip()  # fmt: skip
    path = Path(where, file)
    before = path.read_text()
    try:
        path.unlink()
        if text is not None:
            path.write_text(text)
        said = run(python, "inspect", str(package), code=3).stderr
        assert "the dialect 'acme' of panglot-acme cannot be used" in said
        assert words in said
        assert "fix or uninstall panglot-acme" in said
    finally:
        path.write_text(before)
