"""Predictions as clients of Cog's server see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.server import Server, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("cog_ops", "--workers", "1", "--jobs-attempts", "1") as running:
        yield running


@pytest.fixture(scope="module")
def words() -> Iterator[Server]:
    with serving("cog_stream", "--workers", "1") as running:
        yield running


def posted(server: Server, value: Any, **headers: str) -> httpx.Response:
    return server.client.post("/predictions", json={"input": value}, headers=headers)


def predicted(server: Server, value: Any) -> dict[str, Any]:
    answer = posted(server, value)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.document("cog.04", "cog.09")
def test_a_prediction_has_its_inputs_with_defaults_its_output_and_what_was_printed(server: Server) -> None:
    told = predicted(server, {"n": "3", "kind": "b", "unknown": 1})
    assert told["input"] == {
        "op": "echo", "n": 3, "image": None, "kind": "b", "scale": 1.0, "flag": False, "images": [], "seed": None,
        "token": None,
    }  # fmt: skip
    assert told["output"] == {"text": "echo 3 b 1.0 False None", "n": None, "file": None}
    assert (told["status"], told["error"], told["logs"]) == ("succeeded", None, "log line\nerr line\n")
    assert told["metrics"]["predict_time"] > 0
    assert {"id", "version", "created_at", "started_at", "completed_at"} <= told.keys()


@pytest.mark.document("cog.09")
@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"input": null}'])
def test_without_inputs_all_have_their_defaults(server: Server, body: bytes) -> None:
    answer = server.client.post("/predictions", content=body)
    assert answer.json()["output"]["text"] == "echo 2 a 1.0 False None"


@pytest.mark.document("cog.10")
def test_a_predictor_that_fails_is_an_answer(server: Server) -> None:
    told = predicted(server, {"op": "raise"})
    assert (told["status"], told["error"], told["output"], told["metrics"]) == ("failed", "no", None, None)
    assert told["logs"] == "log line\nerr line\n"
    server.wait_log("ValueError: no")
    gone = "the file /nowhere/o.txt cannot be read: No such file or directory"
    assert predicted(server, {"op": "gone"})["error"] == gone
    server.wait_log(rf"predict.py:\d+: predict: {gone}")
    assert predicted(server, {"op": "nan"})["status"] == "failed"


LIMIT = "ensure this value is less than or equal to 5"
REFUSED = {
    "too large": ({"n": 9}, "n", LIMIT, "value_error.number.not_le"),
    "no number": ({"n": "x"}, "n", "value is not a valid integer", "type_error.integer"),
    "no choice": (
        {"kind": "z"}, "kind", "value is not a valid enumeration member; permitted: 'a', 'b'", "type_error.enum",
    ),
    "a local file": (
        {"image": "/etc/hostname"}, "image",
        "'' is not a valid URL scheme. 'data', 'http', or 'https' is supported.", "value_error",
    ),
    "no list": ({"images": "x"}, "images", "value is not a valid list", "type_error.list"),
}  # fmt: skip


@pytest.mark.document("cog.05", "cog.11")
@pytest.mark.parametrize("name", REFUSED)
def test_wrong_inputs_are_refused_with_their_name(server: Server, name: str) -> None:
    value, field, message, kind = REFUSED[name]
    answer = posted(server, value)
    (detail,) = answer.json()["detail"]
    assert (answer.status_code, detail["loc"]) == (422, ["body", "input", field])
    assert (detail["msg"], detail["type"]) == (message, kind)


def test_an_address_in_this_network_is_not_fetched(server: Server) -> None:
    answer = posted(server, {"image": f"{server.url}/health-check"})
    assert (answer.status_code, "cannot be fetched" in answer.json()["detail"][0]["msg"]) == (422, True)


@pytest.mark.parametrize("body", [b"x", b"[]", b'{"input": 1}'])
def test_a_body_that_is_no_request_is_refused(server: Server, body: bytes) -> None:
    assert server.client.post("/predictions", content=body).status_code == 422


@pytest.mark.document("cog.05", "cog.07")
def test_files_come_and_go_as_data_urls(server: Server) -> None:
    picture = "data:text/plain;base64,aGk="
    told = predicted(server, {"op": "image", "image": picture, "images": [picture, picture]})
    name, content = told["output"]["text"].split(" ")
    assert (name.endswith("file.txt"), content, told["output"]["n"]) == (True, "hi", 2)
    assert told["input"]["image"] == picture
    assert predicted(server, {"op": "file"})["output"]["file"] == picture


@pytest.mark.document("cog.06")
def test_secrets_stay_secret_and_metrics_are_told(server: Server) -> None:
    told = predicted(server, {"op": "secret", "token": "s3cret"})
    assert (told["input"]["token"], told["output"]["text"]) == ("**********", "********** s3cret")
    assert predicted(server, {"op": "metric"})["metrics"]["tokens"] == 3


@pytest.mark.document("cog.12", "cog.14")
def test_a_prediction_that_nobody_waits_for_is_accepted_and_can_be_cancelled(server: Server) -> None:
    body = {"id": "sleepy", "input": {"op": "sleep"}}
    answer = server.client.post("/predictions", json=body, headers={"prefer": "respond-async"})
    assert (answer.status_code, answer.json()["id"], answer.json()["input"]) == (202, "sleepy", {"op": "sleep"})
    assert answer.json()["status"] in ("starting", "processing")
    cancelled = server.client.post("/predictions/sleepy/cancel")
    assert (cancelled.status_code, cancelled.json()) == (200, {})
    again = server.client.put("/predictions/sleepy", json={"input": {"op": "sleep"}})
    assert (again.status_code, again.json()["status"]) == (200, "canceled")
    unknown = server.client.post("/predictions/nobody/cancel")
    assert (unknown.status_code, unknown.json()) == (404, {})


@pytest.mark.document("cog.14", "cog.18")
def test_a_prediction_that_is_cancelled_can_clean_up_and_its_worker_serves_on(server: Server) -> None:
    (worker,) = server.workers()
    mark = len(server.lines)
    slow = {"id": "slow", "input": {"op": "clean"}}
    server.client.post("/predictions", json=slow, headers={"prefer": "respond-async"})
    server.wait_log("sleeping", after=mark)
    assert server.client.post("/predictions/slow/cancel").status_code == 200
    server.wait_log("cleaning up", after=mark)
    assert predicted(server, {})["status"] == "succeeded"
    assert [process.pid for process in server.workers()] == [worker.pid]


@pytest.mark.document("cog.06")
def test_a_secret_is_shown_to_nobody_before_the_end_either(server: Server) -> None:
    body = {"input": {"op": "secret", "token": "s3cret"}}
    for path in ("/predictions", "/v1/predictions"):
        told = server.client.post(path, json=body, headers={"prefer": "respond-async"}).json()
        assert told["input"] == {"op": "secret", "token": "**********"}


@pytest.mark.document("cog.13")
def test_a_prediction_with_an_id_is_made_once(server: Server) -> None:
    first, second = (server.client.put("/predictions/p1", json={"input": {"n": 3}}).json() for _ in range(2))
    assert (first["id"], first["status"]) == ("p1", "succeeded")
    assert first == second
    other = server.client.put("/predictions/p2", json={"id": "p3", "input": {}})
    message = "prediction ID must match the ID supplied in the URL"
    assert (other.status_code, other.json()["detail"][0]["msg"]) == (422, message)
    assert server.client.put("/predictions/p4", json={"input": {"n": 9}}).status_code == 422
    failed = server.client.put("/predictions/p5", json={"input": {"op": "raise"}})
    assert (failed.status_code, failed.json()["status"], failed.json()["error"]) == (200, "failed", "no")


def test_a_prediction_that_kills_its_worker_is_a_failed_one_with_a_status_of_its_own(server: Server) -> None:
    answer = posted(server, {"op": "die"})
    assert (answer.status_code, answer.json()["status"]) == (500, "failed")


@pytest.mark.document("cog.03", "cog.16")
def test_the_pages_of_the_server(server: Server) -> None:
    assert server.client.get("/").json()["predictions_url"] == "/predictions"
    # The worker may still be starting, after a prediction that killed the one before.
    wait_until(lambda: server.client.get("/health-check").json()["status"] == "READY")
    assert server.client.get("/health-check").json()["setup"]["logs"] == "setting up\n"
    schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Input"]["properties"]["n"] == {
        "title": "N", "type": "integer", "minimum": 1, "maximum": 5, "default": 2, "x-order": 1,
    }  # fmt: skip
    assert schemas["kind"]["enum"] == ["a", "b"]
    assert schemas["Output"]["properties"]["file"]["format"] == "uri"
    assert {"PredictionRequest", "PredictionResponse", "Status", "WebhookEvent"} <= schemas.keys()


# Iterators


def events(text: str) -> list[tuple[str, Any]]:
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


@pytest.mark.document("cog.07", "cog.15")
def test_an_iterator_is_a_list_or_events(words: Server) -> None:
    assert predicted(words, {"prompt": "a b"})["output"] == ["a ", "b "]
    assert words.client.put("/predictions/w", json={"input": {"prompt": "a b"}}).json()["output"] == ["a ", "b "]
    answer = posted(words, {"prompt": "a b"}, accept="text/event-stream")
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events(answer.text)
    assert [name for name, _ in told] == ["start", "output", "output", "completed"]
    assert told[1][1] == {"chunk": "a ", "index": 0}
    assert (told[-1][1]["status"], told[-1][1]["output"]) == ("succeeded", ["a ", "b "])
    told = events(posted(words, {"prompt": "a raise"}, accept="text/event-stream").text)
    assert (told[-1][1]["status"], told[-1][1]["error"]) == ("failed", "no more words")
    words.wait_log("RuntimeError: no more words")


@pytest.mark.document("cog.15")
def test_prints_and_figures_are_events_while_the_prediction_runs() -> None:
    with serving("cog_told", "--workers", "1") as server:
        body = {"input": {"prompt": "a b", "pause": 2}}
        seen: list[str] = []
        headers = {"accept": "text/event-stream"}
        with server.client.stream("POST", "/predictions", json=body, headers=headers) as answer:
            text = ""
            for piece in answer.iter_text():
                text += piece
                seen.append(text)
        told = events(text)
        names = [name for name, _ in told]
        word = ["log", "metric", "metric", "metric", "output"]
        assert names == ["start", "log", *word, *word, "log", "completed"]
        assert told[0][1]["id"] == told[-1][1]["id"]
        assert any("word 0" in each and "chunk" not in each for each in seen), "a line comes before the next output"
        sources = [content["source"] for name, content in told if name == "log"]
        assert sources == ["stdout", "stdout", "stderr", "stdout"]
        assert told[-1][1]["metrics"]["told"] == {"lengths": [1, 1], "last": "b"}
        named = server.client.put("/predictions/mine", json={"input": {"prompt": "a"}}).json()
        assert (named["output"], named["metrics"]["words"]) == (["a "], 1), "a job has no such events in its store"


@pytest.mark.document("cog.15")
def test_events_of_a_predictor_without_them_are_refused(server: Server) -> None:
    answer = posted(server, {}, accept="text/event-stream")
    assert (answer.status_code, "@cog.streaming" in answer.json()["error"]) == (406, True)


# Replicate


@pytest.mark.document("cog.17")
def test_predictions_of_replicates_api_are_created_waited_for_and_polled(words: Server) -> None:
    body = {"version": "any", "input": {"prompt": "a b"}}
    done = words.client.post("/v1/predictions", json=body, headers={"prefer": "wait"})
    assert (done.status_code, done.json()["status"], done.json()["output"]) == (201, "succeeded", ["a ", "b "])
    slow = {"input": {"prompt": "a b c", "pause": 0.3}, "stream": True}
    created = words.client.post("/v1/models/me/words/predictions", json=slow)
    told = created.json()
    assert (created.status_code, told["status"] in ("starting", "processing")) == (201, True)
    stream = words.client.get(told["urls"]["stream"])
    assert [line for line in stream.text.splitlines() if line.startswith("data: ")] == [
        "data: a ", "data: b ", "data: c ", "data: {}",
    ]  # fmt: skip
    last = words.client.get(told["urls"]["get"]).json()
    assert (last["id"], last["status"], last["output"]) == (told["id"], "succeeded", ["a ", "b ", "c "])


@pytest.mark.document("cog.17")
def test_predictions_of_replicates_api_are_cancelled_and_unknown_ones_not_found(words: Server) -> None:
    slow = {"input": {"prompt": "a b c d e f g h", "pause": 2}}
    told = words.client.post("/v1/predictions", json=slow).json()
    wait_until(lambda: words.client.get(told["urls"]["get"]).json()["output"])
    cancelled = words.client.post(told["urls"]["cancel"]).json()
    assert (cancelled["status"], words.client.get(told["urls"]["get"]).json()["status"]) == ("canceled", "canceled")
    assert words.client.get("/v1/predictions/nothing").status_code == 404


# Other predictors


@pytest.mark.document("cog.08")
def test_async_predictors_run_several_predictions_at_once() -> None:
    with serving("cog_async", "--workers", "1") as server:
        assert predicted(server, {"count": 2})["output"] == ["0 of 1", "1 of 1"]
        body = {"input": {"count": 2, "seconds": 1.5}}
        jobs = [server.client.post("/v1/predictions", json=body).json()["urls"]["get"] for _ in range(3)]
        wait_until(lambda: all(server.client.get(job).json()["status"] == "succeeded" for job in jobs))
        assert max(server.client.get(job).json()["output"][-1] for job in jobs) > "1 of 1"


@pytest.mark.document("cog.01", "cog.02", "cog.07")
def test_a_function_in_a_folder_with_variables_of_the_image() -> None:
    with serving("cog_function", "--workers", "1") as server:
        told = predicted(server, {"text": "bob", "times": 2})
        assert told["output"] == {"greeting": "hello bob hello bob", "set": [1], "tuple": [1, 2]}
        assert posted(server, {}).json()["detail"][0]["msg"] == "field required"


@pytest.mark.document("cog.21")
def test_several_files_come_and_go() -> None:
    with serving("cog_pictures", "--workers", "1") as server:
        told = predicted(server, {"pictures": ["data:text/plain;base64,aGk=", "data:text/plain;base64,aG8="]})
        assert told["output"] == ["data:text/plain;base64,aGkr", "data:text/plain;base64,aG8r"]
        assert posted(server, {}).json()["detail"][0]["msg"] == "field required"
