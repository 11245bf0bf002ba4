"""The torchserve dialect: a model archive with MAR-INF/MANIFEST.json, or the handler that one is made from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.dialects.torchserve import archiver_line, examples, handler, manifest, model_config, properties
from panglot.dialects.torchserve.archiver_line import ArchiverLine
from panglot.dialects.torchserve.handler import BUILT_IN, SHIMMED, Handler
from panglot.dialects.torchserve.manifest import Manifest
from panglot.dialects.torchserve.properties import Properties
from panglot.errors import StartError, near
from panglot.packages.package import Package
from panglot.packages.requirements import REQUIREMENTS
from panglot.packages.source import classes
from panglot.settings import Settings
from panglot_worker.files import package_files
from panglot_worker.files.package_files import content_if_any

LOOKS_FOR = (
    "a model archive (.mar) or its folder with MAR-INF/MANIFEST.json; or a script over ts.torch_handler, "
    "or with handle(data, context)"
)
ARCHIVES = (".mar",)
WEIGHTS = (".pt", ".pth", ".onnx", ".bin", ".safetensors")
MOST_SCRIPTS = 100
MOST_FILES = 1000
GIVEN = ("handler", "serialized_file", "model_file", "service_envelope")


@dataclass(frozen=True)
class Source:
    """A model's folder, its parts, and why the folder was recognised."""

    folder: Path
    manifest: Manifest
    reason: str
    links: Mapping[str, Path] = field(default_factory=dict)
    """Links for the folder that a worker runs in, so that the files lie as in the archive; empty: they do already."""


def detect(path: Path, given: Mapping[str, Any]) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    if path.suffix == ".war":
        raise manifest.workflow_refused(path)
    words = {name: str(given.get(name) or "") for name in GIVEN}
    source = _archived(path) or _sources(path, words)
    if source is None:
        return None
    ours: dict[str, Any] = {name: words[name] for name in ("serialized_file", "model_file") if words[name]}
    source = dataclasses.replace(source, manifest=dataclasses.replace(source.manifest, **ours))
    file = str(given.get("ts_config") or "")
    server = properties.read(Path(file), os.environ) if file else properties.beside(source.folder, os.environ)
    return _package(source, server, words["service_envelope"])


# Which folder, and what is in it


def _archived(path: Path) -> Source | None:
    """An unpacked archive. In a .tar.gz, the archiver puts all files into a folder with the model's name."""
    folder = path if path.is_dir() else path.parent.parent if path.name == manifest.FILE.name else None
    inner = list(path.iterdir()) if path.is_dir() else []
    if len(inner) == 1 and (inner[0] / manifest.FILE).is_file():
        folder = inner[0]
    written = manifest.read(folder) if folder is not None else None
    if folder is None or written is None:
        return None
    return Source(folder, written, f"{manifest.FILE} names the handler {written.handler}")


def _sources(path: Path, words: Mapping[str, str]) -> Source | None:
    """A script with a handler, or a folder with one; the archiver's command line tells what else belongs to it."""
    folder = path if path.is_dir() else path.parent
    lines = archiver_line.find(folder)
    if path.is_file():
        if path.suffix != ".py":
            return None
        chosen = handler.find(path)
        line = next((line for line in lines if line.manifest.module == path.stem), None)
        if chosen is None and line is None:
            return None
        if line is not None:
            return _shown(line, folder, chosen.reason if chosen else _reason(line))
        return Source(folder, _completed(Manifest(path.stem, path.name), folder), chosen.reason if chosen else "")
    if words["handler"]:
        reason = f"the setting handler is {words['handler']}"
        shown = [line for line in lines if line.manifest.handler == words["handler"]]
        if shown:
            return _shown(shown[0], folder, reason)
        return Source(folder, _completed(Manifest(folder.name, words["handler"]), folder), reason)
    if len(lines) == 1:
        return _shown(lines[0], folder, _reason(lines[0]))
    handlers = _handlers(folder)
    if len(lines) > 1:
        names = " and ".join(line.manifest.handler for line in lines[:4])
        fix = f"name one: --handler {lines[0].manifest.handler}"
        raise StartError(f"{lines[0].file} makes archives of several handlers: {names}", file=str(folder), fix=fix)
    if not handlers:
        return None
    if len(handlers) > 1:
        names = " and ".join(entry.script.name for entry in handlers[:4])
        fix = f"name one: panglot serve {near(str(handlers[0].script))}"
        raise StartError(f"{names} could all be the handler", file=str(folder), fix=fix)
    known = Manifest(folder.name, handlers[0].script.name)
    return Source(folder, _completed(known, folder), handlers[0].reason)


def _shown(line: ArchiverLine, folder: Path, reason: str) -> Source:
    """The model that a command line of the archiver describes."""
    known = _completed(line.manifest, folder)
    files = (known.handler.partition(":")[0], known.model_file, known.serialized_file, known.config_file)
    return Source(folder, known, reason, _as_archived(folder, [name for name in (*files, *line.extra) if name]))


def _as_archived(folder: Path, names: Sequence[str]) -> dict[str, Path]:
    """Links to everything in a folder, and to files that lie deeper here than in the archive.

    The archiver puts every file, and the contents of every folder, into the first level of the archive.
    """
    moved: dict[str, Path] = {}
    for path in (folder / name for name in names):
        if path.is_dir():
            moved.update({child.name: child for child in sorted(path.iterdir())[:MOST_FILES]})
        elif path.is_file() and path.parent != folder:
            moved[path.name] = path
    moved = {name: path for name, path in moved.items() if not (folder / name).exists()}
    return {**{child.name: child for child in sorted(folder.iterdir())}, **moved} if moved else {}


def _reason(line: ArchiverLine | None) -> str:
    return f"{line.file}:{line.line} makes an archive with the handler {line.manifest.handler}" if line else ""


def _handlers(folder: Path) -> list[Handler]:
    """The scripts of a folder with a handler. Scripts that import the platform win over the rest."""
    found_in = [entry for script in sorted(folder.glob("*.py"))[:MOST_SCRIPTS] if (entry := _find(script)) is not None]
    sure = [entry for entry in found_in if entry.imports_platform]
    return sure or found_in


def _find(script: Path) -> Handler | None:
    try:
        return handler.find(script)
    except StartError:
        # It may belong to another dialect, which says what is wrong. A script that is named by itself does raise.
        return None


def _completed(known: Manifest, folder: Path) -> Manifest:
    """A manifest, completed by files that it does not name: the only weights, the model's class, the configuration."""
    weights = [file.name for file in sorted(folder.iterdir()) if file.suffix in WEIGHTS and file.is_file()]
    config = next((name for name in model_config.NAMES if (folder / name).is_file()), "")
    return known.filled(
        model_name=folder.name,
        version="1.0",
        serialized_file=weights[0] if len(weights) == 1 else "",
        config_file=config,
        model_file="" if known.serialized_file.endswith(".pt") and known.model_name else _model_file(folder, known),
    )


def _model_file(folder: Path, known: Manifest) -> str:
    """The script beside the handler with exactly one class, over `nn.Module`; only where there is one such script."""
    names = []
    for script in sorted(folder.glob("*.py"))[:MOST_SCRIPTS]:
        if script.stem == known.module or b"nn.Module" not in content_if_any(script):
            continue
        try:
            kinds = classes(package_files.tree(script))
        except (SyntaxError, package_files.UnreadableFile):
            continue
        if len(kinds) == 1 and any("Module" in str(getattr(base, "attr", "")) for base in kinds[0].bases):
            names.append(script.name)
    return "model.py" if "model.py" in names else names[0] if len(names) == 1 else ""


# The package


def _package(source: Source, server: Properties, envelope: str) -> Package:
    folder, known = source.folder, source.manifest
    entry, script = _entry(source)
    config_file = folder / known.config_file if known.config_file else None
    table = model_config.read(config_file).table if config_file is not None and config_file.is_file() else {}
    if config_file is not None and table:
        model_config.refuse_unknown_device(table, config_file)
    version = known.version or "1.0"
    config = folder / "panglot.toml"
    return Package(
        name=known.model_name or folder.name,
        folder=folder,
        script=script,
        dialect="torchserve",
        entry=entry,
        reasons=(source.reason,),
        problems=_problems(source),
        config=config if config.is_file() else None,
        defaults=model_config.settings(table, server, known.model_name, version),
        options={
            "manifest": known.table,
            "handler": known.handler,
            "model_name": known.model_name or folder.name,
            "version": version,
            "config": table,
            "envelope": envelope or server.text("service_envelope"),
            "decode_input_request": server.truth("decode_input_request", True),
            "limit_max_image_pixels": server.truth("limit_max_image_pixels", True),
            "example": examples.example(folder),
            "management_port": server.port("management_address") or 0,
            "max_request_size": server.number("max_request_size") or 0,
        },
        environment={"TS_DECODE_INPUT_REQUEST": str(server.truth("decode_input_request", True)).lower()},
        facts={
            "model": [f"{known.model_name or folder.name} {version}"],
            "files": [name for name in (known.serialized_file, known.model_file, known.config_file) if name],
        },
        installs=_installs(source),
        run_links=source.links,
    )


def _entry(source: Source) -> tuple[str, Path]:
    """The entry point and its script. For a handler that the platform brings, the manifest stands for the script."""
    folder, known = source.folder, source.manifest
    function = known.handler.partition(":")[2]
    for name in (known.handler.partition(":")[0], f"{known.module}.py"):
        script = folder / name
        if name.endswith(".py") and script.is_file():
            return handler.named(script, function).entry, script
    where = folder / manifest.FILE
    if known.module not in BUILT_IN:
        problem = f"the handler {known.handler} is no file of the model, and none that TorchServe brings"
        fix = f"add {known.module}.py, or use one of {', '.join(SHIMMED)}"
        raise StartError(problem, file=str(where if where.is_file() else folder), fix=fix)
    return f"{BUILT_IN[known.module]}.handle", where if where.is_file() else folder


def _problems(source: Source) -> tuple[str, ...]:
    """What the model lacks, a line each."""
    known, problems = source.manifest, []
    for what, name in (("weights", known.serialized_file), ("model's class", known.model_file)):
        if name and not (source.folder / name).is_file():
            problems.append(f"the file with the {what}, {name}, is not there")
    if known.module in BUILT_IN and known.module not in SHIMMED:
        problems.append(f"the handler {known.module} is used as torchserve has it: pip install torchserve")
    elif known.module in BUILT_IN and not known.serialized_file:
        several = [file.name for file in sorted(source.folder.iterdir()) if file.suffix in WEIGHTS]
        if several:
            problems.append(f"the weights could be {' or '.join(several[:4])}: say --serialized-file {several[0]}")
    return tuple(problems)


def _installs(source: Source) -> tuple[tuple[str, ...], ...]:
    """The requirements that the manifest names; a requirements.txt of the folder is installed in any case."""
    name = source.manifest.requirements_file
    return (("-r", name),) if name and name != REQUIREMENTS and (source.folder / name).is_file() else ()


def arrange(package: Package, settings: Settings) -> Package:
    """The package, completed by settings: the envelope, and the management port."""
    options = dict(package.options)
    envelope = getattr(settings, "service_envelope", "")
    port = getattr(settings, "management_port", 0)
    options["envelope"] = envelope or options["envelope"]
    options["management_port"] = port or options["management_port"]
    return dataclasses.replace(package, options=options)
