"""What a machine without a package index needs for these benchmarks, beside its own torch, as wheels in a folder.

`python benchmarks/gpu/carry.py 3.12`, with the version of CPython there, fills benchmarks/gpu/.cache; then, there:
`PYTHONPATH=src:benchmarks/gpu/.cache python3 benchmarks/gpu/decode.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE / ".cache"


def main() -> None:
    version = sys.argv[1] if len(sys.argv) > 1 else "3.12"
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]
    shutil.rmtree(TARGET, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(TARGET), "--no-compile"]
    command += ["--python-version", version, "--only-binary", ":all:", *project["dependencies"], "psutil"]
    subprocess.run(command, check=True)
    size = sum(file.stat().st_size for file in TARGET.rglob("*") if file.is_file())
    print(f"{TARGET}: {size >> 20} MiB for CPython {version}")


if __name__ == "__main__":
    main()
