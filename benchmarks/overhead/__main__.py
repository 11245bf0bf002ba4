"""`python -m benchmarks.overhead`: the same as running run.py."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path.insert(0, str(here))
    runpy.run_path(str(here / "run.py"), run_name="__main__")
