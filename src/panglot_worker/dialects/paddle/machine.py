"""The machine a model runs on and what it computes in, in AutoLog's words."""

from __future__ import annotations

import platform
import re
from typing import Any, Dict

PRECISIONS = {"half": "fp16", "bfloat16": "bf16", "int8": "int8"}


def environment(paddle: Any) -> Dict[str, Any]:
    """The system, and the CUDA and cuDNN that Paddle was built for; those are left out where it was for none."""
    environment = {"OS_version": system()}
    for name in ("cuda", "cudnn"):
        version = getattr(getattr(paddle, "version", None), name, lambda: None)()
        if version not in (None, "", "None", "False", False):
            environment[name.upper() + "_version"] = str(version)
    return environment


def system() -> str:
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            about = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', file.read(), re.MULTILINE))
        return "%s %s" % (about["NAME"].partition(" ")[0], about["VERSION_ID"])
    except (OSError, KeyError, UnicodeDecodeError):
        return "%s %s" % (platform.system(), platform.release())


def in_words(precision: Any) -> str:
    """`fp16` for Paddle's `PrecisionType.Half`."""
    return PRECISIONS.get(str(precision).rpartition(".")[2].lower(), "fp32")
