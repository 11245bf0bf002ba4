"""How a script is served, by the platform's variables, its config.json and a deployment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.dialects.azureml.entry import Entry
from panglot.errors import StartError
from panglot.settings import counts, units
from panglot_worker.files.package_files import UnreadableFile, json_value

KNOWN = frozenset({
    "AML_APP_ROOT", "AZUREML_SOURCE_DIRECTORY", "AZUREML_ENTRY_SCRIPT", "SERVICE_NAME", "WORKSPACE_NAME",
    "SERVICE_PATH_PREFIX", "SERVICE_VERSION", "SCORING_TIMEOUT_MS", "AZUREML_LOG_LEVEL", "AML_APP_INSIGHTS_ENABLED",
    "AML_APP_INSIGHTS_KEY", "AML_MODEL_DC_STORAGE_ENABLED", "APP_INSIGHTS_LOG_RESPONSE_ENABLED", "AML_CORS_ORIGINS",
    "AZUREML_MODEL_DIR", "HOSTNAME", "AZUREML_DEBUG_PORT", "WORKER_COUNT", "WORKER_TIMEOUT", "WORKER_PRELOAD",
})  # fmt: skip
"""The keys that the platform's config.json may have."""
WITHOUT_EFFECT = {
    "AML_APP_INSIGHTS_ENABLED": "Panglot has /metrics and --otel instead",
    "AZUREML_DEBUG_PORT": "use --inline and breakpoint()",
    # Spelt as the platform spells it.
    "SEPERATE_HEALTH_ENDPOINT": "GET / is answered at the server's own port",
    "HEALTH_PORT": "GET / is answered at the server's own port",
    "SERVER_PORT": "use --port",
    "WORKER_PRELOAD": "every worker runs init() itself, and --workers says how many there are",
}
"""Variables of the platform without an effect here, with the means that Panglot has instead."""
NO = ("", "false", "0", "no")
VERSION = "azmlinfsrv/1.5.1"
"""The platform's server that is reproduced here, by the name that it gives itself."""


@dataclass
class Variables:
    """The platform's variables, wherever they come from: the environment wins over the files."""

    values: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def get(self, name: str, default: str = "") -> str:
        return self.values.get(name) or default

    def whole(self, name: str, least: int) -> int | None:
        """A whole number. Raises StartError."""
        text = self.get(name)
        if not text:
            return None
        if not text.strip().isdigit() or int(text) < least:
            where = self.sources.get(name, "")
            raise StartError(f"{name}={text}: must be a whole number, at least {least}", file=where, fix="correct it")
        return int(text)


def read(entry: Entry, environ: Mapping[str, str]) -> Variables:
    """The variables of the environment, of a config.json and of a deployment."""
    known = Variables()
    for file in _config_files(entry, environ):
        table = _config(file)
        if table is None:
            continue
        for name, value in table.items():
            if name in KNOWN:
                known.values[name] = "true" if value is True else "false" if value is False else str(value)
                known.sources[name] = str(file)
        extra = sorted(set(table) - KNOWN)
        if extra:
            known.problems.append(f"{file.name} says what the platform does not know: {', '.join(extra[:5])}")
        break
    if entry.deployment is not None:
        for name, text in entry.deployment.variables.items():
            known.values[name], known.sources[name] = text, str(entry.deployment.file)
    for name in {*KNOWN, *known.values, *WITHOUT_EFFECT}:
        # Last, so that the environment wins over the files.
        if environ.get(name):
            known.values[name] = environ[name]
            known.sources.pop(name, None)
    for name, instead in WITHOUT_EFFECT.items():
        if known.get(name).lower() not in NO:
            known.problems.append(f"{name} has no effect here: {instead}")
    return known


def _config_files(entry: Entry, environ: Mapping[str, str]) -> list[Path]:
    named = environ.get("AZUREML_CONFIG_FILE", "")
    return [Path(named)] if named else [entry.folder / "config.json", entry.script.parent / "config.json"]


def _config(file: Path) -> dict[str, Any] | None:
    """The values of a config.json; None for a file of another kind, such as a model's own config.json."""
    try:
        table = json_value(file)
    except (OSError, UnreadableFile):
        return None
    return table if isinstance(table, dict) and KNOWN & table.keys() else None


def defaults(known: Variables, entry: Entry) -> dict[str, Any]:
    """The settings that the platform's variables stand for. Raises StartError."""
    chosen: dict[str, Any] = {"strict_results": True}
    workers = known.whole("WORKER_COUNT", 1)
    if workers is not None:
        chosen["workers"] = counts.exactly(workers)
    milliseconds = known.whole("SCORING_TIMEOUT_MS", 1)
    if milliseconds is None and entry.deployment is not None:
        milliseconds = entry.deployment.timeout_ms or None
    if milliseconds is not None:
        chosen["timeout"] = milliseconds / 1000
    seconds = known.whole("WORKER_TIMEOUT", 1)
    if seconds is not None:
        chosen["run_timeout"] = float(seconds)
    if known.get("AML_CORS_ORIGINS"):
        try:
            chosen["cors_origin"] = units.origins(known.get("AML_CORS_ORIGINS"))
        except ValueError as error:
            raise StartError(f"AML_CORS_ORIGINS: {error}", file=known.sources.get("AML_CORS_ORIGINS", "")) from None
    return chosen


def options(known: Variables) -> dict[str, Any]:
    """The options that the worker and the pages need."""
    shown = os.environ.get("SERVER_VERSION_LOG_RESPONSE_ENABLED", "true").lower() == "true"
    return {
        "server_version": VERSION if shown else "",
        "log_level": known.get("AZUREML_LOG_LEVEL", "INFO"),
        "service": {
            "name": known.get("SERVICE_NAME", "ML service"),
            "version": known.get("SERVICE_VERSION", "1.0"),
            "prefix": known.get("SERVICE_PATH_PREFIX"),
        },
    }
