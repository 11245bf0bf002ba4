"""The ModelArts dialect: customize_service.py, or only weights and a config.json that names their engine."""

from __future__ import annotations

import mimetypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.dialects.modelarts import config as configs
from panglot.dialects.modelarts import engines
from panglot.dialects.modelarts.script import Service, fixed_paths, is_ours, service
from panglot.errors import StartError
from panglot.packages.package import Package, outside
from panglot.packages.source import parse

LOOKS_FOR = "customize_service.py, in the folder or its model/, or a config.json with a model_type of ModelArts"
SCRIPT = "customize_service.py"
OTHER_SCRIPTS = ("model.py", "model_service.py")
"""With one of these files beside it, a config.json does not describe a package without a script."""
FOLDERS = ("", "model", "model/1", "1")
"""The folders of a package's files below the folder that a user points at."""

TIMEOUT = 40.0
MAX_BODY = 12 * 1024 * 1024


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    files = _find(path)
    if files is None:
        return None
    config = configs.read(files.folder)
    known = config or configs.Config()
    if files.script is None:
        return _without_script(files, known)
    wanted = engines.BY_NAME.get(known.model_type, engines.BY_NAME["TensorFlow"])
    what = service(files.script, wanted.base)
    engine, odd = engines.choose(what.base, known.model_type)
    problems = [*known.problems, *([odd] if odd else [])]
    if config is None:
        problems.append("there is no config.json, which the platform demands")
    return _package(files, known, engine, what, problems)


@dataclass(frozen=True)
class Files:
    """The places of a package's files. A package without a script has a config.json that names an engine."""

    root: Path
    folder: Path
    script: Path | None

    @property
    def name(self) -> str:
        plain = self.root if self.root.name not in ("model", "1") else self.folder
        # These are the platform's names for folders: a package takes the name of the folder above them.
        while plain.name in ("model", "1") and plain.parent != plain:
            plain = plain.parent
        return plain.name or "model"


def _find(path: Path) -> Files | None:
    if path.is_file():
        return _find_file(path)
    for name in FOLDERS:
        folder = path / name
        if (folder / SCRIPT).is_file():
            return Files(path, folder, folder / SCRIPT)
    for name in FOLDERS:
        folder = path / name
        config = configs.read(folder)
        if config is not None and config.model_type and not any((folder / name).is_file() for name in OTHER_SCRIPTS):
            return Files(path, folder, None)
    return None


def _find_file(path: Path) -> Files | None:
    if path.name == configs.NAME:
        return _find(path.parent)
    if path.suffix != ".py":
        return None
    if path.name == SCRIPT or is_ours(parse(path)):
        return Files(path.parent, path.parent, path)
    return None


def _without_script(files: Files, known: configs.Config) -> Package:
    """A package of weights: the platform's default service of its engine."""
    file = str(files.folder / configs.NAME)
    engine = engines.BY_NAME.get(known.model_type)
    if engine is None:
        raise StartError(
            "model_type Image names a container image; there is no script to serve", file=file, fix=f"add a {SCRIPT}"
        )
    if not engine.default:
        raise StartError(f"{engine.name} has no default service", file=file, fix=f"add a {SCRIPT}")
    return _package(files, known, engine, Service(engine.default.partition(":")[2]), list(known.problems))


def _package(
    files: Files, known: configs.Config, engine: engines.Engine, what: Service, problems: list[str]
) -> Package:
    model = engines.model(engine, files.folder, os.environ)
    if engine.weights and os.path.isdir(model.path):
        problems.append(f"model_path is {model.reason}")
    script = files.script or files.folder / configs.NAME
    return Package(
        name=files.name,
        folder=files.folder,
        script=script,
        dialect="modelarts",
        entry=f"{what.name or 'the service class'}.inference",
        reasons=_reasons(files, known, engine, what),
        problems=tuple(problems),
        config=_settings_file(files),
        defaults={"timeout": TIMEOUT, "max_body": MAX_BODY},
        options=_options(files, known, engine, model),
        environment=_environment(),
        facts={"engine": (engine.name,), "model_name": (model.name,), "model_path": (model.reason,)},
        installs=tuple(known.installs),
        run_links=_links(files.folder),
        fixed_paths=fixed_paths(files.folder),
        elsewhere=outside(files.folder, model.path),
    )


def _reasons(files: Files, known: configs.Config, engine: engines.Engine, what: Service) -> tuple[str, ...]:
    if files.script is None:
        return (f"{configs.NAME} says model_type {engine.name}", f"no {SCRIPT}: the platform's default service")
    name = str(files.script.relative_to(files.root))
    if not what.name:
        return (f"{name} is a script of ModelArts",)
    return (f"{name}:{what.line} defines class {what.name}({what.base})",)


def _settings_file(files: Files) -> Path | None:
    candidates = (files.folder / "panglot.toml", files.root / "panglot.toml")
    return next((file for file in candidates if file.is_file()), None)


def _options(files: Files, known: configs.Config, engine: engines.Engine, model: engines.Model) -> dict[str, Any]:
    api = dict(known.api)
    if engine.raw:
        api["request_types"] = [configs.JSON]
    else:
        api.setdefault("request_types", [configs.FORM, configs.JSON])
    picture_type = _picture_type(files.folder)
    if "example" in api and known.algorithm.startswith(("image", "object")):
        uploads = dict.fromkeys(api["example"]["files"], picture_type)
        api["example"] = {**api["example"], "files": uploads}
    return {
        "engine": engine.name,
        "base": engine.base,
        "raw": engine.raw,
        "model_name": model.name,
        "model_path": model.path,
        "default_service": "" if files.script else engine.default,
        "api": api,
        "picture_type": picture_type,
    }


def _picture_type(folder: Path) -> str:
    """The type of the first picture beside the script: it may be a sample."""
    types = (mimetypes.guess_type(entry.name)[0] or "" for entry in sorted(folder.iterdir()))
    return next((kind for kind in types if kind.startswith("image/")), "image/jpeg")


def _environment() -> dict[str, str]:
    """Variables that scripts read without a default."""
    return {name: os.environ.get(name, value) for name, value in (("LD_LIBRARY_PATH", ""), ("DEVICE_ID", "0"))}


def _links(folder: Path) -> dict[str, Path]:
    """Links for the folder that the script runs in. As on the platform, it has the package as `model` and `model/1`."""
    links = {f"model/{entry.name}": entry for entry in sorted(folder.iterdir()) if entry.name != "1"}
    return {**links, "model/1": folder}
