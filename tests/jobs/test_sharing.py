"""Jobs leave requests the workers that they need, and have all of them where there are no requests."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from panglot.engine.call import Call
from panglot.engine.pools.background import IN_SPARE, NO_JOB, ON_CREDIT, BackgroundQueue, InteractiveLoad
from panglot.engine.pools.queue import MANY
from support.server import serving, wait_until

ASYNC = {"prefer": "respond-async"}


class Job(Call):
    background = True


def test_the_load_is_learnt_from_the_time_that_requests_take() -> None:
    load = InteractiveLoad()
    total = 0.0
    for _ in range(60):
        total += 1.2
        load.add(total, 0, 1.0)
    assert 1.1 < load.mean < 1.3
    assert load.need(4) == 3
    for _ in range(100):
        load.add(total, 0, 1.0)
    assert load.need(4) == 0


def test_jobs_need_not_wait_for_a_worker_that_requests_have_left() -> None:
    load = InteractiveLoad()
    for second in range(5):
        load.add(float(second), 0, 1.0)
    assert load.need(1) == 1
    for _ in range(2):
        load.add(4.0, 0, 1.0)
    # The mean has not faded yet, but the requests came without a pause, and have paused now.
    assert load.mean > 0.2
    assert load.need(1) == 0


def test_a_pause_between_requests_is_told_from_their_end_by_the_pauses_before() -> None:
    load, total = InteractiveLoad(), 0.0

    def requests_then_pause(requests: int, pause: int) -> int:
        """For how many seconds of the pause jobs have the worker."""
        nonlocal total
        seconds = 0
        for _ in range(requests):
            total += 1.0
            load.add(total, 0, 1.0)
        for _ in range(pause):
            load.add(total, 0, 1.0)
            seconds += load.need(1) == 0
        return seconds

    assert [requests_then_pause(1, 5) for _ in range(4)] == [5, 0, 0, 0]
    requests_then_pause(1, 60)
    # After a minute these are new requests: the minute was no pause of theirs.
    assert requests_then_pause(5, 20) > 8


def test_requests_that_come_by_chance_keep_their_worker() -> None:
    load, chance, total, left = InteractiveLoad(), random.Random(1), 0.0, 0
    for second in range(1000):
        # One a second on the average, of 0.3 seconds each: in a third of all seconds there is none.
        while chance.random() > 0.5:
            total += 0.3
        load.add(total, 0, 1.0)
        left += load.need(1) == 0 and second > 60
    assert left < 20


def test_jobs_have_what_requests_do_not_need_and_a_share_in_any_case() -> None:
    background = BackgroundQueue(0.05, MANY, 0.0)
    background.queue.append(Job())
    background.capacity = 4
    assert background.next(0, requests_wait=False) == IN_SPARE
    background.running = 2
    assert background.next(2, requests_wait=False) == ON_CREDIT
    background.running = 3
    assert background.next(2, requests_wait=False) == NO_JOB


def test_requests_are_answered_while_the_queue_of_jobs_is_full_and_jobs_go_on() -> None:
    with serving("job_steps", "--workers", "2", "--jobs-workers", "1") as server:
        jobs = [server.client.post("/predict", json={"sleep": 0.7}, headers=ASYNC).json()["id"] for _ in range(8)]
        for number in range(20):
            assert server.client.post("/predict", json={"n": number}).status_code == 200
        counts = server.client.get("/jobs").json()["counts"]
        assert counts["queued"] + counts["running"] > 0
        wait_until(lambda: server.client.get("/jobs").json()["counts"]["done"] == len(jobs), 60)
        wait_until(lambda: "panglot_jobs{" in server.client.get("/metrics").text, 10)


@pytest.mark.quiet
def test_clients_that_wait_for_their_jobs_do_not_count_as_requests_that_need_workers() -> None:
    with serving("job_steps", "--workers", "2") as server, ThreadPoolExecutor(4) as clients:

        def ask(number: int) -> int:
            headers = {"prefer": "respond-async, wait=60"}
            return server.client.post("/predict", json={"sleep": 0.1, "n": number}, headers=headers).status_code

        began = time.monotonic()
        assert set(clients.map(ask, range(80))) == {200}
    # 4 seconds of work for two workers. Taken for requests, they would leave their jobs one part in twenty: a minute.
    assert time.monotonic() - began < 30
