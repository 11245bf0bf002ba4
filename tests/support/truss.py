"""Truss's own server, from the templates of its wheel, as the images of the platform have it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from panglot.dialects.truss.config import read
from support import environments, originals
from support.originals import Original

VERSION = "0.18.36"
SERVER = (
    "fastapi>=0.114,<0.125.0", "uvicorn>=0.24.0", "uvloop>=0.19.0", "pyyaml>=6.0.0", "orjson", "numpy<3",
    "msgpack==1.1.0", "msgpack-numpy==0.4.8", "opentelemetry-api>=1.25.0", "opentelemetry-sdk>=1.25.0",
    "opentelemetry-exporter-otlp-proto-http", "prometheus-client>=0.21.1", "python-json-logger>=2.0.2",
    "aiofiles>=24.1.0", "requests",
)  # fmt: skip
"""What its requirements.txt has, less what only other machines of the platform need."""


def interpreter() -> str:
    """The interpreter of an environment with all that the server imports, and that scripts of the tests import."""
    return originals.interpreter("truss", *SERVER)


def templates() -> Path:
    """The folder of templates of the wheel."""

    def make(folder: Path) -> None:
        target = str(folder / "wheel")
        environments.install(sys.executable, "--no-deps", "--no-compile", "--target", target, f"truss=={VERSION}")

    return environments.made(f"truss-wheel-{VERSION}", make) / "wheel" / "truss" / "templates"


def arrange(package: Path, app: Path) -> None:
    """Make the folder /app of an image: the server, what it shares with other programs, and the package over it."""
    shutil.copytree(templates() / "server", app, dirs_exist_ok=True)
    shutil.copytree(templates() / "shared", app / "_truss_shared", dirs_exist_ok=True)
    shutil.copytree(package, app, dirs_exist_ok=True)
    config = read(package)
    assert config is not None
    # Truss writes the file with its defaults into the image.
    (app / "config.yaml").write_text(yaml.safe_dump(config.whole))


@contextlib.contextmanager
def theirs(package: Path, app: Path, ready: str = "/v1/models/model") -> Iterator[Original]:
    """The original on a package, in a folder that is empty."""
    arrange(package, app)
    own = yaml.safe_load((package / "config.yaml").read_text()).get("environment_variables") or {}
    variables = {**own, "INFERENCE_SERVER_PORT": originals.PORT, "HOME": str(app), "OTEL_SDK_DISABLED": "true"}
    with originals.running([interpreter(), "main.py"], app, ready, variables) as original:
        yield original
