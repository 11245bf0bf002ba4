"""Readiness tells the truth: threads that load are waited for, their deaths seen."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import httpx
import pytest

from support.modelarts import NODE, package
from support.server import panglot, serving

BACKGROUND = (
    NODE
    + """
import threading
import time


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        thread = threading.Thread(target=self.load_model)
        thread.start()

    def load_model(self):
        time.sleep(1.5)
        self.network = lambda value: value * 2

    def _inference(self, data):
        return self.network(data["x"])
"""
)


@pytest.mark.document("modelarts.28")
def test_the_server_is_ready_when_the_background_load_has_ended(tmp_path: Path) -> None:
    with serving(package(tmp_path, BACKGROUND), ready=False) as server:
        statuses, healths = set(), set()
        while server.ready() != 200:
            answer = server.client.post("/", json={"x": 3})
            statuses.add(answer.status_code)
            if answer.status_code == 503:
                assert int(answer.headers["retry-after"]) >= 1
            healths.add(server.client.get("/health").status_code)
            time.sleep(0.05)
        assert statuses <= {503, 200}, "never an error of the script"
        assert 503 in statuses
        assert 503 in healths
        assert server.client.post("/", json={"x": 3}).json() == 6
        assert server.client.get("/health").status_code == 200
    assert not re.search("AttributeError", server.log)


def test_a_second_worker_is_given_nothing_before_it_is_ready(tmp_path: Path) -> None:
    with serving(package(tmp_path, BACKGROUND), "--workers", "2") as server:
        answers: list[int] = []

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=30) as client:
                for _ in range(100):
                    answers.append(client.post("/", json={"x": 3}).status_code)
                    time.sleep(0.02)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(answers) == {200}
        server.wait_log("worker 1 ready")


def test_a_thread_that_dies_is_a_failed_load_with_its_own_traceback(tmp_path: Path) -> None:
    script = BACKGROUND.replace("time.sleep(1.5)", "open('weights.ckpt')")
    done = panglot("serve", str(package(tmp_path, script)), "--port", "0")
    assert done.returncode == 3
    assert re.search(r'customize_service.py", line \d+, in load_model\n.*open', done.stderr)
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(r"customize_service.py:13: running the thread \S+ \(load_model\) failed: FileNotFoundError", last)


def test_a_thread_that_never_ends_is_named_before_the_deadline(tmp_path: Path) -> None:
    script = BACKGROUND.replace("time.sleep(1.5)", "time.sleep(600)")
    # The last tenth of the deadline is what a worker has for starting, on a busy machine too.
    done = panglot("serve", str(package(tmp_path, script)), "--port", "0", "--load-timeout", "8")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "the thread Service.load_model, which the script started while loading, has not ended in time" in last
    assert "--no-await-threads" in last


def test_a_thread_meant_to_run_for_ever_can_be_left_alone(tmp_path: Path) -> None:
    script = BACKGROUND.replace("time.sleep(1.5)", "self.network = lambda value: value * 2\n        time.sleep(600)")
    with serving(package(tmp_path, script), "--no-await-threads") as server:
        assert server.client.post("/", json={"x": 3}).json() == 6


@pytest.mark.parametrize("kind", ["daemon", "executor"])
def test_threads_that_serve_rather_than_load_are_not_waited_for(tmp_path: Path, kind: str) -> None:
    """Daemons, and threads of an executor that wait for work; one at work is waited for."""
    script = (
        NODE
        + """
import concurrent.futures
import threading
import time


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        if KIND == "daemon":
            self.value = 2
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        else:
            self.pool = concurrent.futures.ThreadPoolExecutor(2)
            self.pool.submit(self.load)

    def load(self):
        time.sleep(0.5)
        self.value = 2

    def _inference(self, data):
        return self.value
"""
    )
    with serving(package(tmp_path, script.replace("KIND", repr(kind)))) as server:
        assert server.client.post("/", json={"x": 3}).json() == 2


def test_a_constructor_may_take_its_time(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import time


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        time.sleep(2)
"""
    )
    with serving(package(tmp_path, script), ready=False) as server:
        assert server.client.get("/v2/health/live").status_code == 200
        assert server.client.post("/", json={"x": 3}).status_code == 503
        server.wait_ready()
        assert server.client.post("/", json={"x": 3}).json() == {"x": 3}
