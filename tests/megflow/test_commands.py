"""`megflow_run` and `run_with_plugins`, with the options of both generations; graphs that serve nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support.graph_command import Command
from support.ports import free_port
from support.server import ROOT, serving

EXAMPLE = ROOT / "examples" / "megflow"
COUNT = """
main = "count"
[[graphs]]
name = "count"
connections = [
    { cap = 4, ports = ["numbers:out", "check:inp"] },
    { cap = 4, ports = ["check:out", "show:inp"] },
]
nodes = [
    { name = "numbers", ty = "Numbers", n = {{ n | default(5) }} },
    { name = "check", ty = "Check" },
    { name = "show", ty = "Show" },
]
"""
NODES = """
from megflow.func_op import map_def, sink_def, source_def


@source_def()
def numbers(context):
    return range(context.n)


@map_def()
def check(number):
    if number == 7:
        raise ValueError("seven")
    return number


@sink_def()
def show(number):
    print(f"number {number}{chr(10)}", end="", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "count").mkdir()
    (tmp_path / "count" / "count.toml").write_text(COUNT)
    (tmp_path / "count" / "nodes.py").write_text(NODES)
    (tmp_path / "many.toml").write_text("n = 10\n")
    return tmp_path


def numbers(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"number (\d+)", text)]


def test_a_graph_without_a_server_runs_to_its_end(folder: Path) -> None:
    running = Command("-p", "count", cwd=folder)
    assert running.end() == 0, running.text
    assert numbers(running.text) == [0, 1, 2, 3, 4]


def test_a_node_that_failed_shows_in_the_exit_code(folder: Path) -> None:
    running = Command("-p", "count", "-c", "count/count.toml", "--dynamic", "many.toml", cwd=folder)
    assert running.end() == 1
    assert numbers(running.text) == [0, 1, 2, 3, 4, 5, 6, 8, 9], "the others went on"
    assert "ValueError: seven" in running.text


def test_panglot_serve_does_the_same(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "panglot", "serve", "count"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, numbers(done.stdout)) == (0, [0, 1, 2, 3, 4])


def test_dump_draws_beside_the_graph_file(folder: Path) -> None:
    running = Command("-p", "count", "--dump", cwd=folder)
    assert running.end() == 0
    assert (folder / "count" / "count.svg").read_text().startswith("<svg")


@pytest.mark.document("megflow.22")
def test_both_commands_are_installed() -> None:
    for name in ("megflow_run", "run_with_plugins"):
        command = Path(sys.executable).with_name(name)
        assert command.is_file(), "install the package anew: pip install -e ."
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("megflow 0.3.5")


WRONG = {
    ("-p", "nowhere"): "the plugin folder nowhere does not exist",
    ("-p", "count", "-c", "no.toml"): "there is no graph file no.toml (fix: -c count/count.toml)",
    ("-p", "count", "--dynamic", "no.toml"): "no.toml: No such file or directory",
    ("-p", "count", "-m", "count/.."): "",
    ("-p", "count", "-m", "/usr/lib"): "is not inside the module path /usr/lib",
    (): "Missing option '-p' / '--plugin'",
    ("-p", "count", "--debug", "x"): "--debug",
    ("-p", "count", "--dumb"): "there is no option --dumb (fix: did you mean --dump",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_uses(folder: Path, arguments: tuple[str, ...]) -> None:
    running = Command(*arguments, cwd=folder)
    code = running.end()
    assert WRONG[arguments] in running.text
    assert code == (3 if WRONG[arguments] else 0)


def test_the_address_of_the_platform_needs_a_token() -> None:
    arguments = ("-c", "digits/digits.toml", "-p", "digits", "--port", "0")
    with Command(*arguments, cwd=EXAMPLE) as running:
        running.wait_log("listening on 127.0.0.1 only: set PANGLOT_TOKEN")
        running.wait_log(r"listening on http://127.0.0.1:\d+")
    with Command(*arguments, cwd=EXAMPLE, env={"PANGLOT_TOKEN": "a" * 32}) as running:
        running.wait_log(r"listening on http://0.0.0.0:\d+")


@pytest.mark.document("megflow.10")
def test_the_port_is_the_graphs_own_unless_another_is_given(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "digits").symlink_to(EXAMPLE / "digits")
    text = (EXAMPLE / "digits" / "digits.toml").read_text().replace("8084", str(port))
    (tmp_path / "own.toml").write_text(text)
    with Command("-c", "own.toml", "-p", "digits", "-m", str(EXAMPLE), cwd=tmp_path) as running:
        running.wait_log(rf"digits is ready on http://127.0.0.1:{port}|own is ready on http://127.0.0.1:{port}")


@pytest.mark.document("megflow.01")
@pytest.mark.parametrize("digit", ["three", "seven"])
def test_the_example_reads_digits(digits: httpx.Client, digit: str) -> None:
    body = (EXAMPLE / "digits" / f"{digit}.png").read_bytes()
    answer = digits.post(f"/analyze/{digit}", content=body, headers={"content-type": "image/*"})
    assert answer.json()["digit"] == {"three": 3, "seven": 7}[digit]
    assert answer.json()["confidence"] > 0.9


@pytest.fixture(scope="module")
def digits() -> object:
    with serving(EXAMPLE / "digits") as server:
        yield server.client


def test_new_packages_answer(tmp_path: Path) -> None:
    from support.server import panglot

    for kind in ("image", "bytes"):
        assert panglot("new", "megflow", str(tmp_path / kind), "--kind", kind).returncode == 0
    with serving(tmp_path / "image") as server:
        sky = (tmp_path / "image" / "sky.png").read_bytes()
        answer = server.client.post("/analyze/sky", content=sky, headers={"content-type": "image/*"})
        assert answer.json() == {"colour": "blue", "picture": "sky"}
    with serving(tmp_path / "bytes") as server:
        assert server.client.post("/analyze/bytes", content=b"how many words are these").json() == {"words": 5}
