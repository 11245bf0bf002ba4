"""`panglot new dialect NAME`: a distribution that brings a dialect, with its example and its tests."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from panglot import dialects
from panglot.dialects.base import ENDING, Template
from panglot.errors import StartError

WORD = "dialect"
"""The word on the command line in place of a dialect's name."""
SOURCE = Path(__file__).parent / "dialect_template"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
FILES = {
    "pyproject.toml": "the distribution, with the entry point that Panglot finds",
    "README.md": "what it is",
    "panglot_NAME/__init__.py": "the front half",
    "panglot_NAME/detect.py": "what a package looks like",
    "panglot_NAME/contract.py": "the routes, and the answers to errors",
    "panglot_NAME/worker/__init__.py": "the worker half: what happens to a request",
    "panglot_NAME/worker/platform/always/NAME.py": "what scripts import",
    "example/NAME_service.py": "a script",
    "example/request.json": "a request to send",
    "tests/test_NAME.py": "tests against a running server",
}
"""Every file, in the order to show them. NAME and CLASS stand for the names of the dialect and of its class."""


def template(folder: Path) -> Template:
    """The files of a dialect with the name of the folder. Raises StartError when no dialect can have this name."""
    name = checked_name(folder.resolve().name)
    return Template(
        files={file.replace("NAME", name): about for file, about in FILES.items()},
        prepare="pip install -e {folder} && python -m pytest {folder}",
        package="example",
        call="curl -d @{folder}/example/request.json http://127.0.0.1:8080/ask",
    )


def checked_name(name: str) -> str:
    """The name, if a dialect can have it. Raises StartError."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or name in (WORD, "panglot", "panglot_worker"):
        problem = f"a dialect cannot be called '{name}': scripts import a module of this name"
        raise StartError(problem, fix="choose a folder whose name is small letters, digits and _")
    if name in sys.stdlib_module_names:
        raise StartError(f"'{name}' is a module of Python's own", fix="choose another name")
    if name in dialects.known():
        raise StartError(f"there is a dialect '{name}' already", fix="choose another name")
    return name


def contents(folder: Path) -> dict[str, bytes]:
    """The contents of the files, by their names in the folder."""
    name = folder.resolve().name
    title = "".join(word.capitalize() for word in name.split("_"))
    return {
        file.replace("NAME", name): _filled((SOURCE / (file + ENDING)).read_text(), name, title).encode()
        for file in FILES
    }


def _filled(text: str, name: str, title: str) -> str:
    return text.replace("NAME", name).replace("CLASS", title)
