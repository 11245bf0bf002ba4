"""Which GPUs there are, as far as the kernel shows them."""

from __future__ import annotations

import re
from pathlib import Path

WANTED = re.compile(r"(?:cuda|gpu)(?::(\d+))?")
NODE = re.compile(r"nvidia\d+")


def count(folder: Path = Path("/dev")) -> int:
    """How many NVIDIA GPUs this machine or container has."""
    try:
        return sum(1 for entry in folder.iterdir() if NODE.fullmatch(entry.name))
    except OSError:
        return 0


def lacking(device: str, there: int) -> str:
    """What is wrong with asking for this device where so many GPUs are there, in a sentence; empty: nothing."""
    matches = [match for word in device.split(",") if (match := WANTED.fullmatch(word.strip())) is not None]
    wanted = [int(match[1] or 0) for match in matches]
    if not wanted or max(wanted) < there:
        return ""
    have = "has no NVIDIA GPU" if not there else f"has {there} GPU{'s' if there > 1 else ''}, from cuda:0 on"
    return f"--device {device}: this machine {have}; the script may fail, or run on the CPU"
