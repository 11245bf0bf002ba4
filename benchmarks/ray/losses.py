"""How long anyone waits when a worker or a node is killed under load: the longest of all answers, every one checked."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from servers import Started, workers

CLIENTS = 8
BEFORE, AFTER = 2.0, 4.0
"""Seconds of load before something is killed, and afterwards."""
PAUSE = 0.02
"""Seconds that a client waits between two requests."""


@dataclass
class Asked:
    """What the clients saw."""

    longest: float = 0.0
    answers: int = 0
    wrong: list[str] = field(default_factory=list)


def longest_wait(started: Started, harm: Callable[[], None]) -> Asked:
    """Ask all the time, do some harm meanwhile, and tell how long the slowest answer took."""
    asked, done = Asked(), threading.Event()
    threads = [threading.Thread(target=ask, args=(started.port, asked, done)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    time.sleep(BEFORE)
    asked.longest = 0.0
    harm()
    time.sleep(AFTER)
    done.set()
    for thread in threads:
        thread.join()
    return asked


def ask(port: int, asked: Asked, done: threading.Event) -> None:
    """One client, which asks again as soon as it is answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = b"x" * 300
    while not done.is_set():
        began = time.monotonic()
        try:
            connection.request("POST", "/predict", body, {"Content-Type": "application/octet-stream"})
            answer = connection.getresponse()
            said = (answer.status, answer.read())
        except OSError as error:
            asked.wrong.append(repr(error))
            connection.close()
            continue
        asked.longest = max(asked.longest, time.monotonic() - began)
        asked.answers += 1
        if said != (200, b"300"):
            asked.wrong.append(repr(said))
        time.sleep(PAUSE)
    connection.close()


def kill_worker(started: Started) -> None:
    assert started.cluster is not None
    os.kill(workers(started.cluster)[0], signal.SIGKILL)


def kill_node(started: Started) -> None:
    """Kill everything on the second node, its worker included."""
    assert started.cluster is not None
    started.cluster.kill(3)
