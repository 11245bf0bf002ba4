"""The promise: recursion without an end fails the item, and a stack that overflows costs one worker, not the server."""

from __future__ import annotations

from pathlib import Path

from support.server import serving, wait_until

SCRIPT = """
import json
import os
import sys

def endless(depth):
    return endless(depth + 1)

def predict(request):
    if request == "recurse":
        endless(0)
    if request == "overflow":
        sys.setrecursionlimit(10**9)
        deep = []
        for _ in range(300_000):
            deep = [deep]
        json.dumps(deep)
    return os.getpid()
"""


def test_recursion_and_overflow(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path) as server:
        before = server.predict("fine").json()
        for _ in range(3):
            assert server.predict("recurse").status_code == 500
        assert server.predict("fine").json() == before, "a RecursionError costs no worker"
        server.wait_log("RecursionError")
        assert server.predict("overflow").status_code == 500
        wait_until(lambda: server.predict("fine").status_code == 200, 20)
        nested = b"[" * 60 + b"]" * 60
        assert server.predict(content=nested, headers={"content-type": "application/json"}).status_code == 200
