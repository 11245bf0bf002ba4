"""The command line of a script, read from its calls of `add_argument`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from panglot.errors import StartError
from panglot.settings import suggestion

PATHS = re.compile(r"path|dir|file|folder|img|image|params|data")
MODEL_FOLDER = re.compile(r"(model_?dir|inference_?dir|dir_?of_?model)(?!s)")
"""The name of an argument with one folder. Several folders, as in `model_dirs`, are not checked."""


@dataclass(frozen=True)
class Argument:
    """One argument of a script's parser; `default` is its source text."""

    flags: tuple[str, ...]
    name: str
    """The attribute that argparse makes of it."""
    type: str = "str"
    default: str = "None"
    line: int = 0
    value: Any = None
    """The default itself, where it is a literal."""
    about: str = ""

    @property
    def is_path(self) -> bool:
        return self.type == "str" and bool(PATHS.search(self.name.lower()))

    @property
    def is_model_folder(self) -> bool:
        return bool(MODEL_FOLDER.search(self.name.lower()))

    def shown(self) -> str:
        about = f"  {self.about}" if self.about else ""
        return f"{', '.join(self.flags) or self.name} ({self.type}, default {self.default}){about}"


def read(tree: ast.Module) -> tuple[Argument, ...]:
    """Every argument the script adds to a parser, in the order of its text."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    declared = [_argument(call) for call in calls if getattr(call.func, "attr", "") == "add_argument"]
    return tuple(sorted((argument for argument in declared if argument), key=lambda argument: argument.line))


def _argument(call: ast.Call) -> Argument | None:
    flags = tuple(node.value for node in call.args if isinstance(node, ast.Constant) and isinstance(node.value, str))
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if not flags:
        return None
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    name = _literal(keywords.get("dest")) or long.lstrip("-").replace("-", "_")
    action = str(_literal(keywords.get("action")) or "")
    kind = "switch" if action.startswith("store_") else ast.unparse(keywords["type"]) if "type" in keywords else "str"
    default = keywords.get("default")
    switched = {"store_true": "False", "store_false": "True"}.get(action, "None")
    return Argument(
        flags=flags if flags[0].startswith("-") else (),
        name=str(name),
        type=kind,
        default=ast.unparse(default) if default is not None else switched,
        line=call.lineno,
        value=_literal(default),
        about=str(_literal(keywords.get("help")) or ""),
    )


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None


# What was typed


def words(given: Sequence[str]) -> Iterator[tuple[int, str, str | None]]:
    """Position, flag and joined value of every word that is a flag."""
    for at, word in enumerate(given):
        if word.startswith("--") and len(word) > 2:
            flag, joined, value = word.partition("=")
            yield at, flag, value if joined else None


def find(arguments: Sequence[Argument], flag: str) -> Argument | None:
    """The argument of a flag. As in argparse, the beginning of a name is enough where only one name has it."""
    exact = [argument for argument in arguments if flag in argument.flags]
    near = [argument for argument in arguments if any(name.startswith(flag) for name in argument.flags)]
    return exact[0] if exact else near[0] if len(near) == 1 else None


def check(arguments: Sequence[Argument], given: Sequence[str], script: str) -> None:
    """Refuse flags that the script does not have. Raises StartError."""
    known = [flag for argument in arguments for flag in argument.flags]
    for _, flag, _ in words(given):
        if flag != "--help" and not any(name.startswith(flag) for name in known):
            fix = suggestion(flag, known) or f"panglot inspect {script} shows those it has"
            raise StartError(f"the script has no argument {flag}", file=script, fix=fix)


def values(arguments: Sequence[Argument], given: Sequence[str]) -> dict[str, str]:
    """The text given for each argument, by attribute."""
    options = {}
    for at, flag, value in words(given):
        argument = find(arguments, flag)
        if argument is not None:
            following = given[at + 1] if at + 1 < len(given) else ""
            options[argument.name] = following if value is None else value
    return options
