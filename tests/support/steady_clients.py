"""Clients that keep asking while a test changes what they ask."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from support.server import Server

CLIENTS = 8


@contextlib.contextmanager
def asked_meanwhile(server: Server, path: str) -> Iterator[Counter[str]]:
    """Clients that send one request after the other; by whose model answered, or by the text of a failure."""
    answers: Counter[str] = Counter()
    over = threading.Event()

    def ask() -> None:
        with server.new_client() as client:
            while not over.is_set():
                answer = client.post(path, json=1)
                answers[answer.json()["model"] if answer.status_code == 200 else answer.text] += 1

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        over.set()
        for thread in threads:
            thread.join()
