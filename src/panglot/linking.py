"""`--link-paths`: paths of the platform that a script has hard-coded, made to lead to the package."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from panglot.engine.scratch import PREFIX, Scratch
from panglot.errors import StartError
from panglot.package import Package
from panglot.temporary import is_abandoned

log = logging.getLogger("panglot")


@contextlib.contextmanager
def fixed_paths(package: Package, make: bool) -> Iterator[None]:
    """Warn of every such path; with `make`, link it to the package for as long as this is open. Raises StartError."""
    if not make:
        for path in package.fixed_paths:
            message = "%s:%d uses %s, a path of the platform; --link-paths makes %s lead to this package"
            log.warning(message, path.file, path.line, path.text, path.root, extra={"package": package.name})
        yield
        return
    scratch = Scratch(package.run_links)
    made: list[Path] = []
    try:
        for root, inside in {path.root: path.inside for path in package.fixed_paths}.items():
            target = Path(scratch.folder(f"linked{len(made)}")) / inside
            made += _link(Path(root), target)
            log.info("%s leads to %s", root, package.folder, extra={"package": package.name})
        yield
    finally:
        for entry in reversed(made):
            with contextlib.suppress(OSError):
                entry.unlink() if entry.is_symlink() else entry.rmdir()
        scratch.close()


def _link(link: Path, target: Path) -> list[Path]:
    """Make the link and the folders above it; returns what was made, the outermost first."""
    if link.is_symlink() and _is_left_over(Path(os.readlink(link))):
        with contextlib.suppress(OSError):
            link.unlink()
    if link.is_symlink() or link.exists():
        where = f"leads to {os.readlink(link)}" if link.is_symlink() else "is there already"
        raise StartError(f"{link} {where}", fix="remove it, or serve without --link-paths")
    above = [folder for folder in (link.parent, *link.parent.parents) if not folder.exists()]
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    except OSError as error:
        fix = f"as root: mkdir -p {link.parent} && chown {os.getuid()} {link.parent}"
        raise StartError(f"{link} cannot be made: {error.strerror}", fix=fix) from None
    return [*reversed(above), link]


def _is_left_over(target: Path) -> bool:
    """Whether a link was made by a server that was killed."""
    root = target.parents[1] if len(target.parents) > 1 else target
    return root.name.startswith(PREFIX) and is_abandoned(root)
