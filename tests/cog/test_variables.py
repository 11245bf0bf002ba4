"""The variables by which the platform's images say where the predictor is, and how to serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from panglot import dialects
from panglot.errors import StartError
from support.server import PACKAGES, panglot, serving, wait_until

PREDICTOR = "class {}:\n    def predict(self, text: str) -> str:\n        return text\n"
SETTINGS: dict[str, dict[str, Any]] = {
    "PORT=5001": {"port": 5001},
    "PORT=": {},
    "COG_SETUP_TIMEOUT=0.5": {"load_timeout": 0.5},
    "COG_SETUP_TIMEOUT=0": {},
    "COG_LOG_LEVEL=warn": {"log_level": "warning"},
    "COG_LOG_LEVEL=FATAL": {"log_level": "error"},
}
WRONG = (
    *("PORT=http", "PORT=0", "PORT=65536", "PORT=" + "9" * 5000, "COG_MAX_CONCURRENCY=some", "COG_MAX_CONCURRENCY=0"),
    *("COG_SETUP_TIMEOUT=long", "COG_SETUP_TIMEOUT=-1", "COG_SETUP_TIMEOUT=nan", "COG_LOG_LEVEL=loud"),
    "COG_THROTTLE_RESPONSE_INTERVAL=soon",
)


def write(folder: Path, **scripts: str) -> Path:
    folder.mkdir()
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.document("cog.29")
@pytest.mark.parametrize("given", SETTINGS)
def test_variables_of_the_platform_are_settings(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*given.split("="))
    chosen = dialects.discover(PACKAGES / "cog_async").defaults
    names = ("port", "load_timeout", "log_level")
    assert {name: chosen[name] for name in names if name in chosen} == SETTINGS[given]


@pytest.mark.parametrize("given", WRONG, ids=lambda given: given[:30])
def test_a_wrong_value_ends_the_start(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*given.split("="))
    with pytest.raises(StartError, match="must be"):
        dialects.discover(PACKAGES / "cog_async")


@pytest.mark.document("cog.29")
def test_a_setup_that_takes_longer_than_the_variable_says_ends_the_server(tmp_path: Path) -> None:
    never = {"COG_SETUP_TIMEOUT": "1", "SETUP_GATE": str(tmp_path / "gate")}
    done = panglot("serve", "tests/packages/cog_health", "--port", "0", env=never)
    assert (done.returncode, "load_timeout" in done.stderr or "--load-timeout" in done.stderr) == (3, True), done.stderr


@pytest.mark.document("cog.08", "cog.29")
def test_so_many_predictions_run_at_once_as_the_variable_says_and_not_as_cog_yaml_does() -> None:
    with serving("cog_async", "--workers", "1", env={"COG_MAX_CONCURRENCY": "2"}) as server:

        def created(count: int, **given: Any) -> list[dict[str, str]]:
            body = {"input": {"count": 2, **given}}
            return [server.client.post("/v1/predictions", json=body).json()["urls"] for _ in range(count)]

        def told(job: dict[str, str]) -> dict[str, Any]:
            return dict(server.client.get(job["get"]).json())

        jobs = created(4, seconds=0.2)
        wait_until(lambda: all(told(job)["status"] == "succeeded" for job in jobs))
        assert {told(job)["output"][-1] for job in jobs} <= {"1 of 1", "1 of 2"}
        jobs = created(2, seconds=60)
        wait_until(lambda: server.client.get("/health-check").json()["status"] == "BUSY")
        for job in jobs:
            server.client.post(job["cancel"])


@pytest.mark.document("cog.28")
def test_the_variable_names_the_predictor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "own", one=PREDICTOR.format("Own"), two=PREDICTOR.format("Predictor"))
    with pytest.raises(StartError):
        dialects.discover(folder)
    for named, entry in (("one.py:Own", "Own.predict"), ("two.py", "Predictor.predict")):
        monkeypatch.setenv("COG_PREDICT_TYPE_STUB", named)
        package = dialects.discover(folder)
        assert (package.dialect, package.entry, package.script.name) == ("cog", entry, named.partition(":")[0])
        assert "COG_PREDICT_TYPE_STUB names it" in package.reasons
        with serving(folder, "--workers", "1", env={"COG_PREDICT_TYPE_STUB": named}) as server:
            assert server.client.post("/predictions", json={"input": {"text": "x"}}).json()["output"] == "x"
    (folder / "cog.yaml").write_text("predict: one.py:Own\n")
    assert dialects.discover(folder).entry == "Predictor.predict", "the variable wins, as on the platform"
    monkeypatch.setenv("COG_PREDICT_TYPE_STUB", "gone.py:Own")
    with pytest.raises(StartError, match=r"names gone.py, which is not there"):
        dialects.discover(folder)
    assert dialects.discover(PACKAGES / "function").dialect == "plain", "packages of others are as they were"
