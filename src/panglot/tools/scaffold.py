"""`panglot new`: a small package that works at once, from the templates of a dialect."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from panglot import dialects
from panglot.dialects.base import ENDING, Template
from panglot.errors import StartError
from panglot.settings import suggestion
from panglot.tools import new_dialect, scaffold_documents


class Choice(NamedTuple):
    """A template as `panglot new` offers it: `word` is to be typed, and stands for `dialect` and `kind`."""

    word: str
    dialect: str
    kind: str
    title: str


def choices() -> list[Choice]:
    """All templates; first the ones whose kind alone is enough as a word."""
    own: list[Choice] = []
    others: list[Choice] = []
    for name in templated():
        module = dialects.find(name).load("templates")
        alone = getattr(module, "KINDS_ARE_COMMANDS", False)
        for kind, template in module.TEMPLATES.items():
            word = kind if alone else f"{name} --kind {kind}" if kind else name
            (own if alone else others).append(Choice(word, name, kind, template.title))
    return own + others


def words() -> list[str]:
    """The words that `panglot new` takes."""
    alone = [choice.word for choice in choices() if choice.word == choice.kind]
    return [*alone, *templated(), new_dialect.WORD]


def meant(word: str, kind: str = "") -> tuple[str, str]:
    """The dialect and the kind that a word of the command line stands for. Raises StartError for an unknown word."""
    for choice in choices():
        if choice.word == word == choice.kind and not kind:
            return choice.dialect, choice.kind
    if word not in words():
        known = ", ".join(words())
        raise StartError(f"there is no template '{word}'", fix=suggestion(word, words()) or f"use one of {known}")
    return word, kind


def planned(dialect: str, folder: Path, kind: str = "") -> tuple[Template, dict[str, bytes]]:
    """The template with all its files, and their contents. Raises StartError when there is no such template."""
    if dialect == new_dialect.WORD:
        return new_dialect.template(folder), new_dialect.contents(folder)
    template, source = find(dialect, kind)
    template = dataclasses.replace(template, call=template.call.replace("{name}", folder.resolve().name))
    contents = {name: (source / (name + ENDING)).read_bytes() for name in template.files}
    written = scaffold_documents.documents(template)
    files = {**template.files, **{name: about for name, (about, _) in written.items()}}
    contents |= {name: text.encode() for name, (_, text) in written.items()}
    return dataclasses.replace(template, files=files), contents


def create(dialect: str, folder: Path, force: bool = False, kind: str = "") -> Template:
    """Write the package. Raises StartError when there is no such template or the folder cannot be filled.

    With `force` the folder may have other files; files with the names of the template are replaced.
    """
    template, contents = planned(dialect, folder, kind)
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
    """The commands that prepare the new package, serve it and call it."""
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
