"""config.json: the engine, the API and the packages to install. A fault in it is a warning, and stops no package."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.dialects.modelarts.engines import NAMES
from panglot_worker.files import package_files
from panglot_worker.files.package_files import LARGEST_CONFIGURATION, UnreadableFile

NAME = "config.json"
JSON, FORM = "application/json", "multipart/form-data"
RESTRAINTS = {"EXACT": "==", "ATLEAST": ">=", "ATMOST": "<="}

# A text or comment that is never closed goes on to the end: else every quote in it would begin a further attempt.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*(?:"|\\?\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'("(?:\\.|[^"\\])*(?:"|\\?\Z))|,(?=\s*[}\]])', re.DOTALL)
_REQUIREMENT = re.compile(r"[^\s\x00-\x1f-][^\s\x00-\x1f]*")


@dataclass
class Config:
    """The values that could be read, and everything that is odd about the file."""

    model_type: str = ""
    algorithm: str = ""
    api: dict[str, Any] = field(default_factory=dict)
    """Schemas of request and answer, in the words a worker describes its API with."""
    installs: list[tuple[str, ...]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read(folder: Path) -> Config | None:
    """The config.json of a folder; None when there is none."""
    file = folder / NAME
    if not file.is_file():
        return None
    config = Config()
    table = _parse(file, config.problems)
    config.model_type = _model_type(table.get("model_type"), config.problems)
    config.algorithm = str(table.get("model_algorithm") or "")
    if not config.algorithm:
        config.problems.append(f"{NAME} has no model_algorithm, which the platform demands")
    config.api = _api(table, config.problems)
    config.installs = _installs(table.get("dependencies"), folder, config.problems)
    return config


def _parse(file: Path, problems: list[str]) -> dict[str, Any]:
    """The top-level object, as far as it can be read: comments and stray commas are allowed."""
    try:
        text = package_files.content(file, LARGEST_CONFIGURATION).decode("utf-8-sig", "replace")
    except OSError as error:
        problems.append(f"{NAME} cannot be read: {error.strerror}")
        return {}
    except UnreadableFile as error:
        problems.append(f"{NAME} is not read: {error.problem}")
        return {}
    value: Any = None
    try:
        value = package_files.json_in(text, file)
    except UnreadableFile as error:
        # Packages in the wild have comments and stray commas; they are warnings here.
        mended = _TRAILING.sub(r"\1", _COMMENT.sub(r"\1", text))
        why = f"{error.problem}, line {error.line}" if error.line else error.problem
        try:
            value = package_files.json_in(mended, file, strict=False)
            problems.append(f"{NAME} is not plain JSON ({why}); it was read without comments and stray commas")
        except UnreadableFile:
            problems.append(f"{NAME} is no JSON ({why}); only its model_type was looked for")
            named = re.search(r'"model_type"\s*:\s*"([^"]*)"', text)
            return {"model_type": named[1]} if named else {}
    if not isinstance(value, dict):
        problems.append(f"{NAME} holds no JSON object")
        return {}
    return value


def _model_type(value: Any, problems: list[str]) -> str:
    known = {name.lower(): name for name in NAMES}
    name = known.get(str(value or "").lower(), "")
    if not value:
        problems.append(f"{NAME} has no model_type, which the platform demands")
    elif not name:
        problems.append(f"{NAME}: model_type {str(value)[:40]!r} is none of {', '.join(NAMES)}")
    return name


# The API


def _api(table: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """Request and answer of POST /, as far as they are described."""
    entries = table.get("apis")
    if isinstance(entries, dict):
        entries = [entries]
    if not isinstance(entries, list):
        entries = [table] if "request" in table else []
        if entries:
            problems.append(f"{NAME} has a request outside apis; it was taken as that of POST /")
    chosen = [entry for entry in entries if isinstance(entry, dict) and entry.get("url", "/") == "/"]
    if entries and not chosen:
        problems.append(f"{NAME} describes no API with the url /, the only one that a script has")
    if not chosen:
        return {}
    if any("procotol" in entry for entry in entries if isinstance(entry, dict)):
        problems.append(f"{NAME} spells protocol 'procotol'; neither is used")
    return _described(chosen[0], problems)


def _described(entry: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    request = entry.get("request") if isinstance(entry.get("request"), dict) else {}
    response = entry.get("response")
    if response is None and isinstance(request, dict) and isinstance(request.get("response"), dict):
        problems.append(f"{NAME} has the response inside the request")
        response = request["response"]
    api: dict[str, Any] = {}
    if isinstance(request, dict) and isinstance(request.get("data"), dict):
        api["request_schema"] = schema(request["data"])
        content_type = _content_type(request, problems)
        api["request_types"] = [content_type]
        files = _files(api["request_schema"])
        if content_type == FORM and files:
            others = [name for name in api["request_schema"]["properties"] if name not in files]
            api["example"] = {"kind": "form", "files": dict.fromkeys(files, ""), "names": {}, "fields": others}
    if isinstance(response, dict) and isinstance(response.get("data"), dict):
        api["response_schema"] = schema(response["data"])
    return api


def _content_type(request: dict[str, Any], problems: list[str]) -> str:
    given = next((value for key, value in request.items() if key.lower() == "content-type"), JSON)
    word = str(given).partition(";")[0].strip().lower()
    if word in (JSON, FORM):
        return word
    problems.append(f"{NAME}: Content-type {str(given)[:60]!r} is neither {JSON} nor {FORM}")
    return FORM if "form" in word else JSON


def _files(schema: dict[str, Any]) -> list[str]:
    properties = schema.get("properties", {})
    return [name for name, field in properties.items() if field.get("format") == "binary"]


TYPES = {
    "object": "object", "dict": "object", "array": "array", "list": "array", "string": "string", "str": "string",
    "number": "number", "float": "number", "double": "number", "integer": "integer", "int": "integer",
    "boolean": "boolean", "bool": "boolean",
}  # fmt: skip
PLAIN_KEYS = ("description", "title", "enum", "minimum", "maximum", "minItems", "maxItems", "default", "example")


def schema(given: Any, depth: int = 12) -> dict[str, Any]:
    """A schema of the platform as OpenAPI has it: its type `file` is an upload. Empty for a value that is no schema."""
    if not isinstance(given, dict) or depth == 0:
        return {}
    kind = str(given.get("type", "")).lower()
    portable: dict[str, Any] = {key: given[key] for key in PLAIN_KEYS if key in given}
    if kind == "file":
        return {**portable, "type": "string", "format": "binary"}
    if kind in TYPES:
        portable["type"] = TYPES[kind]
    if isinstance(given.get("properties"), dict):
        portable["type"] = "object"
        portable["properties"] = {str(name): schema(value, depth - 1) for name, value in given["properties"].items()}
        required = given.get("required")
        if isinstance(required, list):
            portable["required"] = [name for name in required if name in portable["properties"]]
    if portable.get("type") == "array":
        portable["items"] = schema(_items(given), depth - 1)
    return portable


def _items(given: dict[str, Any]) -> Any:
    """`items`: some packages spell it `item`, and in some it is a list of one."""
    items = given.get("items", given.get("item"))
    return items[0] if isinstance(items, list) and items else items


# Dependencies


def _installs(groups: Any, folder: Path, problems: list[str]) -> list[tuple[str, ...]]:
    """The arguments of each `pip install`, in the order of the file."""
    installs: list[tuple[str, ...]] = []
    for group in groups if isinstance(groups, list) else []:
        if not isinstance(group, dict) or not isinstance(group.get("packages"), list):
            problems.append(f"{NAME}: a dependency without packages is left out")
            continue
        installer = str(group.get("installer", "pip"))
        for entry in group["packages"]:
            name = entry.get("package_name") if isinstance(entry, dict) else None
            if not isinstance(name, str) or not name:
                problems.append(f"{NAME}: a package without package_name is left out")
            elif installer != "pip":
                problems.append(f"{NAME} asks for {name} by {installer}; only pip is used, install it yourself")
            else:
                requirement = _requirement(name, entry, folder, problems)
                installs += [(requirement,)] if requirement else []
    return installs


def _requirement(name: str, entry: dict[str, Any], folder: Path, problems: list[str]) -> str:
    version, restraint = str(entry.get("package_version") or ""), str(entry.get("restraint") or "")
    # A wheel in the package. With ./ in front, pip takes it for a path and not for a name.
    if (folder / name).is_file():
        return f"./{name}"
    text = name
    if version:
        sign = RESTRAINTS.get(restraint.upper(), "")
        if not sign:
            problems.append(
                f"{NAME}: {name} has the restraint {restraint!r}, not {', '.join(RESTRAINTS)}; taken as EXACT"
            )
        text += (sign or "==") + version
    if not _REQUIREMENT.fullmatch(text):
        problems.append(f"{NAME}: {text!r} is no package name; it is left out")
        return ""
    return text
