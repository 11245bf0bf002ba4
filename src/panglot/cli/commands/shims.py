"""`panglot shims`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click


@click.command()
@click.argument("dialect")
@click.option("--json", "as_json", is_flag=True, help="print a JSON list of the folders")
def shims(dialect: str, as_json: bool) -> None:
    """Print the folders with the modules that scripts of DIALECT import, to put on PYTHONPATH.

    With them you can run and debug a script without a server, and your editor knows what it imports. If the original
    of a module is installed that Panglot only replaces, the original is used:

        PYTHONPATH=$(panglot shims DIALECT) python model_service.py
    """
    import panglot_worker
    from panglot import dialects
    from panglot.errors import StartError

    folders = dialects.find(dialect).platform_folders()
    if not folders:
        raise StartError(f"scripts of the {dialect} dialect import nothing of a platform")
    ordering = Path(panglot_worker.__path__[0]).resolve() / "shims"
    paths = [str(folder) for folder in (ordering, *folders)]
    click.echo(json.dumps(paths) if as_json else os.pathsep.join(paths))
