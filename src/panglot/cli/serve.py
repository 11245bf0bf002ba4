"""`panglot serve`."""

from __future__ import annotations

import sys
from typing import Any

import click

from panglot import dialects
from panglot.cli.options import OnPackage, resolve_package, setting_options, warn, warned


@click.command(cls=OnPackage)
@click.argument("path")
@setting_options
def serve(path: str, arguments: tuple[str, ...], **given: Any) -> None:
    """Serve the package at PATH: a folder, or a script."""
    package, resolved = resolve_package(path, given, arguments)
    if package.runs_to_its_end:
        warn(resolved.warnings)
        sys.exit(dialects.run_to_its_end(package, resolved.settings))
    from panglot.serving import serve as run

    run(warned(package, resolved), resolved.settings)
