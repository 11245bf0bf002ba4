"""Things that a truss needs, and only the platform has: fixed paths, system packages, weights, secrets, a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from panglot.dialects.truss.config import Config
from panglot.packages.package import FixedPath
from panglot.packages.source import texts_beginning
from panglot_worker.files.package_files import content_if_any

APP = re.compile(r"(/app)(?=/|$)")
MOST_SCRIPTS = 200
SECRETS = Path("/secrets")


def fixed_paths(config: Config) -> tuple[FixedPath, ...]:
    """Every text in the scripts of the package that begins with the folder of the platform's images."""
    scripts = sorted(config.script.parent.rglob("*.py"))[:MOST_SCRIPTS]
    named = [script for script in scripts if b"/app" in content_if_any(script)]
    return tuple(entry for script in named for entry in _fixed_in(script, config.folder))


def _fixed_in(script: Path, folder: Path) -> Iterator[FixedPath]:
    for match, line in texts_beginning(script, APP):
        yield FixedPath(match.string, str(script.relative_to(folder)), line, match[1])


def problems(config: Config, environ: Mapping[str, str]) -> tuple[str, ...]:
    """One line for each thing that may be missing here."""
    return (*_for_the_image(config), *_weights(config), *_secrets(config, environ), *_gpu(config))


def _line(config: Config, *keys: str) -> str:
    return f"config.yaml:{config.file.line(*keys)}"


def _for_the_image(config: Config) -> Iterator[str]:
    packages = config.texts("system_packages")
    if packages:
        names = " ".join(packages)
        yield f"{_line(config, 'system_packages')} wants system packages: apt-get install {names}"
    if config.table.get("build_commands"):
        yield f"{_line(config, 'build_commands')} has build_commands, which are not run here: run them by hand"
    if config.table.get("base_image"):
        yield f"{_line(config, 'base_image')} names a base image: what it brings must be installed here"
    file = config.text("requirements_file")
    if file and not file.endswith(".txt"):
        yield f"{_line(config, 'requirements_file')} names {file}, which pip does not read: install it by hand"


def _weights(config: Config) -> Iterator[str]:
    for key in ("model_cache", "weights", "external_data"):
        if config.table.get(key):
            yield (
                f"{_line(config, key)} has {key}, which the platform downloads before the start: "
                "download the files and name their folder in the script, or use --link-paths for /app"
            )


def _secrets(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in config.section("secrets").items():
        if not value and not environ.get(f"TRUSS_SECRET_{name}") and not (SECRETS / name).is_file():
            yield f"{_line(config, 'secrets', name)} wants the secret {name}: set TRUSS_SECRET_{name} to its value"


def _gpu(config: Config) -> Iterator[str]:
    accelerator = config.section("resources").get("accelerator")
    if accelerator and not Path("/proc/driver/nvidia").exists():
        yield f"{_line(config, 'resources', 'accelerator')} wants a GPU ({accelerator}), and this machine has none"
