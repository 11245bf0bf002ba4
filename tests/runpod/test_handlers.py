"""What a handler is given, and what clients see of what it returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.server import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("runpod_ops", "--workers", "1", env={"RUNPOD_ENDPOINT_ID": "abc"}) as running:
        yield running


def answered(server: Server, value: Any, path: str = "/runsync") -> dict[str, Any]:
    answer = server.client.post(path, json={"input": value})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    return dict(answer.json())


OUTPUTS = {
    "echo": {"got": {"op": "echo"}},
    "text": "x",
    "none": None,
    "empty_error": {"a": 1},
    "output": {"output": 1},
}


@pytest.mark.document("runpod.04", "runpod.06", "runpod.15")
@pytest.mark.parametrize("op", OUTPUTS)
def test_what_it_returns_is_the_output(server: Server, op: str) -> None:
    answer = answered(server, {"op": op})
    assert (answer["status"], answer["output"]) == ("COMPLETED", OUTPUTS[op])
    assert answer["id"].startswith("sync-")
    assert {"delayTime", "executionTime", "workerId"} <= answer.keys()


def test_an_empty_dict_is_no_output(server: Server) -> None:
    answer = answered(server, {"op": "nothing"})
    assert (answer["status"], "output" in answer) == ("COMPLETED", False)


@pytest.mark.document("runpod.07")
def test_an_error_that_it_returns_fails_the_job(server: Server) -> None:
    for op, error in (("error", "bad"), ("errors", ["p is a required input."])):
        answer = answered(server, {"op": op})
        assert (answer["status"], answer["error"], "output" in answer) == ("FAILED", error, False)


@pytest.mark.document("runpod.08")
def test_an_exception_fails_the_job_without_showing_code(server: Server) -> None:
    answer = answered(server, {"op": "raise"})
    told = json.loads(answer["error"])
    assert (answer["status"], told["error_type"], told["error_message"]) == ("FAILED", "<class 'ValueError'>", "no")
    assert told.keys() == {
        "error_type", "error_message", "error_traceback", "hostname", "worker_id", "runpod_version",
    }  # fmt: skip
    assert told["error_traceback"] == ""
    server.wait_log("ValueError: no")


def test_a_result_that_json_cannot_hold_fails_the_job_and_says_where(server: Server) -> None:
    answer = answered(server, {"op": "strange"})
    assert (answer["status"], "$.output.value" in answer["error"]) == ("FAILED", True)


@pytest.mark.document("runpod.05")
def test_the_handler_knows_the_id_that_clients_see(server: Server) -> None:
    answer = answered(server, {"op": "keys"})
    assert answer["output"]["job"] == {"id": answer["id"], "input": {"op": "keys"}, "webhook": None}
    body = {"input": {"op": "keys"}, "s3Config": {"bucketName": "b"}, "id": "mine"}
    seen = server.client.post("/runsync", json=body).json()
    assert seen["output"]["job"]["s3Config"] == {"bucketName": "b"}
    assert seen["output"]["job"]["id"] == seen["id"] != "mine"


@pytest.mark.parametrize("value", [[1], "text", 3, None])
def test_the_input_may_be_any_value(server: Server, value: Any) -> None:
    assert answered(server, value)["output"] == {"got": value}


REFUSED = {
    b"x": "json_invalid",
    b"{}": "missing",
    b"[]": "dataclass_type",
}


@pytest.mark.document("runpod.21")
@pytest.mark.parametrize("body", REFUSED)
def test_a_body_that_is_no_request_is_refused_as_fastapi_does(server: Server, body: bytes) -> None:
    answer = server.client.post("/runsync", content=body)
    assert (answer.status_code, answer.json()["detail"][0]["type"]) == (422, REFUSED[body])
    answer = server.client.post("/v2/any/run", content=body)
    assert (answer.status_code, answer.json()["detail"][0]["type"]) == (422, "missing")


def test_a_large_input_is_found_and_what_stands_behind_it_too(server: Server) -> None:
    body = {"input": {"op": "echo", "text": "x" * 200_000}, "policy": {"ttl": "soon"}}
    answer = server.client.post("/v2/any/run", json=body)
    assert (answer.status_code, "policy.ttl" in answer.json()["error"]) == (400, True)
    del body["policy"]
    assert len(answered(server, body["input"])["output"]["got"]["text"]) == 200_000


@pytest.mark.document("runpod.11")
def test_a_result_may_ask_for_a_fresh_worker(server: Server) -> None:
    answer = answered(server, {"op": "refresh"})
    assert (answer["status"], answer["output"].keys()) == ("COMPLETED", {"pid"})
    assert answered(server, {"op": "pid"})["output"] != answer["output"]["pid"]


@pytest.mark.document("runpod.26")
def test_the_path_for_real_time_requests_gives_the_handlers_own_dict(server: Server) -> None:
    answer = server.client.post("/abc/realtime", json={"id": "own", "input": {"op": "keys"}})
    assert answer.json()["output"]["job"]["id"] == "own"
    assert server.client.post("/abc/realtime", json={"id": "i", "input": {"op": "error"}}).json() == {
        "output": {"a": 1}, "error": "bad",
    }  # fmt: skip


@pytest.mark.document("runpod.11")
def test_a_configuration_may_ask_for_a_fresh_worker_after_each_job() -> None:
    with serving("runpod_refresh", "--workers", "1") as server:
        first, second = (answered(server, {})["output"] for _ in range(2))
        assert (first["jobs"], second["jobs"], first["pid"] != second["pid"]) == (1, 1, True)


@pytest.mark.document("runpod.09")
def test_async_handlers_run_as_many_jobs_at_once_as_they_say() -> None:
    with serving("runpod_async", "--workers", "1") as server:
        assert answered(server, {"prompt": "p"})["output"]["prompt"] == "p"
        assert json.loads(answered(server, {"raise": True})["error"])["error_message"] == "'prompt'"
        jobs = [answered(server, {"seconds": 1}, "/run")["id"] for _ in range(5)]
        most = [server.client.post(f"/status/{job}").json()["output"]["most"] for job in jobs]
        assert 2 <= max(most) <= 4


VALIDATED = {
    "defaults": ({"prompt": "x"}, {"prompt": "x", "steps": 3, "scale": 1.0}),
    "missing": ({}, ["prompt is a required input."]),
    "another type": ({"prompt": 1}, ["prompt should be <class 'str'> type, not <class 'int'>."]),
    "constraints are skipped": ({"prompt": "x", "steps": 20}, {"prompt": "x", "steps": 20, "scale": 1.0}),
    "a whole number": ({"prompt": "x", "scale": 2}, {"prompt": "x", "steps": 3, "scale": 2.0}),
    "unknown": ({"prompt": "x", "z": 1}, ["Unexpected input. z is not a valid input option."]),
}


@pytest.mark.document("runpod.13", "runpod.14")
def test_the_helpers_of_the_sdk_are_there_without_it() -> None:
    with serving("runpod_validator", "--workers", "1") as server:
        for given, expected in VALIDATED.values():
            answer = answered(server, given)
            if isinstance(expected, list):
                assert (answer["status"], answer["error"]) == ("FAILED", expected)
            else:
                assert answer["output"]["input"] == expected
                assert answer["output"]["picture"].startswith("simulated_uploaded/")
                assert (answer["output"]["text"], answer["output"]["is_there"]) == ("local_upload/prompt.txt", True)
        failed = answered(server, {"prompt": "x", "steps": "a"})
        assert json.loads(failed["error"])["error_type"] == "<class 'TypeError'>"


@pytest.mark.document("runpod.02", "runpod.14")
def test_a_repository_with_several_scripts_a_callable_object_and_checks() -> None:
    with serving("runpod_hub", "--workers", "1") as server:
        assert answered(server, {"text": "good good bad"})["output"] == {"score": 1, "checked": ["weights"]}
