"""config.properties of TorchServe: what it says about the server and its models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages.source import unreadable
from panglot_worker.files.package_files import UnreadableFile, text

FILE = "config.properties"
KEYS = (
    "inference_address", "management_address", "metrics_address", "model_store", "load_models", "models",
    "default_workers_per_model", "job_queue_size", "default_response_timeout", "max_request_size", "service_envelope",
    "decode_input_request", "install_py_dep_per_model", "number_of_gpu", "limit_max_image_pixels",
    "cors_allowed_origin", "grpc_inference_port", "grpc_inference_address", "enable_envvars_config",
    "disable_token_authorization", "enable_model_api",
)  # fmt: skip
"""The keys that are read. The other keys of the platform concern nothing that Panglot has."""
MINE = frozenset(KEYS) - {"models", "load_models", "model_store"}
"""Keys by which a file of this platform is recognised."""


@dataclass(frozen=True)
class Properties:
    """What a config.properties says, as texts by key."""

    file: Path | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def text(self, key: str) -> str:
        return self.values.get(key, "")

    def number(self, key: str) -> int | None:
        """A whole number; None where there is none. Raises StartError."""
        value = self.text(key)
        if not value:
            return None
        if not value.lstrip("-").isdecimal():
            raise self._error(f"{key} must be a whole number, not {value[:40]!r}", key)
        return int(value)

    def truth(self, key: str, default: bool) -> bool:
        """As Java reads it: `true` in any case is true, and every other text false."""
        value = self.text(key)
        return value.strip().lower() == "true" if value else default

    def port(self, key: str) -> int | None:
        """The port of an address such as `http://0.0.0.0:8080`. Raises StartError."""
        value = self.text(key)
        if not value:
            return None
        last = value.rpartition(":")[2].strip("/")
        if not last.isdecimal():
            raise self._error(f"{key} has no port: {value[:80]!r}", key)
        return int(last)

    def host(self, key: str) -> str:
        """The host of an address such as `http://0.0.0.0:8080`."""
        return self.text(key).partition("://")[2].rpartition(":")[0].strip("[]")

    def model(self, name: str, version: str) -> dict[str, Any]:
        """What `models={...}` says about a version of a model. Raises StartError."""
        if not self.text("models"):
            return {}
        try:
            table = json.loads(self.text("models"))
        except ValueError as error:
            raise self._error(f"models is no JSON: {error}", "models") from None
        versions = table.get(name) if isinstance(table, dict) else None
        if not isinstance(versions, dict):
            return {}
        # A version that is not listed has what the first one has: a model of plain sources has no version of its own.
        chosen: Any = versions.get(version) or next(iter(versions.values()), None)
        return chosen if isinstance(chosen, dict) else {}

    def _error(self, problem: str, key: str) -> StartError:
        return StartError(problem, file=str(self.file or FILE), line=self.lines.get(key, 0))


def read(file: Path, environ: Mapping[str, str]) -> Properties:
    """A config.properties. With `enable_envvars_config=true`, variables `TS_KEY` stand for keys that it lacks."""
    try:
        values, lines = _parsed(text(file))
    except UnreadableFile as error:
        raise unreadable(error) from None
    except OSError as error:
        raise StartError(f"it cannot be read: {error.strerror or error}", file=str(file)) from None
    if values.get("enable_envvars_config", environ.get("TS_ENABLE_ENVVARS_CONFIG", "")).lower() == "true":
        for key in KEYS:
            if f"TS_{key.upper()}" in environ:
                values.setdefault(key, environ[f"TS_{key.upper()}"])
    return Properties(file, values, lines)


def beside(folder: Path, environ: Mapping[str, str]) -> Properties:
    """The config.properties of a folder, where it is one of this platform."""
    file = folder / FILE
    if not file.is_file():
        return Properties()
    properties = read(file, environ)
    # Java programs of many kinds have a file of this name.
    return properties if MINE & set(properties.values) else Properties()


def _parsed(content: str) -> tuple[dict[str, str], dict[str, int]]:
    """The values of a file of Java's properties, and their lines: a backslash at the end joins two lines."""
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    pending, start = "", 0
    for number, line in enumerate(content.splitlines(), 1):
        piece = line.strip()
        if not pending and (not piece or piece[0] in "#!"):
            continue
        start = start if pending else number
        if piece.endswith("\\"):
            pending += piece[:-1]
            continue
        key, _, value = (pending + piece).partition("=")
        values[key.strip()], lines[key.strip()] = value.strip(), start
        pending = ""
    return values, lines
