"""Ensembles over models that only say what they take once they are loaded: what does not fit ends the start."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from support import model_files
from support.fronts import pids
from support.models import all_of
from support.server import panglot, serving, wait_until

COMPOSED = Path(__file__).parent / "composed"
ADMIN = "an-admin-token-of-some-length-0123456789"
COMPLETES = """
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "SCORES", "data_type": "TYPE_FP32", "dims": [3]})
        config.add_output({"name": "WORD", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "BEST", "data_type": "TYPE_FP32", "dims": [1]})
        return config

    def execute("""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An ensemble of a script with a configuration, an ONNX file without one, and a script that completes its own."""
    for name in ("letters", "network", "words", "pipeline"):
        shutil.copytree(COMPOSED / name, tmp_path / name)
    (tmp_path / "network" / "config.pbtxt").unlink()
    model_files.dynamic(tmp_path / "network" / "1" / "model.onnx")
    replace(tmp_path / "words" / "1" / "model.py", "\n    def execute(", COMPLETES)
    (tmp_path / "words" / "config.pbtxt").write_text('backend: "python"\nmax_batch_size: 8\n')
    return tmp_path


def replace(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))


def test_what_fits_is_served(folder: Path) -> None:
    with serving(all_of(folder), ready=False) as server:
        server.wait_ready()
        answer = server.client.post("/models/pipeline/predict", json={"SENTENCE": [["abba"]]})
        assert (answer.status_code, len(answer.json()["scores"][0])) == (200, 3)


@pytest.mark.parametrize(
    ("file", "before", "after", "said", "line"),
    [
        ("letters", "dims: [ 4 ]", "dims: [ 5 ]", "'x', must have the shape [-1, 4], and has [-1, 5]", 19),
        ("letters", "TYPE_FP32", "TYPE_INT64", "'x', must be FP32, and is INT64", 19),
        ("pipeline", 'key: "x"', 'key: "z"', "step 2 (network) has no input 'z'; there is x", 19),
        ("pipeline", 'key: "y"', 'key: "z"', "step 2 (network) has no output 'z'; there is y", 19),
        ("pipeline", 'key: "SCORES" value: "scores"', 'key: "SCORES" value: "counts"', "must have the shape", 25),
        ("pipeline", 'key: "WORD"', 'key: "LETTER"', "step 3 (words) has no output 'LETTER'", 25),
        ("pipeline", "TYPE_FP32 dims: [ 3 ]", "TYPE_FP64 dims: [ 3 ]", "'scores' must be FP64, and is FP32", 0),
    ],
)
def test_what_only_a_loaded_model_shows_ends_the_start(
    file: str, before: str, after: str, said: str, line: int, folder: Path
) -> None:
    replace(folder / file / "config.pbtxt", before, after)
    ended = panglot("serve", "--models", str(folder), "--port", "0")
    assert (ended.returncode, said in ended.stderr) == (3, True), ended.stderr
    config = folder / "pipeline" / "config.pbtxt"
    lines = [f"{config}:{line + more}:" for more in (-1, 0, 1)] if line else [f"{config}:"]
    assert any(place in ended.stderr for place in lines), ended.stderr


def test_with_several_fronts_too(folder: Path) -> None:
    replace(folder / "letters" / "config.pbtxt", "TYPE_FP32", "TYPE_INT64")
    ended = panglot("serve", "--models", str(folder), "--port", "0", "--fronts", "2")
    assert (ended.returncode, "must be FP32, and is INT64" in ended.stderr) == (3, True), ended.stderr
    assert f"{folder / 'pipeline' / 'config.pbtxt'}:" in ended.stderr


def test_a_front_that_comes_back_serves_an_ensemble_that_no_longer_fits(folder: Path) -> None:
    """The others serve it: a successor that refused it would be started, and end, again and again."""
    flags = ("--fronts", "2", "--admin")
    with serving(all_of(folder), *flags, ready=False, env={"PANGLOT_ADMIN_TOKEN": ADMIN}) as server:
        server.wait_ready()
        server.client.headers["authorization"] = f"Bearer {ADMIN}"
        replace(
            folder / "words" / "1" / "model.py",
            '"SCORES", "data_type": "TYPE_FP32"',
            '"SCORES", "data_type": "TYPE_INT64"',
        )
        assert server.client.post("/v2/repository/models/words/load").status_code == 200
        before = pids(server)
        os.kill(before[1], signal.SIGKILL)
        wait_until(lambda: pids(server).get(1, before[1]) != before[1], 60)
        server.wait_log(r"pipeline does not fit the models that it calls: .*must be INT64, and is FP32")
        assert server.client.get("/v2/models/pipeline/ready").status_code == 200


def test_with_partial_the_others_are_served(folder: Path) -> None:
    replace(folder / "letters" / "config.pbtxt", "TYPE_FP32", "TYPE_INT64")
    with serving(all_of(folder), "--partial", ready=False) as server:
        server.wait_ready()
        assert server.client.get("/v2/models/letters/ready").status_code == 200
        assert server.client.get("/v2/models/pipeline").status_code == 404
        server.wait_log(r"pipeline is not served: .*must be FP32, and is INT64")


def test_an_ensemble_that_is_loaded_later_is_checked_too(folder: Path) -> None:
    with serving(all_of(folder), "--admin", ready=False, env={"PANGLOT_ADMIN_TOKEN": ADMIN}) as server:
        server.wait_ready()
        server.client.headers["authorization"] = f"Bearer {ADMIN}"
        replace(folder / "pipeline" / "config.pbtxt", 'key: "y"', 'key: "z"')
        refused = server.client.post("/v2/repository/models/pipeline/load")
        assert (refused.status_code, "has no output 'z'" in refused.text) == (400, True)
        # The one of before is served on.
        assert server.client.post("/models/pipeline/predict", json={"SENTENCE": [["abba"]]}).status_code == 200
