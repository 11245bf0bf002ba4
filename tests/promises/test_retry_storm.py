"""The promise: clients that ask again at once when they are refused do not keep the server from recovering."""

from __future__ import annotations

import threading
import time
from collections import Counter

from support.server import serving, wait_until


def test_retries_without_a_pause() -> None:
    over = threading.Event()
    heard: Counter[int] = Counter()
    with serving("naps", "--queue", "4", "--workers", "1") as server:

        def insist() -> None:
            with server.new_client() as client:
                while not over.is_set():
                    heard[client.post("/predict", json=0.05).status_code] += 1

        crowd = [threading.Thread(target=insist) for _ in range(12)]
        for one in crowd:
            one.start()
        time.sleep(3)
        over.set()
        for one in crowd:
            one.join(20)
        assert set(heard) == {200, 503}, heard
        assert heard[200] > 10, "some are served all the while"
        wait_until(lambda: server.predict(0).status_code == 200, 5)
        assert all(server.predict(0).status_code == 200 for _ in range(20))
        assert server.metric("panglot_worker_restarts_total") == 0
