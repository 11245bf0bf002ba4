"""The hfendpoint dialect: handler.py with `EndpointHandler`, or the older pipeline.py with `PreTrainedPipeline`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panglot.dialects.hfendpoint import card, hints
from panglot.dialects.hfendpoint.handler import Handler, find
from panglot.packages.package import Package, config_beside
from panglot.packages.source import parse

LOOKS_FOR = "handler.py with class EndpointHandler, or pipeline.py with class PreTrainedPipeline"
LEGACY = "pipeline.py"
MODELS = ("config.json", "model_index.json")
"""Files by which a model of the hub's libraries is recognised."""
VARIABLES = ("HF_MODEL_ID", "HF_REVISION", "HF_FRAMEWORK", "HF_TRUST_REMOTE_CODE", "HF_TASK")
"""Variables of the platform that scripts read beside HF_MODEL_DIR."""


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    handler = _handler(path, os.environ) or _pipeline(path, os.environ)
    if handler is None:
        return None
    is_pipeline = handler.script.suffix != ".py"
    folder = handler.script.parent
    model_card = card.read(folder)
    vertex = _vertex(os.environ)
    return Package(
        name=folder.name
        if path.is_dir() or is_pipeline or handler.script.name in ("handler.py", LEGACY)
        else handler.script.stem,
        folder=folder,
        script=handler.script,
        dialect="hfendpoint",
        entry=f"{handler.name}.__call__",
        reasons=(handler.reason, *model_card.reasons),
        problems=()
        if is_pipeline
        else (*_legacy(handler), *hints.problems(handler.script, parse(handler.script), os.environ)),
        config=config_beside(handler.script),
        defaults={"strict_results": True, **({"port": vertex["port"]} if "port" in vertex else {})},
        options={
            "class": handler.name,
            "pipeline": is_pipeline,
            "module": _module(handler, os.environ),
            "task": os.environ.get("HF_TASK", ""),
            "api": card.api(model_card, folder, os.environ.get("HF_TASK", "")),
            **({"vertex": vertex} if vertex else {}),
        },
        environment={
            **{name: os.environ[name] for name in VARIABLES if name in os.environ},
            "HF_MODEL_DIR": str(folder),
        },
        facts={"task": [model_card.task] if model_card.task else []},
        fixed_paths=hints.fixed_paths(folder),
    )


def _handler(path: Path, environ: Mapping[str, str]) -> Handler | None:
    """The handler at a path: in this file, or in the file of the folder that the platform takes."""
    if path.is_file():
        return find(path) if path.suffix == ".py" else None
    # As on the platform: with a handler.py, a pipeline.py beside it is an ordinary module.
    for name in (environ.get("HF_DEFAULT_PIPELINE_NAME") or "handler.py", LEGACY):
        if (path / name).is_file():
            return find(path / name)
    return None


def _pipeline(path: Path, environ: Mapping[str, str]) -> Handler | None:
    """A model of the hub's libraries without a script. Only `HF_TASK` tells what it is for."""
    task = environ.get("HF_TASK", "")
    if not task or not path.is_dir():
        return None
    for name in MODELS:
        if (path / name).is_file():
            return Handler(path / name, "DefaultHandler", f"HF_TASK is {task}, and {name} is a model without a script")
    return None


def _module(handler: Handler, environ: Mapping[str, str]) -> str:
    """The name of the script's module, with a dot in it. Pickles of the script's classes refer to this name."""
    if handler.legacy:
        return "pipeline.PreTrainedPipeline"
    return environ.get("HF_MODULE_NAME") or "handler.EndpointHandler"


def _legacy(handler: Handler) -> tuple[str, ...]:
    if not handler.legacy:
        return ()
    return (f"{handler.script.name} is the older form; newer ones are a handler.py with class EndpointHandler",)


def _vertex(environ: Mapping[str, str]) -> dict[str, Any]:
    """The routes and the port that Vertex AI gives to its containers; nothing outside of them."""
    if environ.get("AIP_MODE", "").upper() != "PREDICTION":
        return {}
    port = environ.get("AIP_HTTP_PORT", "")
    return {
        "predict": environ.get("AIP_PREDICT_ROUTE") or "/predict",
        "health": environ.get("AIP_HEALTH_ROUTE") or "/health",
        **({"port": int(port)} if port.isdecimal() else {}),
    }
