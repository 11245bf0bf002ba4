"""What is a processor of PAI-EAS, decided without running it, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from support.server import PACKAGES, panglot

SCRIPT = """import allspark


class Mine(allspark.BaseProcessor):
    def process(self, data):
        return data, 200


if __name__ == "__main__":
    Mine().run()
"""


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def refused(path: Path) -> str:
    with pytest.raises(StartError) as error:
        dialects.discover(path)
    return str(error.value)


IS_ONE = {
    "app.py": ({"app__py": SCRIPT}, "app.py:4 defines class Mine(allspark.BaseProcessor)"),
    "any name": ({"serve_it__py": SCRIPT, "other__py": "x = 1\n"}, "serve_it.py:4 defines class Mine"),
    "by its own name": (
        {"app__py": SCRIPT.replace("import allspark\n", "from allspark import BaseProcessor as Base\n").replace(
            "allspark.BaseProcessor", "Base")}, "app.py:4 defines class Mine",
    ),
    "another name of the module": (
        {"app__py": SCRIPT.replace("import allspark\n", "import allspark as a\n").replace("allspark.Base", "a.Base")},
        "app.py:4 defines class Mine",
    ),
    "through a class between": (
        {"app__py": SCRIPT.replace("if __name__", "class Leaf(Mine):\n    pass\n\n\nif __name__")},
        "app.py:9 defines class Leaf",
    ),
    "the entry of app.json": (
        {"app__json": '{"name": "x", "processor_entry": "./b.py"}', "a__py": SCRIPT, "b__py": SCRIPT},
        "b.py:4 defines class Mine",
    ),
}  # fmt: skip


@pytest.mark.document("paieas.01")
@pytest.mark.parametrize("name", IS_ONE)
def test_is_one(name: str, tmp_path: Path) -> None:
    files, reason = IS_ONE[name]
    package = dialects.discover(write(tmp_path / "own", **files))
    assert (package.dialect, package.reasons[0].startswith(reason)) == ("paieas", True), package.reasons


def test_the_description_of_the_service_may_be_named_itself() -> None:
    package = dialects.discover(PACKAGES / "paieas_service" / "app.json")
    assert (package.name, package.script.name) == ("heart_predict", "predict.py")
    assert package.options["model_path"].endswith("/weights")
    assert (package.defaults["timeout"], package.defaults["queue"]) == (60.0, 100)


@pytest.mark.document("paieas.29")
def test_a_request_has_five_seconds_unless_the_script_says_otherwise(tmp_path: Path) -> None:
    assert dialects.discover(write(tmp_path / "own", app__py=SCRIPT)).defaults["timeout"] == 5.0
    assert dialects.discover(PACKAGES / "paieas_echo").defaults["timeout"] == 20.0


def test_an_environment_of_the_platform_is_named_with_the_fix(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", app__py=SCRIPT)
    (folder / "ENV").mkdir()
    (said,) = dialects.discover(folder).problems
    assert "--python ENV/bin/python" in said


WRONG = {
    "without process": (
        {"app__py": "import allspark\nclass Mine(allspark.BaseProcessor):\n    def initialize(self): ...\n"},
        ("app.py:2", "Mine has no process", "def process(self, data)"),
    ),
    "process without data": (
        {"app__py": SCRIPT.replace("self, data", "self")},
        ("app.py:5", "must take one argument besides self", "def process(self, data)"),
    ),
    "two candidates": ({"a__py": SCRIPT, "b__py": SCRIPT}, ("a.py and b.py could both be", "panglot serve")),
    "a syntax error": ({"app__py": SCRIPT + "\nreturn (\n"}, ("app.py:12", "syntax error")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_package_is_refused_before_it_runs_with_file_line_and_fix(name: str, tmp_path: Path) -> None:
    files, expected = WRONG[name]
    said = refused(write(tmp_path / "own", **files))
    assert [part for part in expected if part not in said] == [], said


FAILS = {
    "run is never called": (SCRIPT.partition("if __name__")[0], ("app.py", "the script ends without calling run()")),
    "initialize raises": (
        SCRIPT.replace(
            "    def process", "    def initialize(self):\n        raise OSError('no weights')\n\n    def process"
        ),
        ("app.py:6", "running initialize() failed: OSError: no weights"),
    ),
    "a missing package": (
        "import torch_of_mine\n" + SCRIPT,
        ("app.py:1", "the package 'torch_of_mine' is not installed"),
    ),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_processor_that_cannot_start_ends_the_server_with_file_and_line(name: str, tmp_path: Path) -> None:
    script, expected = FAILS[name]
    done = panglot("serve", str(write(tmp_path / "own", app__py=script)), "--port", "0", seconds=60)
    assert done.returncode == 3
    assert [part for part in expected if part not in done.stderr] == [], done.stderr


@pytest.mark.document("paieas.23")
def test_paths_of_the_platforms_model_are_named_with_the_fix() -> None:
    (path,) = dialects.discover(PACKAGES / "paieas_model").fixed_paths
    assert (path.line, path.root, path.inside) == (8, "/eas/workspace/model", "model")
    (relative,) = dialects.discover(PACKAGES / "paieas_absolute").fixed_paths
    assert relative.text == "../../model/weights.bin"
    assert relative.root == str(PACKAGES.parent / "model")
