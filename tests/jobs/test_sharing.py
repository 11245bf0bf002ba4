"""Jobs leave requests the workers that they need, and have all of them where there are no requests."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from panglot.engine.call import Call
from panglot.engine.pools.background import IN_SPARE, NO_JOB, ON_CREDIT, BackgroundQueue, InteractiveLoad
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


def test_jobs_have_what_requests_do_not_need_and_a_share_in_any_case() -> None:
    background = BackgroundQueue(0.05, 0, 0.0)
    background.queue.append(Job())
    background.capacity = 4
    assert background.next(0, requests_wait=False) == IN_SPARE
    background.running = 2
    assert background.next(2, requests_wait=False) == ON_CREDIT
    background.running = 3
    assert background.next(2, requests_wait=False) == NO_JOB


def test_requests_are_answered_while_the_queue_of_jobs_is_full_and_jobs_go_on() -> None:
    with serving("job_steps", "--workers", "2", "--jobs-workers", "1") as server:
        jobs = [server.client.post("/predict", json={"sleep": 0.3}, headers=ASYNC).json()["id"] for _ in range(8)]
        for number in range(20):
            assert server.client.post("/predict", json={"n": number}).status_code == 200
        counts = server.client.get("/jobs").json()["counts"]
        assert counts["queued"] + counts["running"] > 0
        wait_until(lambda: server.client.get("/jobs").json()["counts"]["done"] == len(jobs), 60)
        wait_until(lambda: "panglot_jobs{" in server.client.get("/metrics").text, 10)


def test_clients_that_wait_for_their_jobs_do_not_count_as_requests_that_need_workers() -> None:
    with serving("job_steps", "--workers", "2") as server, ThreadPoolExecutor(4) as clients:

        def ask(number: int) -> int:
            headers = {"prefer": "respond-async, wait=60"}
            return server.client.post("/predict", json={"sleep": 0.1, "n": number}, headers=headers).status_code

        began = time.monotonic()
        assert set(clients.map(ask, range(80))) == {200}
    # 4 seconds of work for two workers. Taken for requests, they would leave their jobs one part in twenty: a minute.
    assert time.monotonic() - began < 30
