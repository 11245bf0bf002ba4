"""Whatever is wrong with a package or a command: one clear line, exit code 3."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from panglot.machine import devices
from support.server import PACKAGES, ROOT, panglot, serving

BROKEN = PACKAGES / "broken"

CASES = [
    ([str(BROKEN / "nowhere")], "does not exist", ""),
    ([str(PACKAGES / "funktion")], "does not exist", "did you mean function"),
    ([str(BROKEN / "two")], "one.py and other.py could both be the script", "name one"),
    ([str(BROKEN / "syntax")], "syntax/model.py:4: syntax error", ""),
    ([str(BROKEN / "no_predict")], "there is no predict", "define predict"),
    ([str(BROKEN / "signature")], "signature/model.py:5: predict(a, b) must take exactly one argument", "def predict"),
    (
        [str(BROKEN / "missing_package")],
        "model.py:2: the package 'no_such_package_anywhere' is not installed",
        "pip install",
    ),
    ([str(BROKEN / "load_fails")], "model.py:6: running load() failed: FileNotFoundError: weights.bin", ""),
    ([str(BROKEN / "exits_at_import")], "model.py:3: the script ended the process with exit code 4", ""),
    ([str(BROKEN / "toml_typo")], "panglot.toml:2: unknown key 'max_bach'", "max_batch"),
    ([str(BROKEN / "toml_type")], "panglot.toml:1: max_batch = 'many': expected a whole number", ""),
    ([str(PACKAGES / "function"), "--max-bach", "3"], "no option --max-bach", "did you mean --max-batch"),
    ([str(PACKAGES / "function"), "--python", "/bin/true"], "is no Python interpreter", "venv/bin/python"),
    ([str(PACKAGES / "function"), "--python", "/nope"], "is no Python interpreter", "venv/bin/python"),
    ([str(PACKAGES / "function"), "--port", "99999"], "at most 65535", ""),
    ([str(PACKAGES / "function"), "--timeout", "5q"], "no unit of time", ""),
    ([str(PACKAGES / "function"), "--workers", "-1"], "at least 0", ""),
    ([str(PACKAGES / "function"), "--dialect", "plian"], "no dialect 'plian'", "did you mean plain"),
    ([str(PACKAGES / "function"), "--host", "0.0.0.0"], "no token is set", "--no-auth"),
    ([str(ROOT / "Makefile")], "no Python script", ""),
    ([], "Missing argument", ""),
]


@pytest.mark.parametrize(("arguments", "problem", "fix"), CASES, ids=[case[1][:40] for case in CASES])
def test_one_clear_line_and_exit_code_3(arguments: list[str], problem: str, fix: str) -> None:
    done = panglot("serve", *arguments, *(["--port", "0"] if arguments and "--port" not in arguments else []))
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 3, done.stderr
    assert problem in last
    assert fix in last
    assert "panglot/src" not in done.stderr
    assert "panglot_worker/" not in done.stderr, "no frame of ours in a script's traceback"


def test_an_empty_folder_is_told_what_each_dialect_looks_for() -> None:
    done = panglot("serve", str(BROKEN / "empty"), "--port", "0")
    first, *rows, last = done.stderr.strip().splitlines()
    assert done.returncode == 3
    assert "there is nothing to serve in this folder" in first
    named = [row.split()[0] for row in rows if row[2] != " "]
    assert named == sorted(dialects.known())
    assert max(map(len, rows)) <= 80
    assert last == "(fix: panglot new text DIR writes a package to start from)"


@pytest.mark.parametrize(
    ("names", "problem", "fix"),
    [
        (("a",), "there is no package in this folder, but one in its folder a", "(fix: panglot serve {folder}/a)"),
        (
            ("a", "b"),
            "this folder is no package itself; its folders are: a, b",
            "(fix: panglot serve --models {folder} serves all of them, panglot serve {folder}/a one)",
        ),
    ],
)
def test_a_folder_of_packages_is_no_package(names: tuple[str, ...], problem: str, fix: str, tmp_path: Path) -> None:
    """One is laid out as Triton's repositories are: the script is in a folder for the version."""
    repository = PACKAGES / "triton_add_sub"
    for name in names:
        shutil.copytree(repository if name == "a" else PACKAGES / "function", tmp_path / name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("nothing to serve")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert (done.returncode, problem in done.stderr, fix.format(folder=tmp_path) in done.stderr) == (3, True, True)


def test_a_script_that_may_not_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(request):\n    return 1\n")
    # Once as ourselves: what this imports lies where somebody else may not read.
    dialects.discover(tmp_path)
    (tmp_path / "model.py").chmod(0)
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents[:3]:
        with contextlib.suppress(OSError):
            folder.chmod(folder.stat().st_mode | 0o055)
    with unprivileged(), pytest.raises(StartError, match="it cannot be read: Permission denied"):
        dialects.discover(tmp_path)


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """This process as somebody who may not read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_panglot_alone_is_its_help() -> None:
    done = panglot()
    assert done.returncode == 0
    assert "Commands:" in done.stdout
    assert not done.stderr


def test_a_load_that_hangs_says_where_once(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import time\n\ndef load():\n    time.sleep(600)\n\ndef predict(request): ...\n")
    done = panglot("serve", str(tmp_path), "--port", "0", "--load-timeout", "1")
    last = done.stderr.strip().splitlines()[-1]
    assert "model.py:4: the worker was killed: not loaded after 1 s (it was running load())" in last
    assert "--load-timeout" in last
    assert done.stderr.count('model.py", line 4 in load') == 1


def test_a_device_that_is_not_there_is_a_warning() -> None:
    assert "has no NVIDIA GPU" in devices.lacking("cuda:0", 0)
    assert "has 2 GPUs, from cuda:0 on" in devices.lacking("cuda:1,cuda:2", 2)
    assert not devices.lacking("cuda:1", 2)
    assert not devices.lacking("cpu", 0)
    if not devices.count():
        with serving("function", "--device", "cuda:0") as server:
            server.wait_log("--device cuda:0: this machine has no NVIDIA GPU")


def test_a_failed_load_shows_the_scripts_own_traceback_whole() -> None:
    done = panglot("serve", str(BROKEN / "load_fails"), "--port", "0")
    assert re.search(r'model.py", line 3, in load\n.*self.open\(\)\n.*line 6, in open', done.stderr)


def test_a_port_in_use_is_told_before_anything_is_loaded() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = panglot("serve", str(PACKAGES / "prints"), "--port", port)
    assert done.returncode == 3
    assert f"127.0.0.1:{port}: address already in use" in done.stderr
    assert "imported" not in done.stderr


@pytest.mark.parametrize("host", ["999.1.1.1", "no.such.host.invalid"])
def test_a_bad_host_is_told(host: str) -> None:
    done = panglot("serve", str(PACKAGES / "function"), "--host", host, "--no-auth", "--port", "0")
    assert done.returncode == 3
    assert "is no address to listen on" in done.stderr


def test_an_unknown_command_is_told() -> None:
    done = panglot("sreve", "x")
    assert (done.returncode, "did you mean serve?" in done.stderr) == (3, True)


def test_inspect_explains_without_running(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "print('was run')\nclass Model:\n    def predict_batch(self, items):\n        return items\n"
    )
    (tmp_path / "panglot.toml").write_text("max_batch = 7\n")
    done = panglot("inspect", str(tmp_path), "--json", "--queue", "9", env={"PANGLOT_TIMEOUT": "2s"})
    import json

    facts = json.loads(done.stdout)
    assert facts["dialect"] == "plain"
    assert facts["entry"] == "Model.predict_batch"
    assert facts["settings"]["max_batch"] == {"value": 7, "source": "panglot.toml", "scope": "model"}
    assert facts["settings"]["queue"] == {"value": 9, "source": "--queue", "scope": "model"}
    assert facts["settings"]["timeout"] == {"value": 2.0, "source": "PANGLOT_TIMEOUT", "scope": "model"}
    assert "was run" not in done.stdout + done.stderr
    assert "predict_batch" in panglot("inspect", str(tmp_path)).stdout


def test_help_and_version() -> None:
    assert "--max-batch" in panglot("serve", "--help").stdout
    assert panglot("--version").stdout.startswith("panglot 0.")


def test_a_script_named_like_a_standard_module_does_not_shadow_it(tmp_path: Path) -> None:
    script = tmp_path / "json.py"
    script.write_text("import json as real\n\ndef predict(request):\n    return real.__name__\n")
    with serving(script, "--python", sys.executable) as server:
        assert server.predict(1).status_code == 200
