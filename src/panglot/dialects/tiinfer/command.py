"""`panglot tiinfer`: instead of `python3 -m tiinfer`, with the options of both its generations."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from panglot import dialects
from panglot.cli.options import (
    Grouped,
    at_platform_address,
    check_interpreter,
    parse_flags,
    setting_options,
    warn,
    warned,
)
from panglot.dialects.tiinfer import mosec_options
from panglot.dialects.tiinfer.detect import SCRIPT
from panglot.errors import StartError, near
from panglot.packages.package import Package, outside
from panglot.serving import planning
from panglot.settings import units

OWN = ("dialect", "host", "port", "timeout", "queue", "max_wait_ms", "max_body", "max_json", "log_level")
"""Settings that the platform's options stand for."""

PLATFORM_PORT, PLATFORM_HOST = 8501, "0.0.0.0"  # noqa: S104  the platform's address; other machines need a token
PLATFORM_FOLDER = "/data/model"

OPTIONS = (
    ("--port", "port", "N", f"port to listen on [{PLATFORM_PORT}]"),
    ("--http_port", "http_port", "N", "the same as --port, as the first generation wrote it"),
    ("--address", "address", "ADDRESS", f"address to listen on [{PLATFORM_HOST} with a token or --no-auth]"),
    ("--timeout", "timeout", "MS", "milliseconds after which a request gets 408 [60000]"),
    ("--wait", "wait", "MS", "milliseconds a batch may wait for more requests [0]"),
    ("--capacity", "capacity", "N", "requests that may wait; beyond it 429 [1024]"),
    ("--max-request-size", "max_request_size", "BYTES", "largest request body; beyond it 413 [64 MiB]"),
    ("--namespace", "namespace", "NAME", f"first word of mosec's metrics [{mosec_options.NAMESPACE}]"),
    ("--log-level", "log_level", "LEVEL", "debug, info, warning or error [info]"),
    ("--path", "path", "PATH", "has no effect here"),
    ("--model_dir", "model_dir", "DIR", f"folder given to the model [TI_MODEL_DIR, or {PLATFORM_FOLDER}]"),
    ("--algorithm_name", "algorithm_name", "NAME", "name in /v1/models/NAME:predict [m]"),
)
FLAGS = (
    ("--debug", "debug", "the same as --log-level debug"),
    ("--dry-run", "dry_run", "load the package, send its example once, and say how that went"),
    ("--compression", "compression", "has no effect here"),
)


def platform_options(function: Any) -> Any:
    for flag, name, about in reversed(FLAGS):
        function = click.option(flag, name, is_flag=True, default=None, help=about)(function)
    for flag, name, metavar, about in reversed(OPTIONS):
        function = click.option(flag, name, metavar=metavar, help=about)(function)
    return function


@click.command(cls=Grouped)
@click.argument("package_path", metavar="[PATH]", required=False)
@platform_options
@functools.partial(setting_options, without=OWN)
def tiinfer(package_path: str | None, **given: Any) -> None:
    """Serve a tiinfer package as `python3 -m tiinfer` would: that of PATH, of this folder, or of the model's folder.

    Takes the options of both generations, the variables TI_* and MOSEC_*, and the other options of `panglot serve`.
    """
    words = {name: given.pop(name) for name in [entry[1] for entry in (*OPTIONS, *FLAGS)]}
    words = {name: value for name, value in words.items() if value is not None}
    model_dir, name = words.pop("model_dir", ""), words.pop("algorithm_name", "")
    chosen = mosec_options.read(_one_port(words), lambda option: f"--{option.replace('_', '-')}")
    folder = find_folder(package_path, model_dir)
    package = named(dialects.discover(folder, "tiinfer"), model_dir or _default_folder(folder), name, chosen)
    flags = parse_flags(given) | chosen.settings
    resolved = dialects.resolve(package, flags, os.environ)
    settings, note = at_platform_address(resolved, os.environ, PLATFORM_HOST)
    if resolved.sources["port"] == "default":
        settings = dataclasses.replace(settings, port=PLATFORM_PORT)
    if chosen.dry_run or os.environ.pop("MOSEC_DRY_RUN", "").lower() in units.YES:
        warn(resolved.warnings)
        dry_run(folder, package, flags | {"host": settings.host, "port": settings.port})
        return
    if settings.python:
        check_interpreter(settings.python)
    from panglot.serving.server import serve

    serve(planning.alone(warned(package, resolved, *note), settings))


def _one_port(words: Mapping[str, Any]) -> dict[str, str]:
    """The options as text, with one port."""
    given = {name: "true" if value is True else str(value) for name, value in words.items()}
    old = given.pop("http_port", None)
    if old is not None and given.setdefault("port", old) != old:
        raise StartError(f"--port {given['port']} and --http_port {old} differ", fix="give one of them")
    return given


# The package


def find_folder(path: str | None, model_dir: str) -> Path:
    """The folder of the script: PATH, this folder, or the model's. Raises StartError when it is in none of them."""
    if path:
        return Path(path)
    named = (model_dir, os.environ.get("TI_MODEL_DIR", ""), PLATFORM_FOLDER)
    tried = list(dict.fromkeys([Path.cwd(), *(Path(name).resolve() for name in named if name)]))
    for folder in tried:
        if (folder / SCRIPT).is_file():
            return folder
    looked = ", ".join(near(str(folder)) for folder in tried)
    raise StartError(f"there is no {SCRIPT} in {looked}", fix="start it in the package's folder, or name the folder")


def _default_folder(folder: Path) -> str:
    if os.environ.get("TI_MODEL_DIR"):
        return ""
    return PLATFORM_FOLDER if Path(PLATFORM_FOLDER).is_dir() else str(folder)


def named(package: Package, model_dir: str, name: str, chosen: mosec_options.Chosen) -> Package:
    """The package, completed by the command line."""
    options, environment = dict(package.options), dict(package.environment)
    if model_dir:
        if Path.cwd() != package.folder:
            model_dir = os.path.abspath(model_dir)
        options["model_dir"] = environment["TI_MODEL_DIR"] = model_dir
    if name:
        if not name.isprintable() or "/" in name or "{" in name or "?" in name:
            raise StartError(f"--algorithm_name {name!r} cannot stand in a path")
        options["algorithm_name"] = name
    if chosen.namespace:
        options["namespace"] = chosen.namespace
    problems = (*package.problems, *chosen.notes)
    elsewhere = outside(package.root, str(options["model_dir"]))
    return dataclasses.replace(
        package, options=options, environment=environment, problems=problems, elsewhere=elsewhere
    )


def dry_run(folder: Path, package: Package, flags: dict[str, Any]) -> None:
    """Print the findings of `panglot doctor` about the package, its address and its model's folder.

    Ends the process with exit code 3 when the package cannot be served.
    """
    from panglot.cli.commands.doctor import show
    from panglot.tools.doctor.examining import examine

    # The doctor serves the package in a further process, which gets the model's folder by this variable.
    os.environ["TI_MODEL_DIR"] = str(package.options["model_dir"])
    report = examine(str(folder), flags, flags, lambda _: None)
    show(report)
    if report.problems:
        sys.exit(3)


COMMAND = tiinfer
