"""Somebody else, who wants nothing but right answers while a test misbehaves."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx

from support.server import Server

PATIENCE = 15.0
"""Seconds within which everybody else must have an answer, whatever the others do."""

LEAST = 5


@contextlib.contextmanager
def others_served(server: Server, normal: Any, expected: Any, pause: float = 0.02) -> Iterator[None]:
    """Ask normal requests all the while; each must be answered rightly, and soon."""
    wrong: list[str] = []
    count = 0
    done = threading.Event()

    def ask() -> None:
        nonlocal count
        with server.new_client() as client:
            while not done.is_set() or count < LEAST:
                try:
                    answer = client.post("/predict", json=normal, timeout=PATIENCE)
                    if answer.status_code != 200 or answer.json() != expected:
                        wrong.append(f"{answer.status_code} {answer.text[:200]}")
                except httpx.HTTPError as error:
                    wrong.append(repr(error))
                count += 1
                time.sleep(pause)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2 * PATIENCE)
    assert count >= LEAST, "nobody else was served"
    assert not wrong, f"{len(wrong)} of {count} went wrong: {wrong[:3]}"
