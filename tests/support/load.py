"""Busy clients: many requests at a steady rate, each answer checked against its request."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from typing import Any

from support.server import Server


class Busy:
    """Clients that ask again and again until told to stop.

    A request counts as lost when it was sent on an open connection and got neither an answer nor a clean refusal.
    """

    path = "/predict"

    def __init__(
        self, server: Server, clients: int = 16, rate: float = 200, *, fresh: int = 2, sleep: float = 0.01
    ) -> None:
        self.server = server
        self.pause = clients / rate
        self.fresh = fresh
        self.sleep = sleep
        self.statuses: Counter[int] = Counter()
        self.lost: list[str] = []
        self.wrong: list[Any] = []
        self.versions: set[int] = set()
        self.refused = 0
        self.longest = 0.0
        """How many seconds the answer took that took the most."""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(clients)]

    def __enter__(self) -> Busy:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, number: int) -> None:
        connection: http.client.HTTPConnection | None = None
        for turn in range(10**6):
            if self._stop.is_set():
                break
            if connection is None:
                connection = self._connect()
                if connection is None:
                    return
            stay = self._ask(connection, number * 10**6 + turn)
            if not stay or number % self.fresh == 0:
                connection.close()
                connection = None
            time.sleep(self.pause)
        if connection is not None:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection | None:
        """None when the server no longer takes connections."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.connect()
        except OSError:
            with self._lock:
                self.refused += 1
            return None
        return connection

    def _ask(self, connection: http.client.HTTPConnection, number: int) -> bool:
        begun = time.monotonic()
        try:
            body = json.dumps({"id": number, "sleep": self.sleep})
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            with self._lock:
                self.lost.append(f"{type(error).__name__}: {error}")
            return False
        with self._lock:
            self.longest = max(self.longest, time.monotonic() - begun)
            self.statuses[response.status] += 1
            if response.status == 200:
                self.versions.add(value["version"])
                if value["id"] != number:
                    self.wrong.append((number, value))
        return response.getheader("connection") != "close"
