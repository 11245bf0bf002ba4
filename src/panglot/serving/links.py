"""`--link-paths`: links at hard-coded paths of the platform, which lead to the package."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from panglot.engine.processes.scratch import PREFIX, Scratch
from panglot.errors import StartError
from panglot.machine.temporary import is_abandoned
from panglot.packages.package import FixedPath, Package

log = logging.getLogger("panglot")
WHOLE = "whole-package"
"""The name of the package's folder in the folder that such a link leads to."""
MOST_PLACES = 3
"""How many further lines that use a path are named."""


class Lead(NamedTuple):
    """The target of a link, and the model that owns it."""

    owner: str
    target: Path


class Links:
    """All links of a server. A link leads to its latest owner; if this owner goes, it leads to the one before again."""

    def __init__(self) -> None:
        self._leads: dict[Path, list[Lead]] = {}
        self._made: dict[Path, list[Path]] = {}
        """The folders that were made for a link, the outermost first."""

    @contextlib.contextmanager
    def fixed_paths(
        self, package: Package, make: bool, owner: str = "", instead_of: Collection[str] = ()
    ) -> Iterator[None]:
        """Warn once of every such path; with `make`, link it to the package while this is open. Raises StartError.

        Models of `instead_of` are about to go: their links are taken over.
        """
        if not make:
            for warning in _warnings(package.fixed_paths):
                log.warning("%s", warning, extra={"package": package.name})
            yield
            return
        scratch = Scratch({**package.run_links, WHOLE: package.root})
        led: list[tuple[Path, Lead]] = []
        try:
            for root, inside in {path.root: path.inside for path in package.fixed_paths}.items():
                holder = Path(scratch.folder(f"linked{len(led)}"))
                lead = Lead(owner, holder / inside if package.run_links else holder / WHOLE / inside)
                self._begin(Path(root), lead, instead_of)
                led.append((Path(root), lead))
                log.info("%s leads to %s", root, package.folder, extra={"package": package.name})
            yield
        finally:
            # Links first: none may lead into a folder that has been removed.
            for link, lead in reversed(led):
                self._end(link, lead)
            scratch.close()

    def _begin(self, link: Path, lead: Lead, instead_of: Collection[str]) -> None:
        leads = self._leads.setdefault(link, [])
        if leads and leads[-1].owner in instead_of:
            _turn(link, lead.target)
        elif leads:
            raise StartError(
                f"{link} leads to the model {leads[-1].owner} already",
                fix="serve the two in servers of their own, or change the path in one of the scripts",
            )
        else:
            self._made[link] = _made_for(link, lead.target)
        leads.append(lead)

    def _end(self, link: Path, lead: Lead) -> None:
        leads = self._leads[link]
        leads.remove(lead)
        with contextlib.suppress(OSError):
            if leads:
                _turn(link, leads[-1].target)
                return
            link.unlink()
            for folder in reversed(self._made.pop(link)):
                folder.rmdir()


def _warnings(paths: Sequence[FixedPath]) -> Iterator[str]:
    """One line for each path that a link can stand for, with the places that use it first."""
    uses: dict[str, list[FixedPath]] = {}
    for path in paths:
        uses.setdefault(path.root, []).append(path)
    for root, (first, *others) in uses.items():
        elsewhere = [path for path in others if (path.file, path.line) != (first.file, first.line)]
        places = list(dict.fromkeys(f"{path.file}:{path.line}" for path in elsewhere))
        if len(places) > MOST_PLACES:
            places[MOST_PLACES:] = [f"{len(places) - MOST_PLACES} more"]
        also = f" (used at {', '.join(places)} too)" if places else ""
        yield (
            f"{first.file}:{first.line} uses {first.text}, a path of the platform; "
            f"--link-paths makes {root} lead to this package{also}"
        )


def _turn(link: Path, target: Path) -> None:
    """Change the target of a link, without a moment in which there is no link."""
    beside = link.with_name(f".{link.name}.{os.getpid()}")
    beside.symlink_to(target)
    beside.replace(link)


def _made_for(link: Path, target: Path) -> list[Path]:
    """Make the link and the folders above it. Returns the folders that it made. Raises StartError."""
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
    return above[::-1]


def _is_left_over(target: Path) -> bool:
    """Whether a server that was killed has made the link with this target."""
    return any(folder.name.startswith(PREFIX) and is_abandoned(folder) for folder in target.parents)
