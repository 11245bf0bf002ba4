"""Exported models of both generations, distinguished by their content: Paddle itself dies of unknown content."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any, Dict, List, NamedTuple

from panglot_worker.files import package_files
from panglot_worker.runtimes.paddle import program_file
from panglot_worker.runtimes.paddle.program_file import Input

LARGEST_PROGRAM = 256 << 20

OLD, NEW = ".pdmodel", ".json"
PARAMETERS = ".pdiparams"


OF_PARAMETERS = ("p", "0.parameter")
"""The name of an operation that gives a parameter: in short, as it is written today, and in full."""


class Explained(RuntimeError):
    """The reason why a model cannot run, in one line. `fix` may be empty."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return "%s (fix: %s)" % (self.problem, self.fix) if self.fix else self.problem


class BadModel(Explained):
    """A model file with which Paddle would crash, or answer wrongly."""


class Program(NamedTuple):
    """The files to load. `new`: of the new generation. `parameters` is empty for a model that has none."""

    path: str
    new: bool
    parameters: str


def resolve(program: str, parameters: str = "") -> Program:
    """The files to load a model from; parameters that are not named are beside the program. Raises BadModel.

    If a `.pdmodel` is missing, the `.json` beside it is taken. A JSON file called `.pdmodel` is linked under a name by
    which Paddle can read it. Paddle writes no file of parameters for a model without parameters.
    """
    chosen = program
    if not os.path.exists(program):
        stem, ending = os.path.splitext(program)
        other = stem + (NEW if ending == OLD else OLD)
        if ending not in (OLD, NEW) or not os.path.exists(other):
            raise BadModel("there is no exported model %s" % program, _missing_fix(program))
        chosen = other
    kind = content(chosen)
    if kind == "neither":
        raise BadModel("%s is no exported model" % chosen, "export it again")
    parameters = parameters or os.path.splitext(program)[0] + PARAMETERS
    if not os.path.exists(parameters):
        if has_parameters(chosen, kind == "json"):
            # Paddle 3 loads such a model all the same, and answers with random content of the memory.
            raise BadModel("the model's parameters %s are not there" % parameters)
        parameters = ""
    is_misnamed = kind == "json" and not chosen.endswith(NEW)
    return Program(_linked(chosen) if is_misnamed else chosen, kind == "json", parameters)


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
        return "protobuf" if program_file.is_program(start + file.read()) else "neither"


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
        return program_file.inputs(package_files.content(path, LARGEST_PROGRAM))
    except (OSError, ValueError, LookupError, TypeError):
        return []


def has_parameters(path: str, new: bool) -> bool:
    """Whether a program has parameters, which lie in another file; True also where it is not known."""
    try:
        if new:
            return any(str(operation["#"]) in OF_PARAMETERS for operation in _operations(path))
        with open(path, "rb") as file:
            return program_file.has_parameters(file.read())
    except (OSError, ValueError, LookupError, TypeError):
        return True


def _operations(path: str) -> List[Dict[str, Any]]:
    """The operations of the program itself. Operations inside of loops and branches get their values from these."""
    program = package_files.json_value(path, LARGEST_PROGRAM)
    operations: List[Dict[str, Any]] = program["program"]["regions"][0]["blocks"][0]["ops"]
    return operations


def _of_json(path: str) -> List[Input]:
    pairs = []
    for operation in _operations(path):
        if operation["#"].partition(".")[2] == "data":
            about: Dict[str, Any] = {entry["N"]: entry["AT"].get("D") for entry in operation["A"]}
            pairs.append(Input(str(about["name"]), tuple(about["shape"]), str(about["dtype"])))
    return pairs
