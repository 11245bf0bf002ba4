"""Packages that are broken, or made to do harm: each costs a sentence, little memory and time, and itself alone."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from support.models import all_of, write_model
from support.server import ROOT, Server, serving

GIGABYTES = 2
SECONDS = 60
SCRIPT = "def predict(x):\n    return x\n"
TRITON = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
MIB = 1 << 20
Write = Callable[[Path], object]


def write(name: str, text: str | bytes, *others: tuple[str, str]) -> Write:
    """What writes a package that has one odd file, beside a script that is well unless there is another."""

    def make(folder: Path) -> None:
        for path, content in (*(others or [("model.py", SCRIPT)]), (name, text)):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def pipe(name: str, *others: tuple[str, str]) -> Write:
    def make(folder: Path) -> None:
        for path, content in others:
            (folder / path).write_text(content)
        os.mkfifo(folder / name)

    return make


def graph(folder: Path) -> None:
    nodes = "import megflow\n" + "\n".join(f"register(name='{number}')(x)" for number in range(10_000))
    text = '[[graphs]]\nname = "g"\nmain = 1\nconnections = []\nnodes = []\n'
    write("graph.toml", 'main = "g"\n' + text.replace("main = 1\n", ""), ("nodes.py", nodes))(folder)


MODEL = ("1/model.py", TRITON)
SHAPES: dict[str, Write] = {
    "a key of 50,000 parts": write("panglot.toml", "a" + ".a" * 50_000 + " = 1"),
    "a key of 50,000 parts in quotes": write("panglot.toml", '"\\""' + ' . "\\""' * 50_000 + " = 1"),
    "a table of 50,000 parts": write("panglot.toml", "[a" + ".a" * 50_000 + "]\n"),
    "tables of many parts": write("panglot.toml", "".join(f"[x{n}{'.a' * 30}]\n" for n in range(3_000))),
    "arrays in arrays": write("panglot.toml", "workers = " + "[" * 100_000 + "]" * 100_000),
    "settings of 30 MB": write("panglot.toml", b"# comment\n" * 3_000_000),
    "a script of 50 MB": write("model.py", b"x = [1, 2, 3]\n" * 3_600_000),
    "a script of 15 MB": write("model.py", b"x = [1, 2, 3]\n" * 1_000_000),
    "a large module beside the script": write("other.py", b"panglot = [1, 2, 3]\n" * 2_500_000),
    "signs before a number": write("model.py", "x = " + "-" * 100_000 + "1"),
    "brackets": write("model.py", "x = " + "(" * 100_000 + ")" * 100_000),
    "words in words": write("model.py", "x = " + "not " * 50_000 + "1"),
    "names of names": write("model.py", "x = a" + ".a" * 100_000),
    "calls of calls": write("model.py", "x = f" + "()" * 100_000),
    "sums": write("model.py", "x = 1" + " + 1" * 100_000),
    "blocks in blocks": write("model.py", "".join(" " * n + "if x:\n" for n in range(99)) + " " * 99 + "x\n"),
    "a number of many digits": write("model.py", "x = " + "1" * 5_000),
    "no text at all": write("model.py", b"\0\xff" * 1_000),
    "a pipe for a script": pipe("model.py"),
    "a pipe beside the script": pipe("other.py", ("model.py", SCRIPT)),
    "a pipe beside a script of another name": pipe("a.py", ("b.py", SCRIPT)),
    "a pipe for its settings": pipe("panglot.toml", ("model.py", SCRIPT)),
    "a pipe for its requirements": pipe("requirements.txt", ("model.py", SCRIPT)),
    "a pipe for its request": pipe("request.json", ("model.py", SCRIPT)),
    "an endless file": lambda folder: (folder / "model.py").symlink_to("/dev/zero"),
    "a link to itself": lambda folder: (folder / "model.py").symlink_to("model.py"),
    "a request of many levels": write("request.json", "[" * 30_000 + "]" * 30_000),
    "a configuration of many levels": write("config.json", '{"model_type": "PyTorch", "apis": ' + "[" * 100_000),
    "a configuration without an end": write("config.json", '{"model_type": "PyTorch", "x": "' + '\\"' * 500_000),
    "a comment without an end": write("config.json", '{"model_type": "PyTorch"} ' + "/*" * 500_000),
    "only empty lines": write("model.py", b"\n" * 900_000),
    "a graph of empty lines": write("graph.toml", b"\n" * 1_000_000),
    "many calls in a graph": graph,
    "a number of 5,000 digits": write("config.pbtxt", "max_batch_size: " + "1" * 5_000, MODEL),
    "a number of 5,000 hexadecimal digits": write("config.pbtxt", "max_batch_size: 0x" + "1" * 5_000, MODEL),
    "nearly a number": write("config.pbtxt", "max_batch_size: " + "1" * 1_000_000 + "x", MODEL),
    "messages in messages": write("config.pbtxt", "a { " * 100_000, MODEL),
    "a quintillion of workers": write("config.pbtxt", "instance_group { count: 1000000000000000000 }", MODEL),
    "numbers where messages should be": write("config.pbtxt", "instance_group: 3 dynamic_batching: 4", MODEL),
    "a version that is no number": write("\u00b2/model.py", TRITON, MODEL),
    "a script of Python 2 in one line": write("eval.py", "from evals import x; " + "except (" * 100_000),
}
SAID = {
    "a key of 50,000 parts": "a key has more than 32 parts",
    "a key of 50,000 parts in quotes": "a key has more than 32 parts",
    "a table of 50,000 parts": "a key has more than 32 parts",
    "settings of 30 MB": "at most 1048576 are read",
    "a script of 50 MB": "at most 16777216 are read",
    "a script of 15 MB": "too long to be looked at",
    "a pipe for a script": "no regular file",
    "an endless file": "no regular file",
    "a number of 5,000 digits": "whole numbers have up to 64 bits",
    "a number of 5,000 hexadecimal digits": "whole numbers have up to 64 bits",
    "messages in messages": "nested too deeply",
}
"""What is said of those that are refused before they are read: not that memory ran out, or that nothing is there."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


def inspected(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """What `panglot inspect` says, within the memory and the time that any package must do with."""
    most = GIGABYTES << 30
    return subprocess.run(
        [sys.executable, "-m", "panglot", "inspect", str(path), *flags],
        capture_output=True, text=True, timeout=SECONDS, cwd=ROOT, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_looking_at_a_package_costs_little_and_ends_in_a_sentence(shape: str, tmp_path: Path) -> None:
    assert SAID.keys() <= SHAPES.keys()
    SHAPES[shape](tmp_path)
    said = inspected(tmp_path)
    assert said.returncode in (0, 3), said.stderr
    assert "Traceback" not in said.stderr
    if said.returncode:
        assert said.stderr.startswith("error: ")
        assert len(said.stderr) < 2_000
    assert SAID.get(shape, "") in said.stderr


@pytest.mark.parametrize("name", ["pipe", "device"])
def test_what_is_no_file_and_no_folder_is_no_package(name: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    said = inspected(path if name == "pipe" else Path("/dev/zero"))
    assert said.returncode == 3
    assert "neither a file nor a folder" in said.stderr


ESCAPES = "\x1b[31mred\x1b]0;title\x07\u202etxt\x9b2J"


def unseen(text: str) -> set[str]:
    found = (character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    return {f"U+{ord(character):04X}" for character in found if character != "\n"}


def test_names_of_files_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    package = tmp_path / ESCAPES
    write("model.py", SCRIPT)(package)
    (package / f"{ESCAPES}.png").write_bytes(b"x")
    said = inspected(package)
    assert said.returncode == 0
    assert "\\x1b[31mred" in said.stdout
    assert not unseen(said.stdout + said.stderr)
    (package / "model.py").rename(package / f"{ESCAPES}.py")
    said = inspected(package)
    assert not unseen(said.stdout + said.stderr)
    graph = tmp_path / "graph"
    write("graph.toml", f'main = "{ESCAPES!a}"\n[[graphs]]\nname = "x"\n'.replace("'", ""))(graph)
    said = inspected(graph)
    assert not unseen(said.stdout + said.stderr)


def test_neither_can_those_of_models(tmp_path: Path) -> None:
    write_model(tmp_path / "good")
    write_model(tmp_path / ESCAPES)
    for flags in ((), ("--json",)):
        said = inspected(Path(f"--models={tmp_path}"), "--partial", *flags)
        assert said.returncode == 0, said.stderr
        assert "good" in said.stdout
        assert not unseen(said.stdout + said.stderr)


# A server of several models

BROKEN = (
    "a key of 50,000 parts",
    "a script of 50 MB",
    "signs before a number",
    "words in words",
    "a number of 5,000 digits",
    "a number of 5,000 hexadecimal digits",
    "messages in messages",
    "a pipe for a script",
    "a quintillion of workers",
)
CONTROL = "of-whoever-runs-it"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    models = tmp_path_factory.mktemp("models")
    write_model(models / "good")
    # Names that no model can have are the fault of their folders alone.
    write_model(models / "v2")
    write_model(models / "two words")
    for number, shape in enumerate(BROKEN):
        (models / f"broken{number}").mkdir()
        SHAPES[shape](models / f"broken{number}")
    with serving(all_of(models), "--partial", "--admin", env={"PANGLOT_ADMIN_TOKEN": CONTROL}) as running:
        yield running
    assert "Traceback" not in running.log


def test_with_partial_a_broken_model_costs_only_itself(server: Server) -> None:
    assert server.client.post("/models/good/predict", json=1).json() == {"model": "good", "got": 1}
    rows = {row["name"]: row for row in server.client.post("/v2/repository/index").json()}
    assert {name for name, row in rows.items() if row["state"] == "READY"} == {"good"}
    assert set(rows) == {"good", "v2", "two words", *(f"broken{number}" for number in range(len(BROKEN)))}
    assert all(row["reason"] for name, row in rows.items() if name != "good")


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=BROKEN)
def test_loading_a_broken_model_is_answered_with_a_sentence(server: Server, number: int) -> None:
    answer = httpx.post(
        f"{server.url}/v2/repository/models/broken{number}/load",
        headers={"authorization": f"Bearer {CONTROL}"},
        timeout=60,
    )
    assert answer.status_code == 400, answer.text
    assert len(answer.json()["error"]) > 20
