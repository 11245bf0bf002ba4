"""What is a worker of RunPod, decided without running it, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from support.server import PACKAGES, panglot

TOP = """import runpod


def handler(job):
    return job["input"]


runpod.serverless.start({"handler": handler})
"""
CHECK = "@runpod.serverless.register_fitness_check\ndef check():\n    1 / 0\n\n"
MAIN = TOP.replace("\nrunpod.serverless", '\nif __name__ == "__main__":\n    runpod.serverless')


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / name.replace("__", ".").replace("_in_", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


IS_ONE = {
    "at top level": ({"handler__py": TOP}, "handler.py:8 calls"),
    "under main": ({"rp_handler__py": MAIN}, "rp_handler.py:9 calls"),
    "in src": ({"src_in_handler__py": TOP}, "src/handler.py:8 calls"),
    "of any name": ({"serve_it__py": TOP, "other__py": "import runpod\n"}, "serve_it.py:8 calls"),
    "start imported": (
        {"main__py": TOP.replace("import runpod", "from runpod.serverless import start as go").replace(
            "runpod.serverless.start", "go")}, "main.py:8 calls",
    ),
    "serverless imported": (
        {"main__py": TOP.replace("import runpod", "from runpod import serverless").replace(
            "runpod.serverless", "serverless")}, "main.py:8 calls",
    ),
    "by another name": (
        {"main__py": TOP.replace("import runpod", "import runpod as rp").replace("runpod.s", "rp.s")},
        "main.py:8 calls",
    ),
    "the usual name of two": ({"handler__py": TOP, "local__py": MAIN}, "handler.py:8 calls"),
    "the Dockerfile's of two": (
        {"handler__py": TOP, "local__py": MAIN, "Dockerfile": "FROM x\nCMD python -u /local.py\n"},
        "local.py:9 calls",
    ),
}  # fmt: skip


@pytest.mark.document("runpod.01", "runpod.02")
@pytest.mark.parametrize("name", IS_ONE)
def test_is_one(name: str, tmp_path: Path) -> None:
    files, reason = IS_ONE[name]
    package = dialects.discover(write(tmp_path / "own", **files))
    assert (package.dialect, package.name) == ("runpod", "own")
    assert package.reasons[0].startswith(reason)


def test_a_file_in_src_runs_in_the_folder_of_its_dockerfile() -> None:
    package = dialects.discover(PACKAGES / "runpod_validator" / "src" / "rp_handler.py")
    assert (package.folder.name, package.name) == ("runpod_validator", "runpod_validator")


@pytest.mark.document("runpod.03")
def test_the_platforms_files_for_tests_are_the_example() -> None:
    def shown(name: str) -> object:
        return dialects.discover(PACKAGES / name).options["example"]["value"]

    assert shown("runpod_sleeper") == {"input": {"prompt": "John Doe", "seconds": 0}}
    assert shown("runpod_hub") == {"input": {"text": "good good bad"}}


def test_what_only_the_image_has_is_named_with_the_fix(tmp_path: Path) -> None:
    script = TOP + 'WEIGHTS = ("/runpod-volume/weights", "/app/model.bin")\n'
    image = "FROM x\nWORKDIR /app\nCMD \\\n  ./start.sh\n"
    package = dialects.discover(write(tmp_path / "own", handler__py=script, Dockerfile=image))
    assert [part for part in ("Dockerfile:3 starts ./start.sh", "by hand") if part not in package.problems[0]] == []
    assert "handler.py:9 reads /runpod-volume/weights" in package.problems[1]
    (path,) = package.fixed_paths
    assert (path.text, path.root, path.line) == ("/app/model.bin", "/app", 9)


WRONG = {
    "no configuration": (TOP.replace('{"handler": handler}', ""), ("handler.py:8", "no configuration", "start({")),
    "no handler": (TOP.replace('{"handler"', '{"run"'), ("handler.py:8", "has no handler", "start({")),
    "no start": (TOP.rpartition("runpod.serverless")[0], ("handler.py:4", "never calls runpod.serverless.start")),
    "a handler without a job": (TOP.replace("(job)", "()"), ("handler.py:4", "one argument", "def handler(job)")),
    "a syntax error": (TOP + "return (\n", ("handler.py:9", "syntax error")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_package_is_refused_before_it_runs_with_file_line_and_fix(name: str, tmp_path: Path) -> None:
    script, expected = WRONG[name]
    with pytest.raises(StartError) as error:
        dialects.discover(write(tmp_path / "own", handler__py=script))
    assert [part for part in expected if part not in str(error.value)] == [], str(error.value)


def test_two_scripts_without_a_sign_are_both_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"a\.py and b\.py each call runpod\.serverless\.start"):
        dialects.discover(write(tmp_path / "own", a__py=TOP, b__py=TOP))


FAILS = {
    "start is never reached": (
        TOP.replace("\nrunpod.s", "\nif False:\n    runpod.s"), ("handler.py", "the script ends without calling"),
    ),
    "the handler is none": (
        TOP.replace('{"handler": handler}', 'dict(handler="h")'), ("handler.py", "is str, not a function"),
    ),
    "a failed check": (
        TOP.replace("\ndef handler", f"\n{CHECK}\ndef handler"),
        ("handler.py:6", "ZeroDivisionError"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILS)
def test_a_worker_that_cannot_start_ends_the_server_with_file_and_line(name: str, tmp_path: Path) -> None:
    script, expected = FAILS[name]
    done = panglot("serve", str(write(tmp_path / "own", handler__py=script)), "--port", "0", seconds=60)
    assert done.returncode == 3
    assert [part for part in expected if part not in done.stderr] == [], done.stderr
