"""`megflow` importable as plugins see it, and graphs that run inside the test."""

from __future__ import annotations

import sys
from pathlib import Path

PLATFORM = (
    Path(__file__).resolve().parents[2] / "src" / "panglot_worker" / "dialects" / "megflow" / "platform" / "always"
)
if str(PLATFORM) not in sys.path:
    sys.path.insert(0, str(PLATFORM))
