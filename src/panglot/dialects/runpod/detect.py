"""The runpod dialect: a script that calls `runpod.serverless.start`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from panglot.dialects.runpod import dockerfile, examples, hints, script
from panglot.dialects.runpod.dockerfile import Dockerfile
from panglot.dialects.runpod.script import WorkerScript
from panglot.errors import StartError, near
from panglot.packages.package import Package

LOOKS_FOR = "a script that calls runpod.serverless.start: handler.py, rp_handler.py or main.py, also in src"
USUAL = ("handler.py", "rp_handler.py", "src/handler.py", "src/rp_handler.py", "main.py", "src/main.py")
"""The entry, where several scripts start a worker and no Dockerfile names one."""
HANDLERS = USUAL[:4]
"""Names of scripts that must have a handler."""
FOLDERS = (".", "src")
MOST_SCRIPTS = 100
ROOT_FILES = (dockerfile.NAME, "test_input.json", ".runpod", "requirements.txt")
"""Files by which the folder above `src` is known to be the package."""
EXECUTION = 600.0
"""Seconds that the platform gives a job without a policy."""
FETCHES = {"fetch_bytes": 5 << 30, "fetch_urls": 256, "fetch_timeout": 30.0}
"""What a job may name by address, unless settings say otherwise; the platform has no limit."""


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    folder = _folder(path)
    if folder is None:
        return None
    image = dockerfile.read(folder)
    worker = script.find(path) if path.is_file() else _entry(folder, image)
    if worker is None:
        for name in HANDLERS:
            script.check_not_forgotten(folder / name)
    return _package(folder, worker, image, path.is_dir()) if worker is not None else None


def _folder(path: Path) -> Path | None:
    """The folder that the script runs in."""
    if path.is_dir():
        return path
    if path.suffix != ".py":
        return None
    above = path.parent.parent
    is_in_source = path.parent.name == "src" and any((above / name).exists() for name in ROOT_FILES)
    return above if is_in_source else path.parent


def _entry(folder: Path, image: Dockerfile) -> WorkerScript | None:
    """The script of a folder: the one that the Dockerfile runs, the one with the usual name, or the only one."""
    workers = [worker for path in _scripts(folder, image) if (worker := script.find(path)) is not None]
    if len(workers) <= 1:
        return workers[0] if workers else None
    for worker in workers:
        if image.names(worker.path, folder):
            return worker
    by_name = {str(worker.path.relative_to(folder)): worker for worker in workers}
    for name in USUAL:
        if name in by_name:
            return by_name[name]
    raise StartError(
        f"{' and '.join(by_name)} each call runpod.serverless.start",
        file=str(folder),
        fix=f"name one: panglot serve {near(str(workers[0].path))}",
    )


def _scripts(folder: Path, image: Dockerfile) -> Iterator[Path]:
    """The scripts that may start the worker. One that the Dockerfile runs may lie deeper."""
    for name in FOLDERS:
        yield from sorted((folder / name).glob("*.py"))[:MOST_SCRIPTS]
    named = Path(image.script.lstrip("/")) if image.script else None
    if named is not None and ".." not in named.parts and len(named.parts) > 1:
        path = folder / named
        if path.is_file() and str(path.parent.relative_to(folder)) not in FOLDERS:
            yield path


def _package(folder: Path, worker: WorkerScript, image: Dockerfile, is_whole: bool) -> Package:
    shown = worker.path.relative_to(folder)
    return Package(
        name=folder.name if is_whole or str(shown) in USUAL else worker.path.stem,
        folder=folder,
        script=worker.path,
        dialect="runpod",
        entry=worker.handler or "handler",
        reasons=(f"{shown}:{worker.line} calls runpod.serverless.start", *_chosen(worker, folder, image)),
        problems=hints.problems(folder, worker, image),
        config=file if (file := folder / "panglot.toml").is_file() else None,
        # The platform ends a job that is cancelled or overruns; and jobs may name videos and weights, which are large.
        defaults={"timeout": EXECUTION, "on_leave": "interrupt", **FETCHES},
        options={
            "example": examples.example(folder, worker.path.parent),
            "endpoint": _endpoint(os.environ),
        },
        fixed_paths=hints.fixed_paths(folder, worker, image),
    )


def _chosen(worker: WorkerScript, folder: Path, image: Dockerfile) -> tuple[str, ...]:
    return (f"{dockerfile.NAME}:{image.line} runs it",) if image.names(worker.path, folder) else ()


def _endpoint(environ: Mapping[str, str]) -> str:
    """The id of the endpoint, with which the platform's path for real-time requests begins; empty on most machines."""
    return environ.get("RUNPOD_ENDPOINT_ID", "").strip("/")
