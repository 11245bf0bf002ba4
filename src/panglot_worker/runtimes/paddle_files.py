"""Exported models of both generations, told apart by their content: Paddle itself dies on what it does not expect."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any, Dict, List, Tuple

from panglot_worker import package_files
from panglot_worker.runtimes import paddle_program
from panglot_worker.runtimes.paddle_program import Input

LARGEST_PROGRAM = 256 << 20

OLD, NEW = ".pdmodel", ".json"


class Explained(RuntimeError):
    """What stops a model from running, said in one line. `fix` may be empty."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return "%s (fix: %s)" % (self.problem, self.fix) if self.fix else self.problem


class BadModel(Explained):
    """A model file that Paddle would crash on, or answer wrongly with."""


def resolve(program: str, parameters: str = "") -> Tuple[str, bool]:
    """The program file to load, and whether it is of the new generation. Raises BadModel.

    A `.pdmodel` that is not there is the `.json` beside it; a JSON file that is called `.pdmodel` gets a name that
    Paddle reads it by.
    """
    chosen = program
    if not os.path.exists(program):
        stem, ending = os.path.splitext(program)
        other = stem + (NEW if ending == OLD else OLD)
        if ending not in (OLD, NEW) or not os.path.exists(other):
            raise BadModel("there is no exported model %s" % program, _missing_fix(program))
        chosen = other
    if parameters and not os.path.exists(parameters):
        # Paddle 3 loads such a model all the same, and answers with whatever is in memory.
        raise BadModel("the model's parameters %s are not there" % parameters)
    kind = content(chosen)
    if kind == "neither":
        raise BadModel("%s is no exported model" % chosen, "export it again")
    if kind == "json" and not chosen.endswith(NEW):
        return _linked(chosen), True
    return chosen, kind == "json"


def _missing_fix(program: str) -> str:
    folder = os.path.dirname(program) or "."
    try:
        there = sorted(name for name in os.listdir(folder) if name.endswith((OLD, NEW)))
    except OSError:
        return "the folder %s is not there either" % folder
    return "the folder has %s" % ", ".join(there) if there else "export the model into %s" % folder


def content(path: str) -> str:
    """What a program file holds: json, protobuf or neither."""
    with open(path, "rb") as file:
        start = file.read(64)
        if start.lstrip()[:1] == b"{":
            return "json"
        return "protobuf" if paddle_program.is_program(start + file.read()) else "neither"


def _linked(path: str) -> str:
    """A link to the file under a name that ends with .json."""
    folder = tempfile.mkdtemp(prefix="panglot-model-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = os.path.join(folder, os.path.splitext(os.path.basename(path))[0] + NEW)
    os.symlink(os.path.abspath(path), link)
    return link


def inputs(path: str, new: bool) -> List[Input]:
    """The inputs of an exported program; none when they cannot be read."""
    try:
        if new:
            return _of_json(path)
        return paddle_program.inputs(package_files.content(path, LARGEST_PROGRAM))
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _of_json(path: str) -> List[Input]:
    program = package_files.json_value(path, LARGEST_PROGRAM)
    pairs = []
    for operation in program["program"]["regions"][0]["blocks"][0]["ops"]:
        if operation["#"].partition(".")[2] == "data":
            about: Dict[str, Any] = {entry["N"]: entry["AT"].get("D") for entry in operation["A"]}
            pairs.append(Input(str(about["name"]), tuple(about["shape"]), str(about["dtype"])))
    return pairs
