"""What a worker needs that only its image, or the platform, has: other programs, fixed paths, the network volume."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from panglot.dialects.runpod.dockerfile import NAME, Dockerfile
from panglot.dialects.runpod.script import WorkerScript
from panglot.packages.package import FixedPath
from panglot.packages.source import texts_beginning
from panglot_worker.files.package_files import content_if_any

VOLUME = "/runpod-volume"
MOST_SCRIPTS = 200
OF_SYSTEM = frozenset({"/", "/bin", "/dev", "/etc", "/home", "/opt", "/proc", "/root", "/tmp", "/usr", "/var"})  # noqa: S108
"""Folders that no package can stand for."""


def problems(folder: Path, worker: WorkerScript, image: Dockerfile) -> tuple[str, ...]:
    """One line for each thing that may be missing here."""
    return (*_other_programs(image), *_volume(folder, worker))


def _other_programs(image: Dockerfile) -> Iterator[str]:
    if image.shell_script:
        yield (
            f"{NAME}:{image.line} starts {image.shell_script}, which is not run here: "
            "start what it starts besides the worker, such as another server, by hand"
        )


def _volume(folder: Path, worker: WorkerScript) -> Iterator[str]:
    if Path(VOLUME).exists() or worker.tree is None:
        return
    for node in ast.walk(worker.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(VOLUME):
            where = f"{worker.path.relative_to(folder)}:{node.lineno}"
            yield f"{where} reads {node.value}, the platform's network volume: mount or link it at {VOLUME}"
            return


def fixed_paths(folder: Path, worker: WorkerScript, image: Dockerfile) -> tuple[FixedPath, ...]:
    """Every text in the scripts of the package that begins with the folder it has in its image."""
    root = image.workdir.rstrip("/")
    if not root or root in OF_SYSTEM or "$" in root:
        return ()
    beginning = re.compile(f"({re.escape(root)})(?=/|$)")
    scripts = sorted({*worker.path.parent.glob("*.py"), *folder.glob("*.py")})[:MOST_SCRIPTS]
    named = [path for path in scripts if root.encode() in content_if_any(path)]
    return tuple(
        FixedPath(match.string, str(path.relative_to(folder)), line, root)
        for path in named
        for match, line in texts_beginning(path, beginning)
    )
