"""The forms that predictors of Cog have, each written for its test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.receiver import receiving
from support.server import Server, serving, wait_until


def written(folder: Path, script: str, name: str = "Predictor", more: str = "") -> Path:
    (folder / "predict.py").write_text(script)
    (folder / "cog.yaml").write_text(f"predict: predict.py:{name}\n{more}")
    return folder


def predicted(server: Server, **given: Any) -> dict[str, Any]:
    answer = server.client.post("/predictions", json={"input": given})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


FORMS = """
import asyncio
from cog import BasePredictor, BaseRunner, BaseModel, ConcatenateIterator, AsyncConcatenateIterator, Input
from typing import Iterator, List, Optional

def function(text: str) -> str:
    return text + "!"

def generating(text: str) -> Iterator[str]:
    yield from text

async def awaited(text: str) -> str:
    await asyncio.sleep(0)
    return text + "!"

async def awaited_generating(text: str) -> AsyncConcatenateIterator[str]:
    for each in text:
        yield each

class Plain:
    def predict(self, text: str) -> str:
        return text + "!"

class WithoutHint:
    def predict(self, text: str):
        return text + "!"

class Runs(BaseRunner):
    def run(self, text: str) -> str:
        return text + "!"

class Base(BasePredictor):
    def setup(self):
        self.end = "!"

    def predict(self, text: str) -> str:
        return text + self.end

class Inherits(Base):
    pass

class AsyncSetup(Base):
    async def setup(self):
        await asyncio.sleep(0)
        self.end = "!"

class Given(BasePredictor):
    def predict(self, *, text: str) -> str:
        return text + "!"

class Parts(BasePredictor):
    def predict(self, text: str) -> ConcatenateIterator[str]:
        for each in text:
            if each == "f":
                raise RuntimeError("no further")
            yield each

class Answer(BaseModel):
    text: str
    length: Optional[int] = None
    more: List[str] = []

class Longer(Answer):
    end: str = "!"

class Models(BasePredictor):
    def predict(self, text: str) -> Longer:
        return Longer(text=text, more=["m"])

class Another(BasePredictor):
    def predict(self, text: str) -> int:
        return text
"""
OUTPUTS = {
    **dict.fromkeys(("function", "awaited", "Plain", "WithoutHint", "Runs", "Inherits", "AsyncSetup", "Given"), "ab!"),
    **{name: ["a", "b"] for name in ("generating", "awaited_generating", "Parts")},
    "Models": {"text": "ab", "length": None, "more": ["m"], "end": "!"},
    # The page about the dialect has it among the differences.
    "Another": "ab",
}


@pytest.mark.document("cog.01", "cog.03", "cog.31")
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_predictor_has_one_of_many_forms(name: str, tmp_path: Path) -> None:
    with serving(written(tmp_path, FORMS, name), "--workers", "1") as server:
        told = predicted(server, text="ab")
        assert (told["status"], told["output"]) == ("succeeded", OUTPUTS[name])
        if name == "Parts":
            assert predicted(server, text="")["output"] == []
            failed = predicted(server, text="af")
            assert (failed["status"], failed["error"], failed["output"]) == ("failed", "no further", None)


WEIGHTS = """
import os
from cog import BasePredictor, File, Path
from typing import Optional, Union

class Predictor(BasePredictor):
    def setup(self, weights{hint} = "no default"):
        if hasattr(weights, "read"):
            self.seen = ["file", weights.read().decode()]
        elif weights is None:
            self.seen = ["none", ""]
        else:
            self.seen = [type(weights).__name__, os.path.basename(str(weights))]

    def predict(self) -> list:
        return self.seen
"""
SEEN = {
    (": Optional[Path]", ""): ["Path", "weights"],
    (": Optional[str]", ""): ["str", "weights"],
    (": str", "own.bin"): ["str", "own.bin"],
    (": Path", "own.bin"): ["Path", "own.bin"],
    (": File", "own.bin"): ["file", "own weights"],
    ("", "own.bin"): ["str", "own.bin"],
}


@pytest.mark.document("cog.03", "cog.31")
@pytest.mark.parametrize(("hint", "variable"), SEEN)
def test_weights_come_from_the_variable_or_the_folder(hint: str, variable: str, tmp_path: Path) -> None:
    folder = written(tmp_path, WEIGHTS.format(hint=hint))
    (folder / "weights").mkdir()
    (folder / "own.bin").write_text("own weights")
    env = {"COG_WEIGHTS": variable} if variable else {}
    with serving(folder, "--workers", "1", env=env) as server:
        assert predicted(server)["output"] == SEEN[hint, variable]


def test_without_weights_setup_gets_none(tmp_path: Path) -> None:
    with serving(written(tmp_path, WEIGHTS.format(hint="")), "--workers", "1") as server:
        assert predicted(server)["output"] == ["none", ""]


CHECKS = """
import asyncio
from cog import BasePredictor

class Predictor(BasePredictor):
    def predict(self, answer: str) -> str:
        self.answer = answer
        return answer

    async def healthcheck(self):
        await asyncio.sleep(0)
        if self.answer == "raise":
            raise RuntimeError("not well")
        return {"true": True, "false": False, "none": None, "one": 1}[self.answer]
"""
HEALTH = {
    "true": ("READY", ""),
    "one": ("READY", ""),
    "false": ("UNHEALTHY", "user-defined healthcheck returned False"),
    "none": ("UNHEALTHY", "user-defined healthcheck returned False"),
    "raise": ("UNHEALTHY", "not well"),
}


@pytest.mark.document("cog.16", "cog.31")
def test_a_check_may_be_awaited_and_give_anything(tmp_path: Path) -> None:
    with serving(written(tmp_path, CHECKS), "--workers", "1") as server:
        for answer, (status, reason) in HEALTH.items():
            predicted(server, answer=answer)
            told = server.client.get("/health-check").json()
            assert (told["status"], reason in told.get("user_healthcheck_error", "")) == (status, True), answer


SCOPE = """
import cog
from cog import BasePredictor, current_scope, emit_metric

class Predictor(BasePredictor):
    def predict(self) -> dict:
        emit_metric("old", 1)
        current_scope().record_metric("new", 2)
        self.scope.record_metric("own", 3)
        return dict(current_scope().context)
"""


@pytest.mark.document("cog.06", "cog.31")
def test_figures_and_the_context_are_those_of_the_prediction(tmp_path: Path) -> None:
    with serving(written(tmp_path, SCOPE), "--workers", "1") as server:
        told = server.client.post("/predictions", json={"input": {}, "context": {"user": "u"}}).json()
        assert told["output"] == {"user": "u"}
        assert {name: told["metrics"][name] for name in ("old", "new", "own")} == {"old": 1, "new": 2, "own": 3}
        assert predicted(server)["output"] == {}


CANCELLED = """
import asyncio, time
from cog import BasePredictor, CancelationException
from cog.exceptions import CancelationException as Same

assert Same is CancelationException

class Sync(BasePredictor):
    def predict(self, how: str) -> str:
        print("begins", how)
        if how == "raises":
            raise RuntimeError("no")
        try:
            time.sleep(60 if how == "waits" else 0)
        except CancelationException:
            print("cleans up")
            raise
        return how

class Async(BasePredictor):
    async def predict(self, how: str) -> str:
        print("begins", how)
        if how == "raises":
            raise RuntimeError("no")
        try:
            await asyncio.sleep(60 if how == "waits" else 0)
        except asyncio.CancelledError:
            print("cleans up")
            raise
        return how
"""


@pytest.mark.document("cog.18", "cog.22", "cog.31")
@pytest.mark.parametrize("name", ["Sync", "Async"])
def test_a_receiver_is_told_however_a_prediction_ends(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path, CANCELLED, name)
    with receiving() as receiver, serving(folder, "--workers", "1", "--webhook-allow", receiver.host) as server:

        def told(how: str) -> dict[str, Any]:
            receiver.events.clear()
            line = len(server.lines)
            hook = {"webhook": f"http://{receiver.host}/hook", "webhook_events_filter": ["completed"], "id": how}
            body = {"input": {"how": how}, **hook}
            accepted = server.client.post("/predictions", json=body, headers={"prefer": "respond-async"})
            assert accepted.status_code == 202
            if how == "waits":
                server.wait_log("begins waits", after=line)
                for _ in range(2):
                    assert server.client.post("/predictions/waits/cancel").status_code == 200
                server.wait_log("cleans up", after=line)
            wait_until(lambda: bool(receiver.events), 60)
            return dict(json.loads(receiver.events[0][1]))

        assert (told("ends")["status"], told("raises")["status"], told("waits")["status"]) == (
            "succeeded", "failed", "canceled",
        )  # fmt: skip
        assert predicted(server, how="ends")["output"] == "ends"


SCHEMA = """
from typing import Annotated, Any, List, Optional
from cog import BasePredictor, ConcatenateIterator, File, Input, Opaque, Path, Secret

class Predictor(BasePredictor):
    def predict(
        self,
        text: str = Input(description="what to say", min_length=2, max_length=9, regex="^a"),
        number: float = Input(default=0.5, ge=0, le=1),
        kind: str = Input(default="a", choices=["a", "b"]),
        level: int = Input(default=2, choices=[1, 2]),
        picture: Path = Input(default=None),
        opened: Optional[File] = None,
        key: Secret = Input(default=None),
        old: str = Input(default="x", deprecated=True),
        anything: Annotated[Any, Opaque] = None,
        many: List[int] = Input(default=[1]),
    ) -> ConcatenateIterator[str]:
        yield text
"""
PROPERTIES = {
    "text": {
        "title": "Text", "type": "string", "description": "what to say", "minLength": 2, "maxLength": 9,
        "pattern": "^a", "x-order": 0,
    },
    "number": {"title": "Number", "type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "x-order": 1},
    "kind": {"allOf": [{"$ref": "#/components/schemas/kind"}], "default": "a", "x-order": 2},
    "level": {"allOf": [{"$ref": "#/components/schemas/level"}], "default": 2, "x-order": 3},
    "picture": {"title": "Picture", "type": "string", "format": "uri", "x-order": 4},
    "opened": {"title": "Opened", "type": "string", "format": "uri", "x-order": 5},
    "key": {"type": "string", "format": "password", "writeOnly": True, "x-cog-secret": True, "x-order": 6},
    "old": {"type": "string", "default": "x", "deprecated": True, "x-order": 7},
    "many": {"title": "Many", "type": "array", "items": {"type": "integer"}, "default": [1], "x-order": 9},
}  # fmt: skip


@pytest.mark.document("cog.16", "cog.31")
def test_the_document_has_what_inputs_and_outputs_say(tmp_path: Path) -> None:
    with serving(written(tmp_path, SCHEMA), "--workers", "1") as server:
        schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
        given = schemas["Input"]["properties"]
        for name, expected in PROPERTIES.items():
            assert {key: given[name].get(key) for key in expected} == expected
        assert (schemas["Input"]["required"], list(given)[8]) == (["text"], "anything")
        assert schemas["level"] == {
            "title": "level",
            "type": "integer",
            "enum": [1, 2],
            "description": "An enumeration.",
        }
        assert schemas["Output"] == {
            "title": "Output", "type": "array", "items": {"type": "string"}, "x-cog-array-type": "iterator",
            "x-cog-array-display": "concatenate",
        }  # fmt: skip
        assert predicted(server, text="ab", anything={"a": [1]})["input"]["anything"] == {"a": [1]}
