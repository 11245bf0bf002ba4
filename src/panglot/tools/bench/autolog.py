"""The log block of Paddle's AutoLog, with figures of requests that were really served.

Tools search its lines, so that they have AutoLog's own spelling. An unknown value is None, as in AutoLog.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from panglot.tools.bench.levels import Level

RULE = "-" * 23


def block(level: Level, about: Mapping[str, Any], now: float | None = None) -> str:
    """The block for one load. `about` has model_name, runtime_device, paddle_version and whatever else is known."""
    clock = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(now))
    return "\n".join(f"[{clock}] root INFO: {line}".rstrip() for line in _lines(level, about))


def _lines(level: Level, about: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{RULE[:22]} Env info {RULE[:22]}"
    yield from _fields({**environment(), **about}, "OS_version", "CUDA_version", "CUDNN_version", "drivier_version")
    yield f"{RULE[:22]} Paddle info {RULE[:22]}"
    yield from _fields({"log_api_version": "1.0", **about}, "paddle_version", "paddle_commit", "log_api_version")
    yield f"{RULE} Conf info {RULE}"
    names = ("runtime_device", "ir_optim", "enable_memory_optim", "enable_tensorrt", "enable_mkldnn")
    yield from _fields(about, *names, "cpu_math_library_num_threads")
    yield f"{RULE} Model info {RULE[:22]}"
    yield from _fields(about, "model_name", "precision")
    yield f"{RULE} Data info {RULE}"
    batch = level.mean_batch
    data = {"batch_size": 1 if batch is None else round(batch), "input_shape": "dynamic", "data_num": level.requests}
    yield from _fields(data, "batch_size", "input_shape", "data_num")
    yield f"{RULE} Perf info {RULE}"
    cost = level.cost
    memory = None if cost["memory"] is None else round(cost["memory"] / 1e6, 4)
    yield f" cpu_rss(MB): {memory}, gpu_rss(MB): {cost['gpu_memory']}, gpu_util: {cost['gpu_use']}%"
    yield f" total time spent(s): {level.seconds:.4f}"
    stages = ("preprocess", "inference", "postprocess")
    yield " " + ", ".join(f"{name}_time(ms): {_stage(level, name)}" for name in stages)


def _fields(values: Mapping[str, Any], *names: str) -> Iterator[str]:
    for name in names:
        yield f" {name}: {values.get(name)}"


def _stage(level: Level, name: str) -> float | None:
    """The mean of a stage: 0 where the script does not have it, None where the server tells of no stages."""
    if not level.stages:
        return None
    return round(level.stages.get(name, {"mean": 0.0})["mean"], 4)


def environment() -> dict[str, Any]:
    return {"OS_version": _system(), **_cuda()}


def _system() -> str:
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return platform.system()
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    return f"{fields.get('NAME', 'Linux').partition(' ')[0]} {fields.get('VERSION_ID', '')}".strip()


def _cuda() -> dict[str, Any]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    try:
        done = subprocess.run([program], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    driver, cuda = (re.search(rf"{word} Version:\s*([\d.]+)", done) for word in ("Driver", "CUDA"))
    return {"drivier_version": driver[1] if driver else None, "CUDA_version": cuda[1] if cuda else None}
