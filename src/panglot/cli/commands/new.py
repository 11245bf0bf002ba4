"""`panglot new`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from panglot.dialects.base import Template
    from panglot.tools.scaffold import Choice

SUGGESTED = "my_model"
"""A name that no module of a platform has, because scripts of the new package import such modules."""


class New(click.Command):
    """A command with the list of templates at the end of its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from panglot.tools.scaffold import words

        formatter.write_paragraph()
        formatter.write_text(f"KIND is one of {', '.join(words())}.")
        formatter.write_paragraph()
        formatter.write_text("`panglot new dialect DIR` writes a dialect of your own, called like DIR, with its tests.")


@click.command(cls=New)
@click.argument("word", metavar="[KIND]", required=False, default="")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="write into a folder that is not empty, replacing files of the same name")
@click.option("--kind", "--engine", default="", metavar="NAME", help="which template, where a platform has several")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def new(word: str, folder: Path | None, force: bool, kind: str, as_json: bool) -> None:
    """Write a small package that works at once into DIR, with a test, a README and an example.

    KIND is what your script does, such as text, image or chat, or the platform that it is for. In a terminal you can
    leave out both: then you choose with the arrow keys, and see what is written first.
    """
    from panglot.tools.scaffold import create, meant, next_commands

    asks = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    dialect, kind = meant(word, kind) if word else _chosen(asks)
    are_shown = folder is None
    if folder is None:
        folder = _folder(asks, dialect, kind)
    template = create(dialect, folder, force, kind)
    if as_json:
        files = {str(folder / name): about for name, about in template.files.items()}
        click.echo(json.dumps({"files": files, "next": list(next_commands(template, folder))}, indent=2))
        return
    if not are_shown:
        _show(template, folder)
    click.echo("\nServe it, then call it from another terminal:")
    for command in next_commands(template, folder):
        click.echo(f"  {command}")


def _chosen(asks: bool) -> tuple[str, str]:
    """The dialect and the kind that a person chooses from a list. Raises UsageError without a terminal."""
    from panglot.terminal.keys import choose
    from panglot.tools.scaffold import choices, words

    if not asks:
        raise click.UsageError(f"say what to write, and where: panglot new KIND DIR (fix: KIND is {_listed(words())})")
    known = choices()
    at = choose("What do you want to write?", _rows(known))
    if at is None:
        raise click.Abort
    return known[at].dialect, known[at].kind


def _rows(known: list[Choice]) -> list[str]:
    width = max(len(choice.word) for choice in known)
    return [f"{choice.word:<{width}}  {choice.title}" for choice in known]


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _folder(asks: bool, dialect: str, kind: str) -> Path:
    """The folder that a person names, once the person has agreed to the files. Raises UsageError without a terminal."""
    from panglot.tools.scaffold import planned

    if not asks:
        raise click.UsageError("Missing argument 'DIR' (fix: name the folder to write, which is made if need be)")
    while True:
        folder = Path(click.prompt("Folder to write", default=SUGGESTED))
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            break
        click.echo(f"{folder} is there already, and is not empty. Name another.")
    _show(planned(dialect, folder, kind)[0], folder)
    if not click.confirm("Write these files?", default=True):
        click.echo("Nothing is written.")
        raise click.Abort
    return folder


def _show(template: Template, folder: Path) -> None:
    """Print the files of a package, and what each is."""
    width = max(len(str(folder / name)) for name in template.files)
    for name, about in template.files.items():
        click.echo(f"  {folder / name!s:{width}}  {about}")
