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

    With them a script runs, debugs and completes in an editor without a server. Where its interpreter has the real
    version of a package that Panglot only stands in for, the real one wins:

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
