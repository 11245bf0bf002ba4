"""`panglot new`."""

from __future__ import annotations

import json
from pathlib import Path

import click


class New(click.Command):
    """Its help ends with the dialects that have a template."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from panglot.tools.scaffold import templated

        formatter.write_paragraph()
        formatter.write_text(f"DIALECT is one of {', '.join(templated())}.")
        formatter.write_paragraph()
        formatter.write_text("`panglot new dialect DIR` writes a dialect of your own, called like DIR, with its tests.")


@click.command(cls=New)
@click.argument("dialect")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="write into a folder that is not empty, replacing files of the same name")
@click.option("--kind", "--engine", default="", metavar="NAME", help="which template, where a dialect has several")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def new(dialect: str, folder: Path, force: bool, kind: str, as_json: bool) -> None:
    """Write a small working package of DIALECT into DIR."""
    from panglot.tools.scaffold import create, next_commands

    template = create(dialect, folder, force, kind)
    if as_json:
        files = {str(folder / name): about for name, about in template.files.items()}
        click.echo(json.dumps({"files": files, "next": list(next_commands(template, folder))}, indent=2))
        return
    width = max(len(str(folder / name)) for name in template.files)
    for name, about in template.files.items():
        click.echo(f"  {folder / name!s:{width}}  {about}")
    click.echo("\nServe it, then call it from another terminal:")
    for command in next_commands(template, folder):
        click.echo(f"  {command}")
