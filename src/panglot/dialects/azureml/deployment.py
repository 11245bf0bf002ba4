"""Deployment files of Azure ML, which name the code, the model, the environment and its variables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages import yaml_file
from panglot_worker.files.package_files import LARGEST_CONFIGURATION, content_if_any

SUFFIXES = (".yml", ".yaml")
MARKS = (b"scoring_script", b"DeploymentConfiguration", b"atchDeployment", b"atch_deployment")
BATCH = re.compile(r"batch_?deployment", re.IGNORECASE)
LINE = re.compile(r"^(?P<indent> *)(?:- +)?(?P<key>[\w$.-]+) *:(?: +(?P<value>[^#\n]*?))? *(?:#.*)?$")


@dataclass(frozen=True)
class Deployment:
    """The values of a deployment file. Paths are absolute; a value that the file does not have is empty."""

    file: Path
    line: int
    """The line that names the script."""
    code: Path
    """The folder of the code, which modules are imported from."""
    script: Path
    model: Path | None = None
    """The model's file or folder on this machine."""
    conda: Path | None = None
    variables: dict[str, str] = field(default_factory=dict)
    timeout_ms: int = 0
    is_batch: bool = False


def in_folder(folder: Path) -> list[Deployment]:
    """The deployment files of a folder, in the order of their names."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix in SUFFIXES]
    return [deployment for file in files if (deployment := read(file)) is not None]


def read(file: Path) -> Deployment | None:
    """The deployment in a YAML file; None for other files. Raises StartError."""
    text = content_if_any(file, LARGEST_CONFIGURATION)
    if not any(mark in text for mark in MARKS):
        return None
    table, line = _table(file, text.decode("utf-8", "replace"))
    code = _section(table, "code_configuration")
    schema = f"{table.get('$schema', '')} {table.get('type', '')} {file.name.replace('-', '_')}"
    is_batch = bool(BATCH.search(schema))
    script = str(code.get("scoring_script") or table.get("scoring_script") or "")
    if not script:
        return None
    folder = file.parent
    source = (folder / str(code.get("code") or ".")).resolve()
    model, environment = table.get("model"), _section(table, "environment")
    model = model.get("path") if isinstance(model, dict) else model
    settings = _section(table, "request_settings")
    variables = _section(table, "environment_variables")
    return Deployment(
        file=file,
        line=line,
        code=source,
        script=source / script,
        model=_local(folder, model),
        conda=_local(folder, environment.get("conda_file")),
        variables={name: _written(value) for name, value in variables.items() if "{{" not in _written(value)},
        timeout_ms=_number(settings.get("request_timeout_ms")),
        is_batch=is_batch,
    )


def _table(file: Path, text: str) -> tuple[dict[str, Any], int]:
    """The values, and the line of `scoring_script`. A file that placeholders make no YAML is read line by line."""
    try:
        parsed = yaml_file.parse(text, file)
    except StartError:
        if "{{" not in text:
            raise
        return by_line(text), _line_of(text)
    line = parsed.line("code_configuration", "scoring_script") or parsed.line("scoring_script")
    return parsed.table, line


def by_line(text: str) -> dict[str, Any]:
    """The mappings and plain values of a text that is no valid YAML, by its indentation. Lists are left out."""
    table: dict[str, Any] = {}
    open_mappings: list[tuple[int, dict[str, Any]]] = [(-1, table)]
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        indent, value = len(match["indent"]), match["value"]
        while len(open_mappings) > 1 and open_mappings[-1][0] >= indent:
            open_mappings.pop()
        inside = open_mappings[-1][1]
        if value:
            inside[match["key"]] = value.strip("\"'")
        else:
            mapping: dict[str, Any] = {}
            inside[match["key"]] = mapping
            open_mappings.append((indent, mapping))
    return table


def _line_of(text: str) -> int:
    return text.count("\n", 0, max(0, text.find("scoring_script"))) + 1


def _section(table: dict[str, Any], name: str) -> dict[str, Any]:
    section = table.get(name)
    return section if isinstance(section, dict) else {}


def _local(folder: Path, text: Any) -> Path | None:
    """The file or folder of this machine that a text names; None for a name of a workspace, and for an address."""
    if not isinstance(text, str) or not text or text.startswith("azureml:") or "://" in text or "{{" in text:
        return None
    path = (folder / text).resolve()
    return path if path.exists() else None


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _number(value: Any) -> int:
    text = str(value or "").strip()
    return int(text) if text.isdigit() and len(text) < 12 else 0
