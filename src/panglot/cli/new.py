"""`panglot new`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("dialect")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="write into a folder that is not empty, replacing files of the same name")
@click.option("--engine", default="", metavar="NAME", help="modelarts: pytorch, tensorflow, mindspore or sklearn")
@click.option("--kind", default="", metavar="NAME", help="megflow: image, bytes or video")
def new(dialect: str, folder: Path, force: bool, engine: str, kind: str) -> None:
    """Write a small working package of DIALECT (plain, tiinfer, evals, modelarts, paddle, megflow) into DIR."""
    from panglot.tools.scaffold import create, next_commands

    template = create(dialect, folder, force, engine or kind)
    width = max(len(str(folder / name)) for name in template.files)
    for name, about in template.files.items():
        click.echo(f"  {folder / name!s:{width}}  {about}")
    click.echo("\nServe it, then call it from another terminal:")
    for command in next_commands(template, folder):
        click.echo(f"  {command}")
