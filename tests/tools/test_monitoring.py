"""`panglot package --monitoring`: its rules are valid, and a real Prometheus answers every question they ask."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from support.ports import free_port
from support.server import PACKAGES, Server, panglot, serving, wait_until

TOKEN, SCRAPING = "open-sesame", "for-scraping"
QUIET = {"Failures", "Workers replaced", "Refused and dropped", "Run again"}
"""Panels with nothing to show as long as nothing goes wrong."""


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(PACKAGES / "function", tmp_path_factory.mktemp("package") / "greeter"))
    done = panglot("package", str(folder), "--monitoring")
    assert done.returncode == 0, done.stderr
    again = panglot("package", str(folder), "--monitoring")
    assert again.returncode == 0, "its own files are replaced"
    return folder / "deploy"


@pytest.fixture(scope="module")
def dashboard(deploy: Path) -> Any:
    return json.loads((deploy / "dashboard.json").read_text())


@pytest.fixture(scope="module")
def prometheus(deploy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A Prometheus that scrapes a server with the token for metrics, and has the alert rules."""
    folder = tmp_path_factory.mktemp("prometheus")
    with serving("function", env={"PANGLOT_TOKEN": TOKEN, "PANGLOT_METRICS_TOKEN": SCRAPING}) as server:
        port = free_port()
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(server, deploy)))
        command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        process = subprocess.Popen(command)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=20) as client:
                wait_until(lambda: httpx.get(f"http://127.0.0.1:{port}/-/ready").status_code == 200, 60)
                ask_until_scraped(server, client)
                yield client
        finally:
            process.terminate()
            process.wait(30)


def configuration(server: Server, deploy: Path) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(deploy / "alerts.yaml")],
        "scrape_configs": [
            {
                "job_name": "greeter",
                "authorization": {"credentials": SCRAPING},
                "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}],
            }
        ],
    }


def ask_until_scraped(server: Server, client: httpx.Client) -> None:
    """Send requests until Prometheus has seen their number rise."""

    def risen() -> bool:
        assert server.predict(1, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        return any(float(series["value"][1]) > 0 for series in query(client, "rate(panglot_requests_total[30s])"))

    wait_until(risen, 60)


def query(client: httpx.Client, expression: str) -> Any:
    answer = client.get("/query", params={"query": expression}).json()
    assert answer["status"] == "success", (expression, answer)
    return answer["data"]["result"]


def test_the_rules_are_valid(deploy: Path) -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", str(deploy / "alerts.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_answers_every_panel(prometheus: httpx.Client, dashboard: Any) -> None:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "30s")
            result = query(prometheus, expression)
            assert result or panel["title"] in QUIET, f"{panel['title']}: {expression} has no series"


def test_a_server_that_is_well_alarms_nobody(prometheus: httpx.Client, deploy: Path) -> None:
    groups = prometheus.get("/rules").json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == len(yaml.safe_load((deploy / "alerts.yaml").read_text())["groups"][0]["rules"])
    assert [rule["name"] for rule in rules if rule["state"] != "inactive"] == []
    assert [rule["lastError"] for rule in rules if rule.get("lastError")] == []


def test_every_metric_they_name_exists(prometheus: httpx.Client, deploy: Path) -> None:
    """Also those whose series appear only when something goes wrong: their TYPE is always told."""
    text = (deploy / "alerts.yaml").read_text() + (deploy / "dashboard.json").read_text()
    named = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"\bpanglot_[a-z_]+", text)}
    known = prometheus.get("/targets/metadata", params={"limit": 1000}).json()["data"]
    assert named - {entry["metric"] for entry in known} == set()
