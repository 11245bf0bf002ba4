"""`panglot export`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.options import OnPackage, check_interpreter, warn
from panglot.settings.resolving import resolve
from panglot.terminal.text import visible

if TYPE_CHECKING:
    from panglot.tools.export import Exported

LAST_LINES = 30


@click.command(cls=OnPackage)
@click.argument("path")
@click.option("--python", default="", metavar="TEXT", help="interpreter the script runs in")
@click.option("--pdmodel", is_flag=True, help="write the format of Paddle 2 (.pdmodel), which Paddle 3 can still write")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def export(path: str, python: str, pdmodel: bool, as_json: bool, arguments: tuple[str, ...]) -> None:
    """Run the export script of the package at PATH, and try the model that comes out.

    What follows -- is for the script. The model is loaded in a process of its own and given one random input. The exit
    code is 1 when the export failed, wrote no model, or the model does not work.
    """
    from panglot.tools.export import export as run
    from panglot.tools.export import find_script, root_of

    script = find_script(Path(path))
    config = root_of(script) / "panglot.toml"
    flags = {"python": python} if python else {}
    resolved = resolve(flags, os.environ, config if config.is_file() else None)
    warn(resolved.warnings)
    settings = resolved.settings
    if settings.python:
        check_interpreter(settings.python)
    if not as_json:
        click.echo(visible(f"running {script} {' '.join(arguments)}".rstrip()), err=True)
    exported = run(script, arguments, settings.python, os.environ, pdmodel)
    if as_json:
        click.echo(json.dumps(_as_dict(exported), indent=2))
    else:
        show(exported)
    sys.exit(1 if exported.problem else 0)


def _as_dict(exported: Exported) -> dict[str, Any]:
    models = [
        {
            "form": model.form,
            "files": {str(file): file.stat().st_size for file in model.files},
            **(exported.loaded[number] if number < len(exported.loaded) else {}),
        }
        for number, model in enumerate(exported.models)
    ]
    return {"script": str(exported.script), "seconds": exported.seconds, "problem": exported.problem, "models": models}


def show(exported: Exported) -> None:
    """Print the result of the export, for people."""
    from panglot.settings.units import show_size

    if exported.problem and not exported.models:
        for line in exported.output.rstrip().splitlines()[-LAST_LINES:]:
            click.echo(f"  {visible(line, chr(9))}", err=True)
    else:
        click.echo(f"exported in {exported.seconds:.1f} s")
    for model, loaded in zip(exported.models, exported.loaded or [{}] * len(exported.models), strict=True):
        click.echo(f"\n{model.form}")
        for file in model.files:
            click.echo(f"  {visible(str(_near(file)))}  {show_size(file.stat().st_size)}")
        for entry in loaded.get("inputs", ()):
            click.echo(f"  input   {visible(entry['name'])}  {entry['dtype']}{entry['declared']}")
        for entry in loaded.get("outputs", ()):
            click.echo(f"  output  {visible(entry['name'])}  {entry['dtype']}{entry['shape']}")
        if "inputs" in loaded:
            given = ", ".join(str(entry["shape"]) for entry in loaded["inputs"])
            times = f"loaded in {loaded['load_seconds']:.2f} s, ran {given} in {loaded['run_seconds'] * 1000:.1f} ms"
            click.echo(f"  {times}")
    if exported.problem:
        click.echo(click.style("error: ", fg="red", bold=True) + visible(exported.problem), err=True)


def _near(file: Path) -> str:
    from panglot.errors import near

    return near(str(file))
