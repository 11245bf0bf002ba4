"""The folder that a script runs in: the one with the files that it names. People start the script there too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from panglot.errors import near

LONGEST = 200
HIGHEST = 4
"""How many folders above the script's own may be the project's."""
NO_PATH = re.compile(r"""[\s{}*?<>|"'%]|://""")
FILE = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{0,7}$")


def running_folder(path: Path, script: Path, tree: ast.Module) -> tuple[Path, str]:
    """The folder to run a script in, and the reason for it; no reason for the script's own folder.

    It is the folder in which most relative paths of the script's text exist.
    """
    first, *others = _candidates(path, script)
    named = sorted(set(_named(tree)))
    paths = {folder: [text for text in named if _leads_somewhere(folder, text)] for folder in (first, *others)}
    best = max(paths, key=lambda folder: len(paths[folder]))
    if len(paths[best]) <= len(paths[first]):
        return first, "" if first == script.parent else f"the script runs in {near(str(first))}"
    reason = next(text for text in paths[best] if text not in paths[first])
    return best, f"the script runs in {near(str(best))}, where {reason} is"


def _candidates(path: Path, script: Path) -> list[Path]:
    """The folder that the user gives, then further ones: down to the script's folder, or up to the project's.

    The search does not go above the current folder, where the script is below it.
    """
    if path.is_dir() and script.parent != path:
        between = script.parent.relative_to(path).parts
        return [path, *(path.joinpath(*between[: at + 1]) for at in range(len(between)))]
    here, folders = Path.cwd(), [script.parent]
    for folder in script.parent.parents[:HIGHEST]:
        if (
            folders[-1] == here
            or folder in (Path(folder.anchor), Path.home().parent)
            or (folders[-1] / ".git").exists()
        ):
            break
        folders.append(folder)
    return folders


def _named(tree: ast.Module) -> Iterator[str]:
    """The relative paths in a script's text, also paths that it joins, as far as their parts are plain texts."""
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0] if node.values else None, ast.Constant):
            start = str(node.values[0].value)  # type: ignore[attr-defined]
            text = start.rpartition("/")[0] + "/" if "/" in start else ""
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "join":
            text = "/".join(_constants(node.args))
        if _may_be_path(text):
            yield text


def _constants(arguments: list[ast.expr]) -> Iterator[str]:
    """The texts that some arguments begin with."""
    for argument in arguments:
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            return
        yield argument.value


def _may_be_path(text: str) -> bool:
    if not text or len(text) > LONGEST or text.startswith(("/", "~")) or NO_PATH.search(text):
        return False
    return ("/" in text and text.strip("./") != "") or FILE.search(text) is not None


def _leads_somewhere(folder: Path, text: str) -> bool:
    """Whether a path exists, or the folder of a file that may be written."""
    named = folder / text
    if named.exists():
        return True
    above = Path(text).parent
    return not text.startswith("..") and above != Path() and (folder / above).is_dir()
