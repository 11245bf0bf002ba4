"""Whether there is a GPU, without torch."""

from __future__ import annotations

import subprocess


def is_available() -> bool:
    """Whether `nvidia-smi` finds one."""
    try:
        output = subprocess.check_output(["nvidia-smi"], stderr=subprocess.DEVNULL)  # noqa: S607
    except Exception:
        return False
    return b"NVIDIA-SMI" in output
