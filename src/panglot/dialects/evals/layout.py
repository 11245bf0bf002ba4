"""The places of a script and its helpers: beside each other, or as in the platform's images."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from panglot.dialects.evals.python2 import refusal
from panglot.errors import StartError, near
from panglot.packages.package import FixedPath
from panglot.packages.source import imported, unreadable
from panglot_worker.files.package_files import UnreadableFile, content_if_any, tree

SCRIPT = "eval.py"
CONFIG = "serving-eval.conf"
FOLDERS = ("", "python/evals", "evals")
"""The folders that may have the script, from the path that the user gives."""
FRAMEWORK = ("utils", "mxnet_base")
"""Modules of the platform that may lie beside a script. Panglot uses its own instead."""
SERVING = "/workspace/serving"
SIGNS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+evals\b|^def\s+(?:create_net|net_init|net_inference)\b", re.MULTILINE)


@dataclass(frozen=True)
class ScriptPlace:
    """The place of a script. `root` is the user's path; `folder` has the script, as the platform's `evals` does."""

    root: Path
    folder: Path
    script: Path
    tree: ast.Module

    @property
    def name(self) -> str:
        if self.script.name != SCRIPT:
            return self.script.stem
        return self.root.name or "evals"

    @property
    def is_image(self) -> bool:
        """Whether the folder is laid out as the platform's images were."""
        return self.root != self.folder

    def import_folders(self) -> list[str]:
        """The folders in which scripts find helpers, besides their own folder."""
        parent = [self.folder.parent] if self.is_image else []
        return [str(folder) for folder in (*parent, self.folder / "src") if folder.is_dir()]

    def links(self) -> dict[str, Path]:
        """The platform's working directory, as links."""
        links = {f"serving/{entry.name}": entry for entry in sorted(self.root.iterdir()) if entry.name != "python"}
        if self.is_image and (self.root / "python").is_dir():
            return {**links, "serving/python": self.root / "python"}
        return {**links, "serving/python/evals": self.folder}


def find(path: Path) -> ScriptPlace | None:
    """The script at a path, or None when there is none of this platform. Raises StartError."""
    if path.is_file():
        if path.suffix == ".conf":
            return find(path.parent)
        return _at(_root(path), path) if path.suffix == ".py" and _is_ours(path) else None
    for name in FOLDERS:
        script = path / name / SCRIPT
        if script.is_file() and _is_ours(script):
            return _at(path, script)
    others = [script for script in sorted(path.glob("*.py")) if _is_entry(script)]
    if len(others) > 1:
        names = " and ".join(script.name for script in others)
        raise StartError(
            f"{names} could each be the script", file=str(path), fix=f"name one: panglot serve {near(str(others[0]))}"
        )
    return _at(path, others[0]) if others else None


def _root(script: Path) -> Path:
    folder = script.parent
    return folder.parents[1] if folder.name == "evals" and folder.parent.name == "python" else folder


def _at(root: Path, script: Path) -> ScriptPlace:
    return ScriptPlace(root, script.parent, script, parsed(script))


def parsed(script: Path) -> ast.Module:
    """The syntax tree. Raises StartError with the changes that code of Python 2 needs."""
    try:
        return tree(script)
    except SyntaxError as error:
        raise refusal(script, error) from None
    except UnreadableFile as error:
        raise unreadable(error) from None


def _is_ours(script: Path) -> bool:
    """Whether a script was written for this platform, by its text: a script for Python 2 has no syntax tree."""
    return SIGNS.search(content_if_any(script)) is not None


def _is_entry(script: Path) -> bool:
    text = content_if_any(script)
    return b"evals" in text and b"net_inference" in text and SIGNS.search(text) is not None


def helpers(where: ScriptPlace) -> list[Path]:
    """The package's own modules that the script imports, directly or not. Raises StartError for Python 2."""
    seen: dict[Path, None] = {}
    open_ends: list[tuple[Path, ast.Module]] = [(where.script, where.tree)]
    while open_ends:
        script, tree = open_ends.pop()
        for name in imported(tree):
            for file in _files(where, script.parent, name):
                if file not in seen and file != where.script:
                    seen[file] = None
                    open_ends.append((file, parsed(file)))
    return list(seen)


def is_of_platform(folder: Path) -> bool:
    """Whether a folder beside the script is a copy of the platform's folder of this name."""
    start = folder / "__init__.py"
    marked = b"create_net_handler" in content_if_any(start)
    return folder.name in FRAMEWORK and (marked or any((folder / name).is_file() for name in ("error.py", "net.py")))


def own_helpers(where: ScriptPlace) -> list[str]:
    """Modules of the package that have the name of a module of the platform."""
    return [
        name
        for name in FRAMEWORK
        if (where.folder / f"{name}.py").is_file()
        or ((where.folder / name / "__init__.py").is_file() and not is_of_platform(where.folder / name))
    ]


def _files(where: ScriptPlace, beside: Path, name: str) -> list[Path]:
    """The files a dotted name may mean in this package."""
    inside = name.removeprefix("evals.") if name.startswith("evals.") else name
    if name == "evals" or (name != inside and inside.partition(".")[0] in FRAMEWORK):
        return []
    folders = [where.folder] if name != inside else [beside, where.folder, *map(Path, where.import_folders())]
    files = []
    for folder in folders:
        path = folder.joinpath(*inside.split("."))
        files += [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    return [file for file in files if not (file.parent.parent == where.folder and is_of_platform(file.parent))]


def fixed_paths(where: ScriptPlace, files: list[Path]) -> tuple[FixedPath, ...]:
    """Texts in the package's modules that begin with the platform's working directory."""
    paths = []
    for file in (where.script, *files):
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if text == SERVING or text.startswith(SERVING + "/"):
                    paths.append(FixedPath(text, file.name, node.lineno, SERVING, "serving"))
    return tuple(paths)
