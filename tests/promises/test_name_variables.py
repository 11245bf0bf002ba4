"""A variable nobody knows is a warning with the nearest setting; a pod beside a Service called panglot starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.server import PACKAGES, panglot, serving, wait_until

BESIDE_A_SERVICE = {
    "PANGLOT_PORT": "tcp://10.0.0.1:80",
    "PANGLOT_PORT_80_TCP": "tcp://10.0.0.1:80",
    "PANGLOT_PORT_80_TCP_ADDR": "10.0.0.1",
    "PANGLOT_PORT_80_TCP_PORT": "80",
    "PANGLOT_PORT_80_TCP_PROTO": "tcp",
    "PANGLOT_SERVICE_HOST": "10.0.0.1",
    "PANGLOT_SERVICE_PORT": "80",
    "PANGLOT_SERVICE_PORT_HTTP": "80",
    "PANGLOT_WORKERS_PORT": "tcp://10.0.0.2:80",
    "PANGLOT_WORKERS_SERVICE_HOST": "10.0.0.2",
    "PANGLOT_WORKERS": "2",
}
WARNING = "PANGLOT_MAX_BACH is no setting and has no effect; the nearest is PANGLOT_MAX_BATCH"


def test_a_pod_beside_a_service_called_panglot_starts() -> None:
    with serving("function", env=BESIDE_A_SERVICE) as server:
        # It is ready with the first of them.
        wait_until(lambda: len(server.workers()) == 2)
    assert "warning" not in server.log


def test_a_misspelt_variable_is_a_warning() -> None:
    with serving("function", "--log-format", "json", env={"PANGLOT_MAX_BACH": "3"}) as server:
        assert server.ready() == 200
    assert WARNING in [json.loads(line)["message"] for line in server.lines]


def test_a_port_that_is_none_is_an_error() -> None:
    done = panglot("serve", str(PACKAGES / "function"), env={"PANGLOT_PORT": "tcp:nonsense"})
    assert done.returncode == 3
    assert "PANGLOT_PORT 'tcp:nonsense': expected a whole number" in done.stderr


@pytest.mark.parametrize("command", ["run", "inspect", "doctor", "check"])
def test_every_command_says_so_once(command: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(request):\n    return request\n")
    # A port of its own: the doctor finds that of a server that runs beside the tests in use.
    own = {"run": ["[1]"], "check": ["[1]", "--against", str(tmp_path)], "doctor": ["--port", "0"]}.get(command, [])
    done = panglot(command, str(tmp_path), *own, env={**BESIDE_A_SERVICE, "PANGLOT_MAX_BACH": "3"})
    assert done.returncode == 0, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert said.count("PANGLOT_MAX_BACH") == 1
    assert said.count("PANGLOT_MAX_BATCH") == 1


def test_a_service_called_mosec_is_no_option_of_mosec() -> None:
    env = {"MOSEC_PORT": "tcp://10.0.0.1:80", "MOSEC_SERVICE_HOST": "10.0.0.1", "MOSEC_SERVICE_PORT": "80"}
    with serving("tiinfer_ops", env=env) as server:
        assert server.ready() == 200
    assert "MOSEC" not in server.log
