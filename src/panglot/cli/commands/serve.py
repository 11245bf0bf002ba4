"""`panglot serve`."""

from __future__ import annotations

import sys
from typing import Any

import click

from panglot import dialects
from panglot.cli.options import OnPackage, plan_server, setting_options, warn


@click.command(cls=OnPackage)
@click.argument("path", nargs=-1, metavar="PATH | NAME=PATH...")
@setting_options
def serve(path: tuple[str, ...], arguments: tuple[str, ...], **given: Any) -> None:
    """Serve the package at PATH over HTTP: a folder, a script or a model file. Several are models, each by its NAME."""
    plan = plan_server(path, given, arguments)
    first = plan.models[0]
    if first.package.runs_to_its_end:
        warn(plan.warnings)
        sys.exit(dialects.run_to_its_end(first.package, first.settings))
    from panglot.serving.server import serve as run

    run(plan)
