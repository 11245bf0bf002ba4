"""Which interpreter decodes videos: the script's own where it has PyAV, else that of the front."""

from __future__ import annotations

import importlib.util
import sys
from typing import List, NamedTuple, Optional

from panglot_worker.video.limits import VideoLimits


class Lack(NamedTuple):
    """What is missing for videos, and what to do."""

    what: str
    fix: str


def lack(limits: VideoLimits) -> Optional[Lack]:
    """What is missing for frames of videos to reach the script, if something is."""
    if importlib.util.find_spec("numpy") is None:
        return Lack("numpy", "pip install numpy, for the interpreter the script runs in")
    if importlib.util.find_spec("av") is None and not limits.python:
        return Lack(
            "PyAV", "pip install 'panglot[video]' where Panglot is, or av for the interpreter the script runs in"
        )
    return None


def command(limits: VideoLimits) -> List[str]:
    """The beginning of a decoder's command line."""
    if importlib.util.find_spec("av") is not None or not limits.python:
        return [sys.executable]
    # Variables such as PYTHONPATH are meant for the script's interpreter.
    return [limits.python, "-E"]
