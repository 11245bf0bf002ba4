"""What a server must not leave behind when a test is done with it: requests, memory of bodies, faults of our own."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from support.server import Server

HELD = ("panglot_requests_in_progress", "panglot_queue_length", "panglot_shared_bodies", "panglot_request_memory_bytes")
PATIENCE = 10.0
"""Seconds within which all that clients left behind has to be gone."""
FRAME = re.compile(r'File "([^"]+)", line')
OURS = re.compile(r"/src/panglot/")


def check(server: Server) -> None:
    """Assert that a server holds nothing, once its clients have gone, and that none of its tracebacks is ours."""
    faults = list(own_tracebacks(server.lines))
    assert not faults, "a fault of our own:\n" + faults[0]
    if server.process.poll() is not None:
        return
    server.close_clients()
    deadline = time.monotonic() + PATIENCE
    while left := held(server):
        assert time.monotonic() < deadline, f"the server still holds {left}:\n{server.log}"
        time.sleep(0.02)


def held(server: Server) -> dict[str, float]:
    """What of the server is not zero though nobody asks it anything."""
    headers = {"authorization": f"Bearer {server.token}"} if server.token else {}
    with httpx.Client(base_url=server.url, timeout=30, verify=False, headers=headers) as client:
        try:
            answer = client.get("/metrics")
        except httpx.ConnectError:
            # It was told to stop, and no longer listens: it ends by itself, or its test fails for that.
            server.process.wait(PATIENCE)
            return {}
    assert answer.status_code == 200, f"/metrics answered {answer.status_code}: {answer.text}"
    figures: dict[str, float] = {}
    for line in answer.text.splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] in HELD and float(value):
            figures[series] = float(value)
    return figures


def own_tracebacks(lines: list[str]) -> Iterator[str]:
    """The tracebacks of a log that end in a file of the front."""
    for number, line in enumerate(lines):
        if "Traceback (most recent call last)" not in line:
            continue
        block = [line.replace("\\n", "\n")]
        margin = len(line) - len(line.lstrip())
        for following in lines[number + 1 :]:
            block.append(following)
            if len(following) - len(following.lstrip()) <= margin:
                break
        files = FRAME.findall("\n".join(block).replace('\\"', '"'))
        if files and OURS.search(files[-1]):
            yield "\n".join(block)
