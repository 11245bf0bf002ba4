"""Asynchronous inference of the hosted platform: a request becomes a job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import Server, serving, wait_until


@pytest.fixture(scope="module")
def echo() -> Iterator[Server]:
    with serving("truss_echo") as server:
        yield server


def submitted(server: Server, path: str, **body: object) -> str:
    answer = server.client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["request_id"])


def ended(server: Server, request: str) -> dict[str, object]:
    where = f"/async_request/{request}"
    wait_until(lambda: server.client.get(where).json()["status"] not in ("QUEUED", "IN_PROGRESS"), 30)
    shown: dict[str, object] = server.client.get(where).json()
    return shown


@pytest.mark.document("truss.37")
@pytest.mark.parametrize("path", ["/production/async_predict", "/environments/staging/async_predict"])
def test_the_input_is_a_field_and_the_answer_is_stored(echo: Server, path: str) -> None:
    given = {"a": [1, 2]}
    request = submitted(echo, path, model_input=given, max_time_in_queue_seconds=60)
    shown = ended(echo, request)
    assert (shown["request_id"], shown["status"], shown["errors"]) == (request, "SUCCEEDED", [])
    direct = echo.client.post("/production/predict", json=given)
    assert echo.client.get(f"/jobs/{request}/result").json() == direct.json()


@pytest.mark.document("truss.37")
def test_what_cannot_become_a_request_is_refused(echo: Server) -> None:
    for body, sentence in (
        ({"a": 1}, "model_input"),
        ({"model_input": 1, "max_time_in_queue_seconds": "x"}, "a whole number"),
        ({"model_input": 1, "webhook_endpoint": "https://example.com/hook"}, "calls nobody back"),
    ):
        refused = echo.client.post("/async_predict", json=body)
        assert (refused.status_code, sentence in refused.json()["error"]) == (400, True)
    assert echo.client.get("/async_request/nobody").status_code == 404


@pytest.mark.document("truss.37")
def test_an_ended_request_is_not_canceled(echo: Server) -> None:
    request = submitted(echo, "/async_predict", model_input=1)
    ended(echo, request)
    answer = echo.client.delete(f"/async_request/{request}").json()
    assert (answer["request_id"], answer["canceled"]) == (request, False)
