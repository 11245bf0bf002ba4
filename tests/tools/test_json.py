"""`--json` of every command that prints a result: the keys that the documents name, and no others."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from panglot.cli.commands import panglot as commands
from panglot.recording.recorder import Recorder
from panglot.recording.recording import Pair, RecordedAnswer, RecordedRequest
from panglot.recording.sink import RecorderOptions
from support.server import PACKAGES, ROOT, Server, panglot, serving
from support.two_fronts import FRONTS

FUNCTION, WORDS = str(PACKAGES / "function"), str(PACKAGES / "documented_json")
WORKS = '{"text": "a fox", "labels": ["fox"], "options": null}'
FAILS = WORKS.replace("a fox", "fail")
QUICK = ("--concurrency", "1", "--duration", "0.3", "--warmup", "0")
WITHOUT = {"completion", "key", "megflow", "record", "serve", "tiinfer", "torchserve"}
"""What serves has no result."""


def documented() -> dict[str, set[str]]:
    """The keys of each row of the table in the documents."""
    text = (ROOT / "docs" / "reference" / "tools.md").read_text()
    table = text.partition("| keys of `--json` |\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[1:]]
    return {name: set(re.findall(r"`(\w+)`", keys)) for name, keys in rows}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json") as server:
        yield server


def said(*words: str) -> list[Any]:
    """What a command printed: one value, or one for each line."""
    text = panglot(*words, "--json", seconds=120).stdout
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def keys(values: list[Any]) -> set[str]:
    return {key for value in values for key in value}


def of_run(folder: Path, server: Server) -> Iterator[list[Any]]:
    yield said("run", WORDS, FAILS, WORKS, "--repeat", "2")
    yield [*said("call", server.url, FAILS, WORKS), {"runs": 2, "stable": True}]


def of_bench(folder: Path, server: Server) -> Iterator[list[Any]]:
    said("bench", server.url, *QUICK, "--save", str(folder / "old.json"))
    (figures,) = said("bench", server.url, *QUICK, "--compare", str(folder / "old.json"))
    assert keys(figures["levels"]) == documented()["`bench`, of each level"]
    yield [figures]


def of_files(folder: Path, server: Server) -> Iterator[list[Any]]:
    np.save(folder / "a.npy", np.ones(2))
    yield said("check", str(folder / "a.npy"), str(folder / "a.npy"))


def of_export(folder: Path, server: Server) -> Iterator[list[Any]]:
    shutil.copy(ROOT / "examples" / "bare" / "digits.onnx", folder / "trained")
    (folder / "export.py").write_text("import shutil\n\nshutil.copy('trained', 'exported.onnx')\n")
    yield said("export", str(folder))


def of_replay(folder: Path, server: Server) -> Iterator[list[Any]]:
    recorder = Recorder(RecorderOptions(folder / "old.rec"))
    request = RecordedRequest([("Content-Type", "application/json")], [], 2, "", b"{}", "POST", "/nowhere")
    recorder.offer(Pair(request, RecordedAnswer([], [], 0, "", b"", 404, "Not Found"), at=0.0, took=0.01), 0)
    recorder.close()
    yield said("replay", str(folder / "old.rec"), server.url)


def of_top(folder: Path, server: Server) -> Iterator[list[Any]]:
    with serving("documented_json", "--fronts", "2") as several:
        (figures,) = said("top", several.url)
    of_several = set() if FRONTS else {"fronts", "pid"}
    assert keys(said("top", server.url)) == set(figures) - of_several
    yield [figures]


CASES: dict[str, Callable[[Path, Server], Iterator[list[Any]]]] = {
    "`run`, `call`": of_run,
    "`inspect`": lambda folder, server: iter([said("inspect", WORDS)]),
    "`bench`": of_bench,
    "`check`, two files": of_files,
    "`check`, of each input": lambda folder, server: iter([said("check", WORDS, WORKS, "--against", server.url)[0]]),
    "`doctor`": lambda folder, server: iter([said("doctor", FUNCTION, "--port", "0")]),
    "`export`": of_export,
    "`replay`": of_replay,
    "`top`": of_top,
    "`new`": lambda folder, server: iter([said("new", "plain", str(folder / "new"))]),
    "`package`": lambda folder, server: iter([said("package", shutil.copytree(FUNCTION, str(folder / "package")))]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_keys_are_those_of_the_documents(name: str, tmp_path: Path, server: Server) -> None:
    for values in CASES[name](tmp_path, server):
        assert keys(values) == documented()[name]


def test_every_command_with_a_result_has_it() -> None:
    named = {word for row in documented() for word in re.findall(r"`(\w+)`", row)}
    with click.Context(commands) as context:
        known = {name: commands.get_command(context, name) for name in commands.list_commands(context)}
        having = {name for name, command in known.items() if any(option.name == "as_json" for option in command.params)}
    assert having == named == set(known) - WITHOUT
    assert all(isinstance(folder, str) for folder in said("shims", "tiinfer")[0])
