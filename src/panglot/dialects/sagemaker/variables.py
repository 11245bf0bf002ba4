"""The platform's variables: how a script is served, and the variables that the script itself finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.settings import counts

PROGRAM = "SAGEMAKER_PROGRAM"
ACCEPT = "SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT"
WORKERS = ("SAGEMAKER_MODEL_SERVER_WORKERS", "SAGEMAKER_TS_MAX_WORKERS", "SAGEMAKER_TS_MIN_WORKERS")
TIMEOUT = ("SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS", "SAGEMAKER_MODEL_SERVER_TIMEOUT", "SAGEMAKER_TS_RESPONSE_TIMEOUT")
PORT, PAYLOAD = "SAGEMAKER_BIND_TO_PORT", "SAGEMAKER_MAX_PAYLOAD_IN_MB"
WITHOUT_EFFECT = {
    "SAGEMAKER_TS_BATCH_SIZE": "scripts of SageMaker get one request in a call, there too",
    "SAGEMAKER_MODEL_SERVER_VMARGS": "there is no Java here",
}
MIB = 1 << 20


def _whole(name: str, environ: Mapping[str, str]) -> int | None:
    """A whole number, at least 1. Raises StartError."""
    text = environ.get(name, "").strip()
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise StartError(f"{name}={text}: must be a whole number, at least 1", fix="correct it, or unset it")
    return int(text)


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> int | None:
    return next((number for name in names if (number := _whole(name, environ)) is not None), None)


def defaults(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings that the platform's variables stand for. Raises StartError."""
    chosen: dict[str, Any] = {"strict_results": True}
    workers, seconds = _first(WORKERS, environ), _first(TIMEOUT, environ)
    port, payload = _whole(PORT, environ), _whole(PAYLOAD, environ)
    if workers is not None:
        chosen["workers"] = counts.exactly(workers)
    if seconds is not None:
        chosen["timeout"] = float(seconds)
    if port is not None:
        chosen["port"] = port
    if payload is not None:
        chosen["max_body"] = payload * MIB
    return chosen


def problems(environ: Mapping[str, str]) -> Iterator[str]:
    for name, instead in WITHOUT_EFFECT.items():
        if environ.get(name, "") not in ("", "1"):
            yield f"{name} has no effect here: {instead}"


def for_script(script: Path | None, folder: Path, model_dir: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the platform's containers, as a script finds them, besides those of the environment."""
    region = environ.get("SAGEMAKER_REGION") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return {
        "SAGEMAKER_PROGRAM": script.name if script is not None else "inference.py",
        "SAGEMAKER_SUBMIT_DIRECTORY": str(folder),
        "SAGEMAKER_CONTAINER_LOG_LEVEL": environ.get("SAGEMAKER_CONTAINER_LOG_LEVEL") or "20",
        "SAGEMAKER_REGION": region or "us-east-1",
        "SM_MODEL_DIR": str(model_dir),
    }
