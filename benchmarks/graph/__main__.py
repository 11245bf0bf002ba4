"""All figures of MegFlow graphs: `python benchmarks/graph`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    for name in ("chain", "overlap", "memory", "over_http"):
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
