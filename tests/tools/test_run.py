"""`panglot run`: a package on many inputs, without a server."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import interpreters
from support.server import PACKAGES, ROOT, panglot

DIGITS = ROOT / "examples" / "digits"
SLEEPY = PACKAGES / "check_sleepy"
EXAMPLES = ROOT / "examples"
SEVEN = EXAMPLES / "modelarts" / "model" / "seven.png"
THREE = EXAMPLES / "modelarts" / "model" / "three.png"
ANSWERS: dict[str, Callable[[Any], int]] = {
    "digits": lambda answer: answer["digit"],
    "tiinfer": lambda answer: answer["digits"][0],
    "modelarts": lambda answer: answer["digits"][0],
    "evals": lambda answer: answer["result"]["confidences"][0]["index"],
    "paddle": lambda answer: answer["class_id"],
    "megflow/digits": lambda answer: answer["digit"],
}


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ANSWERS)
def test_pictures_go_in_as_each_dialect_wants_them(name: str) -> None:
    if name == "paddle" and importlib.util.find_spec("paddle") is None:
        pytest.skip("paddlepaddle is not installed")
    done = panglot("run", str(EXAMPLES / name), str(SEVEN), str(THREE), seconds=110)
    assert done.returncode == 0, done.stderr
    found = rows(done)
    assert [ANSWERS[name](row["answer"]) for row in found] == [7, 3]
    assert [Path(row["input"]).name for row in found] == ["seven.png", "three.png"]
    assert found[0]["times_ms"]["total"] >= found[0]["times_ms"]["inference"] > 0
    assert "2 of 2 answered" in done.stderr


def test_one_bad_input_does_not_stop_the_rest(tmp_path: Path) -> None:
    """Of a folder, a glob, a broken line of JSON, and a file that is no picture."""
    (tmp_path / "a.txt").write_text("no picture")
    (tmp_path / "b.jsonl").write_text('{"half": \n')
    done = panglot("run", str(DIGITS), str(tmp_path), str(DIGITS / "t*.png"), "--concurrency", "3")
    assert done.returncode == 1
    found = rows(done)
    assert [row["status"] for row in found] == [422, 0, 200, 200]
    assert "not an image" in str(found[0]["error"])
    assert "not JSON" in str(found[1]["error"])
    assert "2 of 4 answered" in done.stderr
    assert "2 failed" in done.stderr


def test_a_script_that_fails_shows_its_traceback() -> None:
    done = panglot("run", str(SLEEPY), '{"seconds": "soon"}', '{"seconds": 0}')
    assert done.returncode == 1
    assert "TypeError" in str(rows(done)[0]["error"])
    assert "time.sleep(request" in done.stderr
    assert "model.py" in done.stderr


def test_an_input_that_kills_the_script_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import os\ndef predict(request):\n    return 1 if request else os._exit(9)\n")
    done = panglot("run", str(tmp_path), "[1]", "[]", "[2]")
    assert [row["status"] for row in rows(done)] == [200, 500, 200]
    assert "ended with exit code 9" in rows(done)[1]["error"]
    assert done.returncode == 1


def test_lines_of_json_from_standard_input_as_csv() -> None:
    lines = "".join(f'{{"seconds": {0.001 * n}}}\n' for n in range(3))
    words = [sys.executable, "-m", "panglot", "run", str(SLEEPY), "-", "--format", "csv", "--", "--model", "x y"]
    done = subprocess.run(words, input=lines, capture_output=True, text=True, check=True, cwd=ROOT, timeout=60)
    found = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["input"] for row in found] == ["-:1", "-:2", "-:3"]
    assert json.loads(found[2]["answer"]) == {"slept": 0.002, "arguments": ["--model", "x y"]}
    assert float(found[2]["inference_ms"]) >= 2


def test_results_are_saved_as_arrays(tmp_path: Path) -> None:
    """As reprod_log has them: numpy reads the file, and the types are the script's own."""
    saved = tmp_path / "out.npy"
    words = ("run", str(PACKAGES / "check_reference"), str(DIGITS / "two.png"), "--save", str(saved))
    done = panglot(*words, "--repeat", "3", "--warmup", "2")
    assert done.returncode == 0, done.stderr
    row = rows(done)[0]
    assert (row["runs"], row["stable"]) == (3, True)
    arrays = np.load(saved, allow_pickle=True).item()
    answer = row["answer"]
    assert isinstance(answer, dict)
    assert arrays["class"].tolist() == [answer["class"]]
    assert arrays["shares"].tolist() == answer["shares"]
    assert panglot("check", str(saved), str(saved)).returncode == 0


def test_a_table_on_request() -> None:
    done = panglot("run", str(DIGITS), str(DIGITS / "two.png"), "--format", "table")
    assert done.returncode == 0
    heading, line = done.stdout.splitlines()
    assert heading.split() == [
        "input",
        "answer",
        "decode",
        "preprocess",
        "inference",
        "postprocess",
        "encode",
        "total",
        "ms",
    ]
    assert '"digit": 2' in line


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    saved = tmp_path / "out.npy"
    inputs = ['{"seconds": 0.01}', '{"seconds": 0.02}', '{"seconds": 30}', '{"seconds": 0.01}']
    process = subprocess.Popen(
        [sys.executable, "-m", "panglot", "run", str(SLEEPY), *inputs, "--save", str(saved)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    lines = [process.stdout.readline() for _ in range(2)]
    # As a terminal does it: to everybody in the foreground.
    os.killpg(process.pid, signal.SIGINT)
    rest, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert [json.loads(line)["answer"]["slept"] for line in lines] == [0.01, 0.02]
    assert rest == ""
    assert "interrupted: 2 of 4 answered" in said
    kept = np.load(saved, allow_pickle=True).item()
    assert [name for name in kept if name.endswith("/slept")] == ["input 1/slept", "input 2/slept"]


def test_the_interpreter_is_the_one_asked_for(tmp_path: Path) -> None:
    found = interpreters.found()
    if not found:
        pytest.skip("no other CPython here")
    (tmp_path / "model.py").write_text("import sys\ndef predict(request):\n    return sys.version_info[:2]\n")
    version, python = next(iter(found.items()))
    (tmp_path / "panglot.toml").write_text(f"python = {python!r}\n")
    done = panglot("run", str(tmp_path), "{}")
    assert done.returncode == 0, done.stderr
    assert ".".join(map(str, rows(done)[0]["answer"])) == version


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((str(DIGITS), "nowhere.png"), "nowhere.png does not exist"),
        ((str(DIGITS), "*.nothing"), "no file matches"),
        ((str(DIGITS), "{}", "--format", "xml"), "'xml' is not one of"),
        ((str(DIGITS), "{}", "--repeat", "0"), "0"),
        ((str(DIGITS), "{}", "--dialect", "tinfer"), "did you mean tiinfer"),
        ((str(PACKAGES / "broken" / "load_fails"), "{}"), "model.py:6: running load() failed: FileNotFoundError"),
        ((str(DIGITS), "{}", "--reload"), "there is no option --reload"),
    ],
)
def test_wrong_uses_are_told_in_one_line(words: tuple[str, ...], said: str) -> None:
    done = panglot("run", *words)
    assert done.returncode == 3
    assert said in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_a_result_that_cannot_be_saved(tmp_path: Path) -> None:
    done = panglot("run", str(SLEEPY), '{"seconds": 0}', "--save", str(tmp_path / "no" / "such.npy"))
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    assert rows(done)[0]["status"] == 200


def test_without_inputs_the_package_runs_its_own_example() -> None:
    for name, key in (("digits", "digit"), ("tiinfer", "digits"), ("modelarts", "digits")):
        done = panglot("run", str(ROOT / "examples" / name), "--json")
        assert done.returncode == 0, done.stderr
        assert key in json.loads(done.stdout)["answer"]


def test_any_json_value_is_an_input() -> None:
    done = panglot("run", str(PACKAGES / "function"), "5", "true", "null", '"text"', "1.5", "[1]", "-2.5", "--json")
    answers = [json.loads(line)["answer"]["got"] for line in done.stdout.splitlines()]
    assert answers == [5, True, None, "text", 1.5, [1], -2.5]
