"""`megflow_run` and `run_with_plugins`: instead of MegFlow's own commands, with the options of all generations."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from pathlib import Path
from typing import Any

import click

from panglot import __version__, dialects
from panglot.cli.options import (
    Grouped,
    at_platform_address,
    check_interpreter,
    parse_flags,
    setting_options,
    warn,
    warned,
)
from panglot.errors import StartError, near
from panglot.serving import planning
from panglot.terminal.text import visible

OWN = ("dialect", "config", "plugin", "module", "dynamic", "entry")
"""Settings that the platform's options stand for, or that are of no use here."""

PLATFORM_HOST = "0.0.0.0"  # noqa: S104  the platform's address; other machines need a token
MEGFLOW = "0.3.5"


@click.command(cls=Grouped, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-p", "--plugin", required=True, metavar="DIR", help="folder of the plugins")
@click.option("-c", "--config", default="", metavar="FILE", help="graph file [DIR/DIR.toml]")
@click.option("-m", "--module", default="", metavar="DIR", help="folder where imports of plugins begin [this folder]")
@click.option("--dynamic", default="", metavar="FILE", help="TOML file with variables for the graph file's template")
@click.option("--dump", is_flag=True, help="draw the graph beside its file, as SVG, before it runs")
@click.option("--debug", type=click.IntRange(0, 65535), metavar="PORT", help="port of the debug websocket")
@click.version_option(__version__, "-V", "--version", message=f"megflow {MEGFLOW} by panglot %(version)s")
@functools.partial(setting_options, without=OWN)
def megflow_run(
    plugin: str, config: str, module: str, dynamic: str, dump: bool, debug: int | None, **given: Any
) -> None:
    """Run the graph of a plugin folder, as MegFlow's own commands do: serve it, or run it to its end.

    Takes the other options of `panglot serve` too; --port wins over the port in the graph file.
    """
    from panglot.dialects.megflow.detect import package_of

    package = package_of(config_file(plugin, config), Path(plugin), module or os.getcwd(), dynamic)
    if dump:
        click.echo(visible(f"drawn: {draw(package)}"), err=True)
    resolved = dialects.resolve(package, parse_flags(given), os.environ)
    if resolved.settings.python:
        check_interpreter(resolved.settings.python)
    if package.runs_to_its_end:
        from panglot.dialects.megflow.alone import run

        warn(resolved.warnings)
        sys.exit(run(package, resolved.settings))
    settings, notes = at_platform_address(resolved, os.environ, PLATFORM_HOST)
    options = dict(package.options) if debug is None else {**package.options, "debug_port": debug}
    package = warned(dataclasses.replace(package, options=options), resolved, *notes)
    from panglot.serving.server import serve

    serve(planning.alone(package, settings))


def config_file(plugin: str, config: str) -> Path:
    """The graph file: the one given, or `DIR/DIR.toml`. Raises StartError when there is none."""
    folder = Path(plugin)
    if not folder.is_dir():
        raise StartError(f"the plugin folder {plugin} does not exist", fix="-p FOLDER")
    path = Path(config) if config else folder / f"{folder.resolve().name}.toml"
    if not path.is_file():
        others = sorted(entry.name for entry in folder.glob("*.toml"))
        hint = f"-c {folder / others[0]}" if others else "-c FILE"
        raise StartError(f"there is no graph file {near(str(path))}", fix=hint)
    return path


def draw(package: Any) -> str:
    """Write the graph's picture beside its file and return where it is."""
    from panglot.dialects.megflow.types import types_of
    from panglot_worker.graphs import configuration, picture

    options = package.options
    types = types_of(Path(options["plugin"]), Path(options["module"]))
    try:
        return picture.write(configuration.from_json(options["config"]), str(package.script), types)
    except OSError as error:
        raise StartError(f"the image cannot be written: {error.strerror}", file=str(error.filename)) from None


COMMAND = megflow_run


def main() -> None:
    """The installed commands."""
    from panglot.cli import run

    run(megflow_run)
