"""The Python calls of one request, made in a loop in one process: `python in_process.py KIND PACKAGE BODY SECONDS`.

Prints the CPU microseconds of one. It runs in the interpreter of the platform, with the platform's own functions: what
no server around them can be below.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from calls import KINDS

ENOUGH = 20
"""Calls between two looks at the clock."""


def main() -> None:
    kind, package, file, seconds = sys.argv[1:]
    body = Path(file).read_bytes()
    call = KINDS[kind](package)
    os.chdir(package)
    headers = [
        (b"host", b"127.0.0.1:5001"),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    for _ in range(ENOUGH):
        call(body, headers)
    count, began, until = 0, time.process_time(), time.monotonic() + float(seconds)
    while time.monotonic() < until:
        for _ in range(ENOUGH):
            call(body, headers)
        count += ENOUGH
    print((time.process_time() - began) * 1e6 / count)


if __name__ == "__main__":
    main()
