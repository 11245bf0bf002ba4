"""The health check: what the server knows, and what the script's own check says."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.server import Server, serving, wait_until


def health(server: Server) -> dict[str, Any]:
    answer = server.client.get("/health-check")
    assert answer.status_code == 200
    return dict(answer.json())


def predict(server: Server, **inputs: Any) -> httpx.Response:
    return server.client.post("/predictions", json={"input": inputs})


@pytest.mark.document("cog.03", "cog.04", "cog.16")
def test_a_script_says_itself_whether_it_is_healthy() -> None:
    with serving("cog_health", "--workers", "1", env={"COG_WEIGHTS": "w.bin"}) as server:
        answer = predict(server).json()
        assert answer["output"] == {"weights": "w.bin", "name": "x"}
        assert answer["logs"] == "healthy from now on: True\n"
        told = health(server)
        assert (told["status"], told["setup"]["status"]) == ("READY", "succeeded")
        assert "cog" in told["version"]
        predict(server, healthy=False)
        assert health(server)["status"] == "UNHEALTHY"
        assert "not well" in health(server)["user_healthcheck_error"]


BASE = """from cog import BasePredictor


class Checked(BasePredictor):
    sound = True

    def healthcheck(self):
        return self.sound
"""
INHERITS = """from own.base import Checked


class Predictor(Checked):
    def predict(self, sound: bool) -> str:
        Checked.sound = sound
        return "heard"
"""


@pytest.mark.document("cog.16")
def test_a_check_of_a_base_class_in_another_module_is_called(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    files = {"cog.yaml": "predict: predict.py:Predictor\n", "predict.py": INHERITS, "own/base.py": BASE}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with serving(tmp_path, "--workers", "1") as server:
        assert health(server)["status"] == "READY"
        predict(server, sound=False)
        told = health(server)
        assert (told["status"], "returned False" in told["user_healthcheck_error"]) == ("UNHEALTHY", True)


@pytest.mark.document("cog.16")
def test_while_predictions_run_the_health_check_is_answered_at_once(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving("cog_health", "--workers", "1") as server:
        answers: list[httpx.Response] = []
        running = threading.Thread(target=lambda: answers.append(predict(server, gate=str(gate))))
        running.start()
        # Waits for ever where the check stands behind the prediction, which ends only after it.
        wait_until(lambda: health(server)["status"] == "BUSY")
        gate.touch()
        running.join()
        assert answers[0].json()["status"] == "succeeded"
        wait_until(lambda: health(server)["status"] == "READY")


@pytest.mark.document("cog.16")
def test_a_server_that_starts_says_so_whatever_the_script_checks(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving("cog_health", "--workers", "1", env={"SETUP_GATE": str(gate)}, ready=False) as server:
        wait_until(lambda: health(server)["status"] == "STARTING")
        gate.touch()
        wait_until(lambda: health(server)["status"] == "READY")


@pytest.mark.document("cog.16")
def test_a_check_that_does_not_end_is_given_up_and_predictions_go_on(tmp_path: Path) -> None:
    with serving("cog_health", "--workers", "1") as server:
        predict(server, hangs=True)
        told = health(server)
        assert told["status"] == "UNHEALTHY"
        assert "timed out" in told["user_healthcheck_error"]
        # The check was interrupted, so that its worker is free.
        assert predict(server).json()["status"] == "succeeded"
        assert health(server)["status"] == "READY"


def test_a_predictor_that_is_awaited_is_busy_when_it_has_as_many_predictions_as_it_takes() -> None:
    with serving("cog_async", "--workers", "1") as server:
        body = {"input": {"count": 1, "seconds": 60}}
        urls = [server.client.post("/v1/predictions", json=body).json()["urls"]]
        wait_until(lambda: server.client.get(urls[0]["get"]).json()["status"] == "processing")
        assert health(server)["status"] == "READY"
        urls += [server.client.post("/v1/predictions", json=body).json()["urls"] for _ in range(3)]
        wait_until(lambda: health(server)["status"] == "BUSY")
        for each in urls:
            server.client.post(each["cancel"])
