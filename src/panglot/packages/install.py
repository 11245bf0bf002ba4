"""`panglot serve --install`: the requirements of a package, in a cached virtual environment."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.package import Package
from panglot.packages.requirements import commands
from panglot.settings import Settings
from panglot_worker.life import installing
from panglot_worker.life.installing import InstallError, Wish

log = logging.getLogger("panglot")


def environment(package: Package, settings: Settings, cache: Path | None = None) -> str:
    """The interpreter for the script, in an environment that is made unless it is there already. Raises StartError."""
    wanted = commands(package)
    if not wanted:
        return settings.python
    if settings.inline:
        raise StartError("--inline runs the script in Panglot's own interpreter, so --install cannot help")
    # No texts of requirements: on this machine they are files, which may name further files beside them.
    here = Wish(package.name, str(package.folder), wanted, {})
    python, folder = settings.python or sys.executable, str(cache or installing.cache_folder())

    def say(line: str) -> None:
        log.info("%s", line, extra={"package": package.name})

    try:
        return installing.environment(here, python, folder, say)
    except InstallError as error:
        for line in error.lines:
            log.error("%s", line)
        raise StartError(str(error), file=str(package.folder)) from None
