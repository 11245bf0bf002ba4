"""The configuration that a script gets at its start.

It comes from folders of files, from the platform's variables, from the platform's own file, and from `panglot.toml`.
Later sources win.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.dialects.evals.addresses import is_address, without_query
from panglot.dialects.evals.layout import CONFIG, ScriptPlace
from panglot.errors import StartError
from panglot.packages.source import unreadable
from panglot.settings import suggestion, tomlfile
from panglot.terminal.text import counted
from panglot_worker.files.package_files import UnreadableFile, json_value

MODEL_FOLDERS = ("model_files", "models")
CUSTOM_FOLDER = "custom_files"
FOLDERS = ("model_files", "custom_files")
PORT = re.compile(r"[0-9]{1,5}")

KINDS: dict[str, type] = {
    "app": str,
    "batch_size": int,
    "use_device": str,
    "workspace": str,
    "model_files": dict,
    "custom_files": dict,
    "custom_params": dict,
    "model_params": dict,
    "tar_file": str,
    "image_width": int,
    "net_preprocess": bool,
    "split_batch": bool,
    "uri_files": bool,
    "link_large": bool,
    "qiniu_domains": dict,
    "platform_codes": bool,
    "retry_57x": int,
}
"""Every key of the table [evals] in `panglot.toml`, which is every entry a script is given and every switch."""
WORDS: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", dict: "a table"}


@dataclass(frozen=True)
class Config:
    values: dict[str, Any]
    port: int = 0
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass
class _Layers:
    """Gathers values, the strongest last."""

    values: dict[str, Any] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    port: int = 0


def read(where: ScriptPlace, given: str, toml: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration of a package; `given` is the file of --config. Raises StartError."""
    layers = _Layers()
    _folders(where, layers)
    _variables(environ, layers)
    file = Path(given).resolve() if given else where.root / CONFIG
    if given and not file.is_file():
        raise StartError(f"--config {given}: there is no such file")
    if file.is_file():
        _platform(file, layers)
    if toml is not None:
        _table(toml, layers)
    return Config(layers.values, layers.port, tuple(layers.reasons), tuple(layers.problems))


def _folders(where: ScriptPlace, layers: _Layers) -> None:
    """Take the folders of files beside the script: the way that needs no configuration."""
    for path in dict.fromkeys((where.root, where.folder)):
        for name in MODEL_FOLDERS:
            folder = path / name
            if folder.is_dir() and not (folder / "__init__.py").exists() and "model_files" not in layers.values:
                layers.values["model_files"] = files_in(folder)
                layers.reasons.append(
                    f"model_files are {counted(len(layers.values['model_files']), 'file')} of {name}/"
                )
        if (path / CUSTOM_FOLDER).is_dir() and "custom_files" not in layers.values:
            layers.values["custom_files"] = files_in(path / CUSTOM_FOLDER)


def files_in(folder: Path) -> dict[str, str]:
    """Every file below a folder, by its path in it; hidden ones are left out."""
    return {
        str(path.relative_to(folder)): str(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def _variables(environ: Mapping[str, str], layers: _Layers) -> None:
    if environ.get("USE_DEVICE"):
        layers.values["use_device"] = environ["USE_DEVICE"]
    port = environ.get("PORT_HTTP", "")
    if port:
        layers.port = _port(port, "PORT_HTTP")
    _note_mode(environ.get("RUN_MODE", ""), "RUN_MODE", layers)
    _note_owner(environ.get("QINIU_ACCESS_KEY"), environ.get("QINIU_SECRET_KEY"), layers)


def _note_owner(ak: Any, sk: Any, layers: _Layers) -> None:
    """The keys that sign addresses of private files; both or none."""
    if ak and sk:
        layers.values["owner"] = {"ak": str(ak), "sk": str(sk)}


def _port(value: Any, where: str, file: str = "") -> int:
    text = str(value)
    if not PORT.fullmatch(text) or not 0 < int(text) < 65536:
        raise StartError(f"{where} = {value!r}: expected a port", file=file)
    return int(text)


def _note_mode(mode: str, where: str, layers: _Layers) -> None:
    if mode and mode != "standalone":
        layers.problems.append(f"{where} {mode}: there is no queue and no etcd here; HTTP is served, as in standalone")


# The platform's own file


def _platform(file: Path, layers: _Layers) -> None:
    try:
        value = json_value(file)
    except UnreadableFile as error:
        raise unreadable(error) from None
    if not isinstance(value, dict):
        raise StartError("expected a JSON object", file=str(file))
    release = value.get("release") or {}
    if not isinstance(release, dict):
        raise StartError("release: expected an object", file=str(file))
    values = layers.values
    for name in ("use_device", "workspace", "app"):
        if value.get(name):
            values[name] = _checked(name, value[name], file)
    for name, theirs in RELEASE.items():
        entry = next((release[key] for key in theirs if release.get(key) is not None), None)
        if entry is not None:
            values[name] = _checked(name, entry, file)
    _resolve(values, file)
    if value.get("http_port"):
        layers.port = _port(value["http_port"], "http_port", str(file))
    _note_mode(str(value.get("run_mode", "")), f"{file.name}: run_mode", layers)
    owner = value.get("owner")
    if isinstance(owner, dict):
        _note_owner(owner.get("ak"), owner.get("sk"), layers)
    layers.reasons.append(f"{file.name} says how it is started")


RELEASE = {
    "batch_size": ("batch_size",),
    "image_width": ("image_width",),
    "tar_file": ("tar_file", "model_file"),
    "custom_files": ("custom_files",),
    "custom_params": ("custom_values", "custom_params"),
    "model_params": ("model_params",),
}
"""The entries of a release, each with the names in the platform's server and in its documentation."""


def _checked(name: str, value: Any, file: Path) -> Any:
    """The value. Raises StartError for a value of another kind."""
    kind = KINDS[name]
    right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not right or (kind is int and value < 0):
        raise StartError(f"{name} = {value!r}: expected {WORDS[kind]}", file=str(file))
    return value


def _resolve(values: dict[str, Any], file: Path) -> None:
    """Replace the names of files by full paths. Relative names begin at the folder of the file with the names."""
    if values.get("tar_file"):
        values["tar_file"] = _path(values["tar_file"], file)
        values.pop("model_files", None)
    for name in FOLDERS:
        if name in values:
            values[name] = {key: _path(text, file) for key, text in values[name].items()}


def _path(text: Any, file: Path) -> str:
    if not isinstance(text, str) or not text:
        raise StartError(f"{text!r}: expected the name of a file", file=str(file))
    if is_address(text):
        return text
    path = _beside(file, text.removeprefix("file://"))
    if not os.path.isfile(path):
        raise StartError(f"there is no file {path}", file=str(file))
    return path


def _beside(file: Path, name: str) -> str:
    """The full path for a name, from the folder of the file that has the name."""
    if "\0" in name:
        raise StartError(f"{name!r}: expected the name of a file", file=str(file))
    return os.path.realpath(file.parent / name)


# panglot.toml


def _table(file: Path, layers: _Layers) -> None:
    """The table [evals]. Raises StartError for unknown keys and wrong kinds."""
    toml = tomlfile.read(file)
    table = toml.table.get("evals", {})
    if not isinstance(table, dict):
        raise toml.error("evals: expected a table", "evals")
    given = {}
    for key, value in table.items():
        try:
            given[key] = _entry(key, value, file)
        except StartError as error:
            raise toml.error(error.problem, "evals", key, fix=error.fix) from None
    # An archive stands for all files of the model: of the two, only one may be left, and this file decides.
    if given.get("tar_file"):
        given.pop("model_files", None)
    if "model_files" in given:
        layers.values.pop("tar_file", None)
    if "tar_file" in given:
        layers.values.pop("model_files", None)
    layers.values.update(given)
    if given:
        layers.reasons.append(f"{file.name} says {', '.join(given)}")


def _entry(key: str, value: Any, file: Path) -> Any:
    """One value of the table, with full paths in place of names of files. Raises StartError."""
    if key not in KINDS:
        fix = suggestion(key, KINDS) or f"known are {', '.join(KINDS)}"
        raise StartError(f"unknown key '{key}' in [evals]", fix=fix)
    if key in FOLDERS and isinstance(value, str):
        folder = _beside(file, value)
        if not os.path.isdir(folder):
            raise StartError(f"{key}: there is no folder {folder}")
        return files_in(Path(folder))
    values = {key: _checked(key, value, file)}
    _resolve(values, file)
    return values[key]


def shown(values: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without secrets, for the server's operator."""
    return {key: _hidden(key, value) for key, value in values.items()}


SECRET = re.compile(r"(?:^|_)(?:ak|sk|key|secret|token|password|passwd)$", re.IGNORECASE)


def _hidden(key: str, value: Any) -> Any:
    if SECRET.search(key):
        return "***"
    if isinstance(value, str):
        return without_query(value)
    if isinstance(value, dict):
        return {str(name): _hidden(str(name), entry) for name, entry in value.items()}
    return [_hidden("", entry) for entry in value] if isinstance(value, list) else value
