"""A service object in its server: logs, generators, deaths, reloads, debugging, old interpreters."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from support.modelarts import MR_0105, NODE, package, returning
from support.server import panglot, serving, wait_until


@pytest.mark.document("modelarts.25")
def test_the_four_lines_of_the_platforms_log(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import log
import logging
import model_service.log as other
from metric.metrics_manager import MetricsManager

logger = log.getLogger(__name__)
assert other.getLogger(__name__) is logger


class Service(SingleNodeService):
    def _inference(self, data):
        logger.info("told by the platform's logger")
        logging.getLogger("plain").info("not told by the plain one")
        logging.getLogger("plain").warning("told as a warning")
        key = self.model_name + "_LatencyInference"
        if key in MetricsManager.metrics:
            MetricsManager.metrics[key].update(1.5)
        return [MetricsManager.metrics[key].last, "x" in MetricsManager.metrics]
"""
    )
    with serving(package(tmp_path, script)) as server:
        assert server.client.post("/", json={"a": 1}).json() == [1.5, False]
        for words in ("preprocess time: ", "infer time: ", "postprocess time: ", "latency: "):
            server.wait_log(rf"\| 20\d\d-.* \[MainThread  \] \[model_service.py:\d+\] - INFO - {words}\d+\.\d+ms")
        server.wait_log(r"\[MainThread  \] \[customize_service.py:\d+\] - INFO - told by the platform's logger")
        server.wait_log("told as a warning")
        assert "not told by the plain one" not in server.log


def test_a_generator_between_the_steps_is_the_scripts_own_business(tmp_path: Path) -> None:
    script = (
        NODE
        + """
class Service(SingleNodeService):
    def _inference(self, data):
        for value in data["x"]:
            yield value * 2

    def _postprocess(self, data):
        return list(data)
"""
    )
    with serving(package(tmp_path, script)) as server:
        assert server.client.post("/", json={"x": [1, 2]}).json() == [2, 4]


def test_a_call_that_ends_the_process_costs_one_request(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import os


class Service(SingleNodeService):
    def _inference(self, data):
        if data.get("die"):
            os._exit(9)
        return data
"""
    )
    with serving(package(tmp_path, script)) as server:
        answer = server.client.post("/", json={"die": 1})
        assert (answer.status_code, answer.content) == (500, MR_0105)
        wait_until(lambda: server.client.post("/", json={"a": 1}).json() == {"a": 1})


def test_a_constructor_of_another_shape_is_told(tmp_path: Path) -> None:
    script = NODE + "class Service(SingleNodeService):\n    def __init__(self, model_path):\n        pass\n"
    done = panglot("serve", str(package(tmp_path, script)), "--port", "0")
    assert done.returncode == 3
    assert "customize_service.py:3: Service cannot be constructed with (model_name, model_path)" in done.stderr
    assert "def __init__(self, model_name, model_path)" in done.stderr


def test_inline_runs_it_too(tmp_path: Path) -> None:
    script = returning("os.getpid()", "import os\n")
    with serving(package(tmp_path, script), "--inline") as server:
        assert server.client.post("/", json={"a": 1}).json() == server.process.pid


def test_requests_wait_while_a_new_version_loads(tmp_path: Path) -> None:
    script = returning("'one'")
    package(tmp_path, script)
    with serving(tmp_path, "--reload") as server:
        answers: list[str] = []
        done = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=30) as client:
                while not done.is_set():
                    answers.append(client.post("/", json={"a": 1}).json())
                    time.sleep(0.01)

        thread = threading.Thread(target=ask)
        thread.start()
        server.change(lambda: package(tmp_path, script.replace("one", "two")))
        wait_until(lambda: "two" in answers, 15, lambda: server.log)
        done.set()
        thread.join()
        assert set(answers) == {"one", "two"}
        assert answers == sorted(answers)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the front needs 3.11")
def test_the_oldest_python_runs_it_too(tmp_path: Path) -> None:
    from support import interpreters

    version, python = next(iter(interpreters.found().items()))
    script = returning("list(sys.version_info[:2])", "import sys\n")
    with serving(package(tmp_path, script), "--python", python) as server:
        assert server.client.post("/", files={"f": ("a", b"1")}).json() == [int(part) for part in version.split(".")]
