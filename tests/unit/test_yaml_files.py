"""YAML of a package: values as the safe loader gives them, lines for messages, and limits for hostile files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from panglot.errors import StartError
from panglot.packages import yaml_file

GIGABYTE = 1 << 30
SECONDS = 60


def parsed(text: str) -> yaml_file.YamlFile:
    return yaml_file.parse(text, Path("config.yaml"))


# Values


def test_values_are_those_of_the_safe_loader() -> None:
    text = "a: 1\nb: 0x10\nc: 3.10\nd: yes\ne: ~\nf: [x, 'y', \"z\"]\ng: {h: .inf}\ni: |\n  two\n  lines\nj:\n"
    assert parsed(text).table == {
        "a": 1, "b": 16, "c": 3.1, "d": True, "e": None, "f": ["x", "y", "z"], "g": {"h": float("inf")},
        "i": "two\nlines\n", "j": None,
    }  # fmt: skip


def test_values_can_be_written_as_json() -> None:
    table = parsed("when: 2024-01-02\n1: one\non: two\n'=': =\n").table
    assert json.loads(json.dumps(table)) == {"when": "2024-01-02", "1": "one", "on": "two", "=": "="}


def test_a_scalar_can_be_had_as_it_is_written() -> None:
    file = parsed("python_version: 3.10\nbuild: {cuda: '11.8', packages: [1.20]}\n")
    assert file.text("python_version") == "3.10"
    assert file.text("build", "cuda") == "11.8"
    assert file.text("build", "packages", 0) == "1.20"
    assert file.text("build") == file.text("nothing") == ""


def test_aliases_and_merges_are_copies() -> None:
    file = parsed("base: &b {x: 1, y: [1]}\nother: {y: 2, <<: *b}\nboth: {<<: [{x: 0}, *b]}\nagain: *b\n")
    assert file.table["other"] == {"x": 1, "y": 2}
    assert file.table["both"] == {"x": 0, "y": [1]}
    assert file.table["again"] == file.table["base"]
    assert file.table["again"]["y"] is not file.table["base"]["y"]
    assert file.line("both", "y") == 1


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~\n"])
def test_an_empty_file_has_no_values(text: str) -> None:
    assert parsed(text).table == {}
    assert parsed(text).line("a") == 1


def test_lines_of_keys() -> None:
    file = parsed("# first\nname: x\nbuild:\n  run:\n    - a\n    - command: b\n")
    assert file.line() == 2
    assert file.line("build") == 3
    assert file.line("build", "run", 1) == 6
    assert file.line("build", "run", 1, "command") == 6
    assert file.line("build", "python") == 3, "the line of the mapping that would have it"
    error = file.error("this is no name", "name", fix="name it")
    assert str(error) == "config.yaml:2: this is no name (fix: name it)"


# Files that are refused

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGED_LAUGHS = "a0: &a0 {x0: 1, y0: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], x{n}: 1, y{n}: *a{n - 1}}}\n" for n in range(1, 40)
)
REFUSED = {
    "a billion laughs": (LAUGHS, 1, "more than 100000 values"),
    "a billion merges": (MERGED_LAUGHS, 0, "more than 100000 values"),
    "an alias inside of itself": ("a: &a [1, *a]", 1, "part of"),
    "a merge inside of itself": ("a: 1\nb: &b {<<: *b}", 2, "part of"),
    "a key twice": ("a: 1\nb: 2\na: 3", 3, "'a' is here twice"),
    "a key twice, deeper": ("x:\n  - a: 1\n    'a': 3", 3, "'a' is here twice"),
    "a merge twice": ("a: {<<: {}, <<: {}}", 1, "'<<' is here twice"),
    "brackets": ("a: " + "[" * 100_000, 1, "nests too deeply"),
    "closed brackets": ("a: " + "[" * 200 + "]" * 200, 1, "nests too deeply"),
    "braces": ("a: " + "{a: " * 100_000, 1, "nests too deeply"),
    "dashes": ("a:\n " + "- " * 100_000, 2, "nests too deeply"),
    "indents": ("".join(" " * n + "a:\n" for n in range(1_000)), 101, "nests too deeply"),
    "aliases of deep values": (
        "a: &a " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 60 + "*a" + "]" * 60, 1, "nests too deeply",
    ),
    "many values": ("a: [" + "1, " * 200_000 + "]", 1, "more than 100000 values"),
    "a long number": ("a: " + "1" * 5_000, 1, "more than 400 characters"),
    "a long number to the base of 60": ("a: 1" + ":1" * 200_000, 1, "more than 400 characters"),
    "a word said to be a number": ("a: 1\nb: !!int x", 2, "'x' is no int"),
    "a number without digits": ("a: !!float ''", 1, "is no float"),
    "an object of Python": ("a: !!python/object/apply:os.system ['touch harm']", 1, "tag !!python/object"),
    "a module of Python": ("a: !!python/module:antigravity ''", 1, "tag !!python/module"),
    "a mapping with a tag": ("a: !mine {b: 1}", 1, "the tag !mine"),
    "bytes": ("a: !!binary aGk=", 1, "tag !!binary"),
    "a set": ("a: !!set {b, c}", 1, "tag !!set"),
    "a list as a key": ("a: 1\n? [b]\n: 2", 2, "a key must be text"),
    "two documents": ("a: 1\n---\nb: 2", 2, "more than one YAML document"),
    "a list": ("# first\n- a\n", 2, "must be a mapping"),
    "a word": ("hello", 1, "must be a mapping"),
    "no end": ("a: 1\nb: [1,\n", 3, "not valid YAML"),
    "tabs": ("a:\n\tb: 1", 2, "not valid YAML"),
    "an unknown alias": ("a: 1\nb: *nothing", 2, "not valid YAML"),
    "a control character": ("ä: 1\nb: \x07", 2, "not valid YAML"),
    "a NUL that is escaped": ('a: 1\nb: "\\0"', 2, "a NUL"),
    "half a character that is escaped": ('a: 1\nb: "\\ud800"', 2, ""),
    "an escape for the terminal in a key": ('"\\e[31m": 1\n"\\e[31m": 2', 2, "\\x1b[31m"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_refused_is_named_with_its_line(name: str) -> None:
    text, line, said = REFUSED[name]
    with pytest.raises(StartError) as caught:
        parsed(text)
    assert said in caught.value.problem
    assert caught.value.file == "config.yaml"
    assert caught.value.line == line or not line
    assert len(str(caught.value)) < 1_000
    assert str(caught.value).isprintable()


def test_what_is_no_file_of_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(StartError) as caught:
        yaml_file.read(path)
    assert (caught.value.line, caught.value.file) == (2, str(path))
    path.write_bytes(b"# comment\n" * 200_000)
    with pytest.raises(StartError, match="at most 1048576 are read"):
        yaml_file.read(path)
    path.unlink()
    with pytest.raises(StartError, match="cannot be read"):
        yaml_file.read(path)
    os.mkfifo(path)
    with pytest.raises(StartError, match="no regular file"):
        yaml_file.read(path)


LARGE = {
    "a megabyte of brackets on lines": "a: " + "[\n" * 500_000,
    "a megabyte of keys that may begin": "a: [" + "? " * 500_000,
    "a megabyte of one word": "a: " + "x" * 1_000_000,
    "a megabyte of spaces": "a:" + " " * 1_000_000 + "1",
    "a megabyte of nearly numbers": "a: [" + ("1" * 300 + "x, ") * 3_000 + "]",
    "a megabyte of digits and points": "a: " + "1:1" * 300_000 + "x",
    "a megabyte of anchors": "".join(f"a{n}: &a{n} 1\n" for n in range(45_000)),
    "a megabyte of values": "a: [" + "1, " * 99_000 + "]\n" + "# comment\n" * 70_000,
    "laughs": LAUGHS,
    "merged laughs": MERGED_LAUGHS,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("loader", ["with libyaml", pytest.param("without", marks=pytest.mark.rest("a minute of CPU"))])
def test_reading_a_file_costs_little_memory_and_time(name: str, loader: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(LARGE[name])
    hide = "" if loader == "with libyaml" else "import yaml; del yaml.CSafeLoader\n"
    code = (
        f"{hide}import pathlib, sys\n"
        "from panglot.errors import StartError\n"
        "from panglot.packages import yaml_file\n"
        "try:\n    yaml_file.read(pathlib.Path(sys.argv[1]))\n"
        "except StartError:\n    pass\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, preexec_fn=limit)


def limit() -> None:
    """Bound the memory and the CPU time of the process, so that a busy machine changes no verdict."""
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
