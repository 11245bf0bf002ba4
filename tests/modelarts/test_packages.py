"""The packages we ship: what `panglot new modelarts` writes, and the example."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import ROOT, panglot, serving
from support.traffic import times

ENGINES = ("sklearn", "pytorch", "tensorflow", "mindspore")[: times(2, 4)]
"""The others only by the lines of their README, which tests/documents runs."""


@pytest.mark.document("modelarts.23")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_new_package_is_made_served_and_called_by_the_lines_it_prints(tmp_path: Path, engine: str) -> None:
    folder = tmp_path / "with space"
    done = panglot("new", "modelarts", str(folder), "--engine", engine)
    assert done.returncode == 0, done.stderr
    train, serve, call = (shlex.split(line) for line in done.stdout.strip().splitlines()[-3:])
    assert (train[0], serve) == ("python", ["panglot", "serve", str(folder)])
    made = subprocess.run([sys.executable, *train[1:]], capture_output=True, text=True, timeout=110, check=False)
    assert "100% of the training colours are right" in made.stdout, made.stderr
    with serving(folder) as server:
        command = [*call[:-1], f"{server.url}/"]
        answer = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode()
        assert answer in (folder / "README.md").read_text()
        assert "blue" in answer
        content = server.client.get("/openapi.json").json()["paths"]["/"]["post"]["requestBody"]["content"]
        assert list(content) == ["application/json" if engine == "sklearn" else "multipart/form-data"]
    assert " warning: " not in "\n".join(line for line in server.lines if " | " not in line), server.log
    assert json.loads((folder / "config.json").read_text())["model_type"]


def test_the_default_engine_is_pytorch_and_an_unknown_one_is_told(tmp_path: Path) -> None:
    panglot("new", "modelarts", str(tmp_path / "a"))
    assert "PTServingBaseService" in (tmp_path / "a" / "customize_service.py").read_text()
    done = panglot("new", "modelarts", str(tmp_path / "b"), "--engine", "pytroch")
    assert (done.returncode, "did you mean pytorch?" in done.stderr) == (3, True)
    done = panglot("new", "plain", str(tmp_path / "b"), "--engine", "pytorch")
    assert (done.returncode, "plain has no template of the kind 'pytorch'" in done.stderr) == (3, True)
    assert not (tmp_path / "b").exists()


def test_a_new_package_served_before_it_is_trained_says_what_is_missing(tmp_path: Path) -> None:
    panglot("new", "modelarts", str(tmp_path / "a"), "--engine", "sklearn")
    done = panglot("serve", str(tmp_path / "a"), "--port", "0")
    assert done.returncode == 3
    assert "it has no file ending in .m" in done.stderr


def test_the_example_reads_digits() -> None:
    folder = ROOT / "examples" / "modelarts"
    with serving(folder) as server:
        for name, digit in (("seven.png", 7), ("three.png", 3)):
            picture = (folder / "model" / name).read_bytes()
            answer = server.client.post("/", files={"images": (name, picture, "image/png")})
            assert answer.json()["digits"] == [digit]
        assert answer.json()["certainty"][0] > 0.5
        server.wait_log(r"try: curl -F images=@examples/modelarts/model/seven.png http")


def test_the_doctor_finds_nothing_wrong_with_it() -> None:
    done = panglot("doctor", "examples/modelarts", "--json")
    report = json.loads(done.stdout)
    assert report["problems"] == 0, report["findings"]
    assert any("POST / with seven.png: 200" in finding["value"] for finding in report["findings"])
