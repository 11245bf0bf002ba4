"""Trainings of packages whose trainer differs from their predictor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.receiver import receiving
from support.server import Server, serving, wait_until

HIDDEN = "**********"
PREDICTORS = {
    "sync": "def predict(text: str) -> str:\n    return text\n",
    "awaited": "async def predict(text: str) -> str:\n    return text\n",
}
TRAINERS = {
    "plain": "def train(words: str) -> str:\n    return words.split()[0]\n",
    "generator": "from typing import Iterator\ndef train(words: str) -> Iterator[str]:\n    yield from words.split()\n",
    "awaited": "async def train(words: str) -> str:\n    return words.split()[0]\n",
    "awaited generator": """from typing import AsyncIterator
async def train(words: str) -> AsyncIterator[str]:
    for word in words.split():
        yield word
""",
}


def written(folder: Path, predictor: str, trainer: str) -> Path:
    (folder / "predict.py").write_text(predictor)
    (folder / "train.py").write_text(trainer)
    (folder / "cog.yaml").write_text("predict: predict.py:predict\ntrain: train.py:train\n")
    return folder


def job(server: Server, route: str, **more: Any) -> dict[str, Any]:
    answer = server.client.post(route, json=more, headers={"prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def test_secrets_of_a_trainer_stay_secret_while_it_runs(tmp_path: Path) -> None:
    trainer = """import time
from cog import Secret
def train(token: Secret, text: str = "") -> str:
    time.sleep(60 if text == "long" else 0.1)
    return token.get_secret_value() + " " + text
"""
    flags = ("--workers", "1")
    given = {"token": "s3cret", "text": "short"}
    shown = {**given, "token": HIDDEN}
    package = tmp_path / "package"
    package.mkdir()
    written(package, PREDICTORS["sync"], trainer)
    with receiving() as receiver, serving(package, *flags, "--webhook-allow", receiver.host) as server:
        accepted = job(server, "/trainings", input=given, webhook=f"http://{receiver.host}/hook")
        assert accepted["input"] == shown
        wait_until(lambda: any(json.loads(content)["completed_at"] for _, content in list(receiver.events)))
        events = [json.loads(content) for _, content in receiver.events]
        assert [event["input"] for event in events] == [shown] * len(events)
        assert (events[0]["status"], events[-1]["output"]) == ("processing", "s3cret short")
        # Cancelled: the script has no say in this answer.
        job(server, "/trainings", id="slow", input={**given, "text": "long"})
        server.client.post("/trainings/slow/cancel")
        ended = server.client.put("/trainings/slow", json={"input": {}}).json()
        assert (ended["status"], ended["input"]) == ("canceled", {**shown, "text": "long"})
        # An input of the predictor may have the name of a secret of the trainer.
        assert job(server, "/predictions", input={"text": "a", "token": "b"})["input"] == {"text": "a", "token": "b"}


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("predictor", PREDICTORS)
def test_a_trainer_may_have_another_form_than_the_predictor(tmp_path: Path, predictor: str, trainer: str) -> None:
    output = ["a", "b"] if "generator" in trainer else "a"
    with serving(written(tmp_path, PREDICTORS[predictor], TRAINERS[trainer]), "--workers", "1") as server:
        body = {"input": {"words": "a b"}}
        # With an id it is a job, whose outputs are stored as they come.
        for answer in (server.client.post("/trainings", json=body), server.client.put("/trainings/x", json=body)):
            told = answer.json()
            assert (told["status"], told["output"], told["error"]) == ("succeeded", output, None)
        assert server.client.put("/predictions/x", json={"input": {"text": "c"}}).json()["output"] == "c"
