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
from panglot.dialects.evals.layout import Found
from panglot.dialects.evals.settings import Settings
from panglot.errors import StartError
from panglot.package import Package
from panglot.settings import table_of
from panglot_worker.net.hosts import Allowed

LOOKS_FOR = "eval.py with create_net and net_inference, in the folder or its python/evals, or a script of evals.utils"


def detect(path: Path, given: Mapping[str, Any]) -> Package | None:
    """The package, None when it is none of ours, StartError when it is ours but cannot work."""
    config = str(given.get("config", "")) or (str(path) if path.suffix == ".conf" else "")
    found = layout.find(path)
    if found is None:
        return None
    helpers = layout.helpers(found)
    functions = interfaces(found, helpers)
    toml = next((file for file in (found.root / "panglot.toml", found.folder / "panglot.toml") if file.is_file()), None)
    known = configs.read(found, config, toml, os.environ)
    batch_size = max(1, known.values.get("batch_size", 1))
    return Package(
        name=found.name,
        folder=found.folder,
        script=found.script,
        dialect="evals",
        entry=f"{functions.start}, {functions.infer}",
        reasons=(_reason(found, functions), *known.reasons),
        problems=known.problems,
        config=toml,
        defaults=_defaults(known, batch_size),
        options=_options(found, helpers, known.values, batch_size),
        environment=_environment(found, os.environ),
        facts=_facts(found, helpers, known.values, batch_size),
        run_links=found.links(),
        fixed_paths=layout.fixed_paths(found, helpers),
        tries_elsewhere=int(known.values.get("retry_57x", 0)),
    )


def _reason(found: Found, functions: Interfaces) -> str:
    script = found.script.relative_to(found.root)
    if not functions.line:
        return f"{script} is a script of evals"
    return f"{script}:{functions.line} defines {functions.start}"


def _defaults(known: configs.Config, batch_size: int) -> dict[str, Any]:
    most = int(table_of(Settings)["max_batch"].metadata["most"])
    defaults: dict[str, Any] = {"nan": "error", "strict_results": True, "max_batch": min(batch_size, most)}
    return {**defaults, "port": known.port} if known.port else defaults


def _options(found: Found, helpers: list[Path], values: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    return {
        "uri_files": looks_at_files(found, helpers),
        **values,
        "batch_size": batch_size,
        "import_folders": found.import_folders(),
        "own_helpers": layout.own_helpers(found),
        "api": api(found),
    }


def _environment(found: Found, environ: Mapping[str, str]) -> dict[str, str]:
    """What the platform's images set, and its variables as the server has them."""
    wanted = {name: environ[name] for name in ("RUN_MODE", "USE_DEVICE") if name in environ}
    return {"RUN_MODE": "standalone", **wanted}


def _facts(found: Found, helpers: list[Path], values: Mapping[str, Any], batch_size: int) -> dict[str, list[str]]:
    theirs = [
        f"{(found.folder / name).relative_to(found.root)}: Panglot's own is used"
        for name in layout.FRAMEWORK
        if layout.is_of_platform(found.folder / name)
    ]
    files = [str(file.relative_to(found.root)) for file in helpers if file.is_relative_to(found.root)]
    archive = [f"all of {values['tar_file']}"] if "tar_file" in values else []
    return {
        "batch_size": [str(batch_size)],
        "helpers": files,
        "model_files": [*archive, *values.get("model_files", {})],
        "custom_files": list(values.get("custom_files", {})),
        "not_taken": theirs,
    }


def arrange(package: Package, settings: Settings) -> Package:
    """Tell the worker what settings say about files, and where those lie that are fetched. Raises StartError."""
    allowed = Allowed(settings.url_allow)
    fetched = {text: addresses.read(text, package.options, allowed) for text in addresses.in_use(package.options)}
    if fetched and settings.worker_net == "none":
        fix = "download them and name the files, or choose --worker-net guard"
        raise StartError("files named by address cannot be fetched with --worker-net none", fix=fix)
    limits = {"max_file": settings.max_body, "model_file_bytes": settings.model_file_bytes}
    more = {"uri_root": settings.uri_root, "addresses": fetched, "silence": settings.fetch_timeout, **limits}
    return dataclasses.replace(package, options={**package.options, **more})
