"""`panglot new`: a small package that works at once, from the templates of a dialect."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from panglot import dialects
from panglot.dialects.base import ENDING, Template
from panglot.errors import StartError
from panglot.settings import suggestion
from panglot.tools import new_dialect


def create(dialect: str, folder: Path, force: bool = False, kind: str = "") -> Template:
    """Write the package. Raises StartError when there is no such template or the folder cannot be filled.

    With `force` the folder may have other files; files with the names of the template are replaced.
    """
    if dialect == new_dialect.WORD:
        template, contents = new_dialect.template(folder), new_dialect.contents(folder)
    else:
        template, source = find(dialect, kind)
        contents = {name: (source / (name + ENDING)).read_bytes() for name in template.files}
    try:
        if folder.is_dir() and any(folder.iterdir()) and not force:
            raise StartError("this folder is not empty", file=str(folder), fix="choose another, or add --force")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            _write(folder / name, content)
    except FileExistsError:
        raise StartError("this is a file, not a folder", file=str(folder)) from None
    except OSError as error:
        raise StartError(f"cannot be written: {error.strerror}", file=error.filename or str(folder)) from None
    return template


def templated() -> list[str]:
    """The dialects that have a template."""
    return [name for name, dialect in dialects.known().items() if dialect.has("templates")]


def find(dialect: str, kind: str = "") -> tuple[Template, Path]:
    """A template of a dialect, and the folder of its files. Raises StartError when there is none."""
    owner = dialects.find(dialect)
    if not owner.has("templates"):
        raise StartError(f"there is no template for '{dialect}'")
    templates: Mapping[str, Template] = owner.load("templates").TEMPLATES
    folder = owner.folder / "template"
    if kind and kind not in templates:
        several = [name for name in templates if name]
        fix = suggestion(kind, several) or f"use one of {', '.join(several)}" if several else "leave it out"
        raise StartError(f"{dialect} has no template of the kind '{kind}'", fix=fix)
    name = kind or next(iter(templates))
    return templates[name], folder / name


def next_commands(template: Template, folder: Path) -> list[str]:
    """What to type to serve the new package, and to call it."""
    shown = shlex.quote(str(folder))
    first = [template.prepare.format(folder=shown)] if template.prepare else []
    served = f"{shown}/{template.package}" if template.package else shown
    return [*first, f"panglot serve {served}", template.call.format(folder=shown)]


def _write(path: Path, content: bytes) -> None:
    """Write a file; a link is replaced, not written through."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    path.write_bytes(content)
