"""`franca serve`."""

from __future__ import annotations

from typing import Any

import click

from franca.cli.options import Grouped, resolve_package, setting_options


@click.command(cls=Grouped)
@click.argument("path")
@setting_options
def serve(path: str, **given: Any) -> None:
    """Serve the package at PATH: a folder, or a script."""
    package, resolved = resolve_package(path, given)
    from franca.serving import serve as run

    run(package, resolved.settings)
