"""The devices that workers are given, as `--device` names them. Does no I/O: nothing is checked here."""

from __future__ import annotations

import re

CPU = "cpu"
GPU = re.compile(r"(?:cuda|gpu)(?::([0-9]{1,4}|(?:gpu|mig)-[0-9a-z/-]{4,80}))?", re.IGNORECASE)
"""A GPU by its number, or by the name that the driver gives it, or a part of one."""
FORMS = "cpu, cuda:N, cuda:GPU-ID, or several with commas such as cuda:0,cuda:1"


def parse(text: str) -> str:
    """The devices in a text, with commas between, each as workers know it; empty text is none. Raises ValueError."""
    return ",".join(_device(word.strip()) for word in text.split(",") if word.strip())


def _device(word: str) -> str:
    if word.lower() == CPU:
        return CPU
    match = GPU.fullmatch(word)
    if match is None:
        raise ValueError(f"'{word[:80]}' is no device; expected {FORMS}")
    return f"cuda:{match[1] or 0}"
