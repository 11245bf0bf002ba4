"""`panglot shims`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


@click.command()
@click.argument("dialect")
@click.option("--python", default="", metavar="PYTHON", help="interpreter the script runs in [the one Panglot runs in]")
def shims(dialect: str, python: str) -> None:
    """Print the folders that hold what scripts of DIALECT import, to put on PYTHONPATH.

    With them a script runs, debugs and completes in an editor without a server:

        PYTHONPATH=$(panglot shims DIALECT) python model_service.py
    """
    from panglot import dialects
    from panglot.errors import StartError

    folders = dialects.find(dialect).platform_folders()
    if not folders:
        raise StartError(f"scripts of the {dialect} dialect import nothing of a platform")
    if folders[-1].name == "fallback" and (installed := _installed(folders[-1], python)):
        left = folders.pop()
        others = sorted(set(_modules(left)) - set(installed))
        note = f"{', '.join(installed)} of {python or sys.executable} is used"
        click.echo(f"note: {note}" + (f"; not importable then: {', '.join(others)}" if others else ""), err=True)
    click.echo(os.pathsep.join(map(str, folders)))


def _modules(folder: Path) -> list[str]:
    return sorted(entry.stem for entry in folder.iterdir() if not entry.name.startswith(("_", ".")))


def _installed(folder: Path, python: str) -> list[str]:
    """Which of a folder's modules the interpreter has a real version of."""
    from panglot.tools.doctor.environment import probe

    names = _modules(folder)
    return [name for name in names if name not in probe(python, None, names).missing]
