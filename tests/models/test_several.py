"""Several packages in one server, of several dialects, each a model under its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import validate

from support.server import PACKAGES, Server, panglot, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    others = ("ti=" + str(PACKAGES / "tiinfer_batch"), "ava=" + str(PACKAGES / "evals_hello"))
    more = (f"second={PACKAGES / 'function'}", f"arts={PACKAGES / 'modelarts_echo'}")
    with serving("function", *others, *more) as running:
        yield running


def test_the_first_named_is_the_default(server: Server) -> None:
    assert server.predict(5).json() == {"got": 5}
    server.wait_log(r"function is ready on \S+/models/function \(plain, the default\)")
    server.wait_log(r"the server is ready on \S+ \(5 models\)")


@pytest.mark.parametrize("start", ["/models/function", "/models/second", "/models/second/versions/1"])
def test_every_model_answers_under_its_name(server: Server, start: str) -> None:
    assert server.client.post(f"{start}/predict", json=[1]).json() == {"got": [1]}


def test_each_platform_keeps_its_routes_pages_and_words(server: Server) -> None:
    assert server.client.get("/models/ti/").text == "MOSEC service"
    assert server.client.post("/models/ti/inference", json={}).status_code in (200, 400, 422, 500)
    assert server.client.get("/models/ti/v1/models").status_code == 200
    health = server.client.get("/models/ava/health")
    assert health.status_code == 200
    assert health.text.startswith("ok")
    answered = server.client.post("/models/ava/V1/EVAL", json={"data": {"uri": "x"}}, headers={"x-reqid": "mine"})
    assert answered.headers["x-reqid"] == "mine"
    assert server.client.post("/models/ava/nothing", json={}).json().keys() == {"error"}
    assert server.client.get("/models/arts/health").json() == {"status": "OK"}
    page = server.client.post("/models/arts/nothing")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert server.client.post("/models/arts", json={"a": 1}).status_code == server.client.post(
        "/models/arts/", json={"a": 1}
    ).status_code  # fmt: skip


def test_a_path_that_is_no_model_says_which_there_are(server: Server) -> None:
    answer = server.client.post("/models/tii/inference", json={})
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert message == "there is no model 'tii'; this server has function, ti, ava, second, arts"
    assert "POST /models/second/predict" in server.client.get("/models/second/nothing").json()["error"]["message"]
    assert server.client.get("/models/tii").status_code == 404
    assert server.client.get("/models/second/predict").status_code == 405


def test_metrics_tell_models_apart(server: Server) -> None:
    before = server.metric("panglot_requests_total", model="second", version="1", route="/predict", status="200")
    server.client.post("/models/second/predict", json=1)
    text = server.client.get("/metrics").text
    assert server.metric("panglot_requests_total", model="second", route="/predict", status="200") == before + 1
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(set(names)) == len(names)
    assert all("model=" in line for line in text.splitlines() if line.startswith("panglot_stage_seconds"))
    assert "panglot_request_memory_bytes 0" in text
    assert 'model="ti"' in text
    own = server.client.get("/models/second/metrics").text
    assert "model=" not in own
    assert 'route="/predict",status="200"' in own


def test_the_document_has_the_routes_of_all(server: Server) -> None:
    document: dict[str, Any] = server.client.get("/openapi.json").json()
    validate(document)
    assert {"/predict", "/models/second/predict", "/models/ti/inference", "/models/ava/v1/eval"} <= set(
        document["paths"]
    )
    alone = server.client.get("/models/second/openapi.json").json()
    validate(alone)
    assert alone["servers"] == [{"url": "/models/second"}]
    assert "/predict" in alone["paths"]
    assert server.client.get("/docs").status_code == 200


def test_the_page_shows_all(server: Server) -> None:
    shown = server.client.get("/status.json").json()["about"]["models"]
    assert [model["name"] for model in shown] == ["function", "ti", "ava", "second", "arts"]
    assert {model["state"] for model in shown} == {"ready"}
    assert server.client.get("/models/second", follow_redirects=True).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{p}/function", "{p}/function"), "two models are called 'function' (fix: say NAME="),
        (("docs={p}/function", "{p}/batch"), "a model cannot be called 'docs': that name is reserved"),
        (("{p}/function", "b={p}/nothing"), "nothing does not exist"),
        (("{p}/function", "{p}/batch", "--default", "other"), "--default other: there is no such model"),
        (("{p}/function", "{p}/batch", "--inline"), "--inline is for one package"),
        (("{p}/function", "{p}/batch", "--dynamic", "x"), "--dynamic is for megflow packages, and this one is plain"),
        (("{p}/function", "{p}/batch", "--", "-v"), "arguments for a script can be given to one package only"),
        (("--models", "/nowhere"), "there is no such folder"),
        (("{p}/function", "{p}/batch", "--admin"), "--admin is for a folder of models"),
        ((), "name a package, or --models DIR"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = panglot("serve", *(word.format(p=PACKAGES) for word in arguments), "--port", "0")
    assert done.returncode in (2, 3)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
