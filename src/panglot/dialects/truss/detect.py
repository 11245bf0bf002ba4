"""The truss dialect: config.yaml beside model/model.py with `class Model`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panglot.dialects.truss import config as configs
from panglot.dialects.truss import examples, hints, model_class
from panglot.dialects.truss.config import Config
from panglot.dialects.truss.model_class import OPENAI, PREDICTING, ModelClass, openai_paths
from panglot.errors import StartError
from panglot.packages.package import Package
from panglot.packages.requirements import REQUIREMENTS
from panglot.packages.source import classes, imported, parse
from panglot_worker.files.package_files import content_if_any

LOOKS_FOR = "config.yaml beside model/model.py with class Model that has predict"
KEYS = ("model_name", "requirements", "resources", "secrets", "model_metadata")
"""Keys of config.yaml by which a truss is recognised, where its class could be one of another dialect."""
FOREIGN = {
    "docker_server": "a docker_server is another program in an image, which Panglot does not run",
    "trt_llm": "engines of trt_llm are built and served by Baseten's own image",
}
MOST_SCRIPTS = 50


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    folder = _folder(path)
    config = configs.read(folder) if folder is not None else None
    if config is None:
        _refuse_chains(path)
        return None
    _refuse_foreign(config)
    if not config.script.is_file():
        return None
    model = model_class.find(config.script, config.text("model_class_name"))
    if model is None or not _is_truss(config, model):
        return None
    model_class.check(model)
    return _package(config, model)


def _folder(path: Path) -> Path | None:
    """The folder of the truss that a path is, or is a file of."""
    if path.is_dir():
        return path
    if path.name == configs.NAME:
        return path.parent
    return next((folder for folder in path.parents[:2] if (folder / configs.NAME).is_file()), None)


def _is_truss(config: Config, model: ModelClass) -> bool:
    """Whether a class is one of Truss. A class Model with predict alone may also be one of the plain dialect."""
    has_method = model.may_have("predict") or "websocket" in model.methods or "load" in model.methods
    says_so = "load" in model.methods or model.takes_keywords or any(key in config.table for key in KEYS)
    return has_method and says_so


def _refuse_foreign(config: Config) -> None:
    """Refuse a truss that only Baseten's images can run. Raises StartError."""
    for key, reason in FOREIGN.items():
        if config.table.get(key) and any(name in config.table for name in KEYS):
            raise config.file.error(reason, key, fix="serve a truss with a model/model.py")
    transport = config.section("runtime").get("transport")
    kind = transport.get("kind") if isinstance(transport, dict) else None
    if kind in ("websocket", "grpc"):
        problem = model_class.NO_WEBSOCKETS if kind == "websocket" else "a gRPC server of the script is not served"
        raise config.file.error(problem, "runtime", "transport", fix="give the class def predict(self, model_input)")


def _refuse_chains(path: Path) -> None:
    """Refuse a chain, which is many programs that call each other. Raises StartError."""
    scripts = [path] if path.suffix == ".py" else sorted(path.glob("*.py"))[:MOST_SCRIPTS] if path.is_dir() else []
    for script in scripts:
        if b"truss_chains" not in content_if_any(script):
            continue
        tree = parse(script)
        names = imported(tree)
        for node in classes(tree):
            if "truss_chains" in names and any("Chainlet" in str(getattr(base, "attr", "")) for base in node.bases):
                problem = "chains of truss_chains are not served: each Chainlet is a server of its own"
                fix = "serve each step as a truss with a model/model.py"
                raise StartError(problem, file=str(script), line=node.lineno, fix=fix)


def _package(config: Config, model: ModelClass) -> Package:
    name = config.table.get("model_name")
    methods = [method for method in (*PREDICTING, *OPENAI, "is_healthy") if model.may_have(method)]
    return Package(
        name=config.folder.name,
        folder=config.folder,
        script=config.script,
        dialect="truss",
        entry=f"{model.name}.predict",
        takes=f"{model.name}.preprocess" if "preprocess" in methods else "",
        gives=f"{model.name}.postprocess" if "postprocess" in methods else "",
        reasons=(
            "config.yaml is here",
            f"{config.script.relative_to(config.folder)}:{model.line} defines class {model.name}",
        ),
        problems=hints.problems(config, os.environ),
        config=file if (file := config.folder / "panglot.toml").is_file() else None,
        defaults=_defaults(os.environ),
        options={
            "config": config.whole,
            "methods": methods,
            "reads_head": model.reads_head,
            "example": examples.example(config),
            "summary": str(config.table.get("description") or name or ""),
            "concurrency": config.concurrency,
            "openai_paths": {method: openai_paths(method) for method in OPENAI if method in methods},
            "import_folders": _import_folders(config),
        },
        environment=_environment(config, os.environ),
        facts={
            "methods": [method for method in methods if method in model.methods],
            "predict_concurrency": [str(config.concurrency)],
        },
        installs=_installs(config),
        fixed_paths=hints.fixed_paths(config),
        elsewhere=tuple(
            folder for text in config.texts("external_package_dirs") if (folder := _outside(config, text)).is_dir()
        ),
    )


def _defaults(environ: Mapping[str, str]) -> dict[str, Any]:
    port = environ.get("INFERENCE_SERVER_PORT", "")
    return {"strict_results": True, **({"port": int(port)} if port.isdecimal() else {})}


def _outside(config: Config, text: str) -> Path:
    return Path(os.path.normpath(config.folder / text))


def _import_folders(config: Config) -> list[str]:
    """The folders that the platform puts on sys.path behind the environment: packages of the truss, and others."""
    named = [_outside(config, text) for text in (config.text("bundled_packages_dir"), *_external(config))]
    return [str(folder) for folder in named if folder.is_dir()]


def _external(config: Config) -> list[str]:
    return config.texts("external_package_dirs")


def _environment(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of config.yaml. Variables of this machine win over them."""
    return {name: environ.get(name) or str(value) for name, value in config.section("environment_variables").items()}


def _installs(config: Config) -> tuple[tuple[str, ...], ...]:
    packages = tuple(text for text in config.texts("requirements") if not text.lstrip().startswith("#"))
    file = config.text("requirements_file")
    path = _outside(config, file)
    # Left out: a requirements.txt in the package's folder is installed for every dialect.
    is_own = path == config.folder / REQUIREMENTS
    named = (("-r", file),) if file.endswith(".txt") and path.is_file() and not is_own else ()
    return (*named, *((packages,) if packages else ()))
