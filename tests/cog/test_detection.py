"""What is a predictor of Cog, decided without running it, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from support.server import PACKAGES, panglot

SCRIPT = """from cog import BasePredictor


class Predictor(BasePredictor):
    def predict(self, text: str) -> str:
        return text
"""
YAML = 'predict: "predict.py:Predictor"\n'


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


IS_ONE = {
    "cog.yaml": ({"cog__yaml": YAML, "predict__py": SCRIPT}, "Predictor.predict"),
    "without a name": ({"cog__yaml": "predict: predict.py\n", "predict__py": SCRIPT}, "Predictor.predict"),
    "a plain class": (
        {"cog__yaml": YAML, "predict__py": SCRIPT.replace("(BasePredictor)", "")}, "Predictor.predict",
    ),
    "without cog.yaml": ({"predict__py": SCRIPT, "other__py": SCRIPT}, "Predictor.predict"),
    "run": (
        {"cog__yaml": 'run: "run.py:Runner"\n', "run__py": "class Runner:\n    def run(self, n: int) -> int: ...\n"},
        "Runner.run",
    ),
    "a function": (
        {"cog__yaml": 'predict: "predict.py:say"\n', "predict__py": "def say(text: str) -> str: ...\n"}, "say",
    ),
}  # fmt: skip


@pytest.mark.document("cog.01")
@pytest.mark.parametrize("name", IS_ONE)
def test_is_one(name: str, tmp_path: Path) -> None:
    files, entry = IS_ONE[name]
    package = dialects.discover(write(tmp_path / "own", **files))
    assert (package.dialect, package.entry, package.name) == ("cog", entry, "own")


@pytest.mark.document("cog.02")
def test_what_only_the_image_has_is_named_with_the_fix() -> None:
    (said,) = dialects.discover(PACKAGES / "cog_ops").problems
    assert said == "cog.yaml:3 wants system packages: apt-get install ffmpeg"
    assert dialects.discover(PACKAGES / "cog_function").environment == {"GREETING": "hello"}
    assert dialects.discover(PACKAGES / "cog_async").options["concurrency"] == 4


WRONG = {
    "no script": ({"cog__yaml": YAML}, ("cog.yaml:1", "there is no predict.py")),
    "another folder": (
        {"cog__yaml": "build: {}\npredict: ../predict.py\n"}, ("cog.yaml:2", "no script of this folder"),
    ),
    "no class": ({"cog__yaml": YAML, "predict__py": "x = 1\n"}, ("predict.py", "no class or function Predictor")),
    "another class": (
        {"cog__yaml": YAML.replace("Predictor", "Model"), "predict__py": SCRIPT},
        ("predict.py", "no class or function Model", "there is Predictor", "name predict.py:Predictor in cog.yaml"),
    ),
    "no method": (
        {"cog__yaml": YAML, "predict__py": SCRIPT.replace("def predict", "def other")},
        ("predict.py:4", "Predictor has no predict()", "def predict(self"),
    ),
    "two methods": (
        {"cog__yaml": YAML, "predict__py": SCRIPT + "\n    def run(self) -> str: ...\n"},
        ("predict.py:8", "either run() or predict(), not both"),
    ),
    "stars": (
        {"cog__yaml": YAML, "predict__py": SCRIPT.replace("text: str)", "**named)")},
        ("predict.py:5", "takes named by stars"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_package_is_refused_before_it_runs_with_file_line_and_fix(name: str, tmp_path: Path) -> None:
    files, expected = WRONG[name]
    with pytest.raises(StartError) as error:
        dialects.discover(write(tmp_path / "own", **files))
    assert [part for part in expected if part not in str(error.value)] == [], str(error.value)


def test_a_predictor_that_cannot_start_ends_the_server_with_file_and_line(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "    def predict", "    def setup(self):\n        raise OSError('no weights')\n\n    def predict"
    )
    done = panglot("serve", str(write(tmp_path / "own", cog__yaml=YAML, predict__py=script)), "--port", "0", seconds=60)
    assert done.returncode == 3
    assert [part for part in ("predict.py:6", "OSError: no weights") if part not in done.stderr] == [], done.stderr


def test_a_package_whose_weights_are_missing_ends_the_server() -> None:
    done = panglot("serve", str(PACKAGES / "cog_unready"), "--port", "0", seconds=60)
    assert done.returncode == 3
    assert [part for part in ("predict.py:8", "weights/model.bin") if part not in done.stderr] == [], done.stderr
