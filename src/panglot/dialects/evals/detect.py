"""The evals dialect: eval.py with `create_net` and `net_inference`, alone or in a folder of the platform's images."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panglot.dialects.evals import addresses, layout
from panglot.dialects.evals import config as configs
from panglot.dialects.evals.example import api
from panglot.dialects.evals.interfaces import Interfaces, interfaces, looks_at_files
from panglot.dialects.evals.layout import ScriptPlace
from panglot.dialects.evals.settings import Settings
from panglot.errors import StartError
from panglot.packages.package import Package, outside
from panglot.settings import table_of
from panglot_worker.net.hosts import Allowed

LOOKS_FOR = "eval.py with create_net and net_inference, in the folder or its python/evals, or a script of evals.utils"


def detect(path: Path, given: Mapping[str, Any]) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    config = str(given.get("config", "")) or (str(path) if path.suffix == ".conf" else "")
    where = layout.find(path)
    if where is None:
        return None
    helpers = layout.helpers(where)
    functions = interfaces(where, helpers)
    toml = next((file for file in (where.root / "panglot.toml", where.folder / "panglot.toml") if file.is_file()), None)
    known = configs.read(where, config, toml, os.environ)
    batch_size = max(1, known.values.get("batch_size", 1))
    return Package(
        name=where.name,
        folder=where.folder,
        script=where.script,
        dialect="evals",
        entry=f"{functions.start}, {functions.infer}",
        reasons=(_reason(where, functions), *known.reasons),
        problems=known.problems,
        config=toml,
        defaults=_defaults(known, batch_size),
        options=_options(where, helpers, known.values, batch_size),
        environment=_environment(where, os.environ),
        facts=_facts(where, helpers, known.values, batch_size),
        run_links=where.links(),
        fixed_paths=layout.fixed_paths(where, helpers),
        tries_elsewhere=int(known.values.get("retry_57x", 0)),
        whole=where.root,
        elsewhere=outside(where.root, *_files(known.values)),
    )


def _files(values: Mapping[str, Any]) -> list[str]:
    """The files that a configuration names by path; files with addresses are not among them."""
    archive = [str(values["tar_file"])] if "tar_file" in values else []
    return [*archive, *(str(path) for name in configs.FOLDERS for path in values.get(name, {}).values())]


def _reason(where: ScriptPlace, functions: Interfaces) -> str:
    script = where.script.relative_to(where.root)
    if not functions.line:
        return f"{script} is a script of evals"
    return f"{script}:{functions.line} defines {functions.start}"


def _defaults(known: configs.Config, batch_size: int) -> dict[str, Any]:
    most = int(table_of(Settings)["max_batch"].metadata["most"])
    defaults: dict[str, Any] = {"nan": "error", "strict_results": True, "max_batch": min(batch_size, most)}
    return {**defaults, "port": known.port} if known.port else defaults


def _options(where: ScriptPlace, helpers: list[Path], values: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    return {
        "uri_files": looks_at_files(where, helpers),
        **values,
        "batch_size": batch_size,
        "import_folders": where.import_folders(),
        "own_helpers": layout.own_helpers(where),
        "api": api(where),
    }


def _environment(where: ScriptPlace, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the platform's images set, with the values of the server's own environment."""
    wanted = {name: environ[name] for name in ("RUN_MODE", "USE_DEVICE") if name in environ}
    return {"RUN_MODE": "standalone", **wanted}


def _facts(where: ScriptPlace, helpers: list[Path], values: Mapping[str, Any], batch_size: int) -> dict[str, list[str]]:
    theirs = [
        f"{(where.folder / name).relative_to(where.root)}: Panglot's own is used"
        for name in layout.FRAMEWORK
        if layout.is_of_platform(where.folder / name)
    ]
    files = [str(file.relative_to(where.root)) for file in helpers if file.is_relative_to(where.root)]
    archive = [f"all of {values['tar_file']}"] if "tar_file" in values else []
    return {
        "batch_size": [str(batch_size)],
        "helpers": files,
        "model_files": [*archive, *values.get("model_files", {})],
        "custom_files": list(values.get("custom_files", {})),
        "not_taken": theirs,
    }


def arrange(package: Package, settings: Settings) -> Package:
    """Send the worker the settings about files, and the paths of fetched files. Raises StartError."""
    allowed = Allowed(settings.url_allow)
    fetched = {text: addresses.read(text, package.options, allowed) for text in addresses.in_use(package.options)}
    if fetched and settings.worker_net == "none":
        fix = "download them and name the files, or choose --worker-net guard"
        raise StartError("files named by address cannot be fetched with --worker-net none", fix=fix)
    limits = {"max_file": settings.max_body, "model_file_bytes": settings.model_file_bytes}
    more = {"uri_root": settings.uri_root, "addresses": fetched, "silence": settings.fetch_timeout, **limits}
    elsewhere = (*package.elsewhere, *outside(package.root, settings.uri_root))
    return dataclasses.replace(package, options={**package.options, **more}, elsewhere=elsewhere)
