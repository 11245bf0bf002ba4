"""Predictions that run on while their receiver is told, trainings, and files that are uploaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.receiver import Receiver, receiving
from support.server import Server, panglot, serving, wait_until

DATA = "data:text/plain;base64,b25lIHR3bw=="
ASYNC = {"prefer": "respond-async"}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture(scope="module")
def server(receiver: Receiver) -> Iterator[Server]:
    flags = ("--workers", "1", "--webhook-allow", receiver.host)
    with serving("cog_steps", *flags, env={"COG_THROTTLE_RESPONSE_INTERVAL": "0.2"}) as running:
        yield running


def told(server: Server, receiver: Receiver, route: str, body: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    """All that the receiver is told about a prediction."""
    receiver.events.clear()
    whole = {"webhook": f"http://{receiver.host}/hook", **body}
    answer = server.client.post(route, json=whole, headers={**ASYNC, **headers})
    assert answer.status_code == 202, answer.text

    def events() -> list[dict[str, Any]]:
        return [json.loads(content) for _, content in list(receiver.events)]

    wait_until(lambda: any(event["completed_at"] for event in events()), 60)
    return events()


# Webhooks


@pytest.mark.document("cog.22")
def test_a_receiver_is_told_of_outputs_and_logs_while_a_prediction_runs(server: Server, receiver: Receiver) -> None:
    events = told(server, receiver, "/predictions", {"input": {"steps": 6, "pause": 0.5}})
    ids = [headers["webhook-id"] for headers, _ in receiver.events]
    assert len(set(ids)) == len(ids)
    assert (events[0]["status"], events[0]["output"]) == ("processing", None)
    running = [event for event in events[1:] if event["status"] == "processing"]
    assert len(running) >= 2, events
    lengths = [len(event["output"] or []) for event in running]
    assert lengths == sorted(lengths)
    assert 0 < lengths[-1] <= 6
    assert any("step 0" in event["logs"] for event in running)
    # The end comes last, with everything.
    assert (events[-1]["status"], len(events[-1]["output"])) == ("succeeded", 6)
    assert events[-1]["logs"].startswith("step 0\nstep 1\n")
    assert [event["status"] for event in events].count("succeeded") == 1


@pytest.mark.document("cog.22")
@pytest.mark.parametrize(
    ("chosen", "kinds"), [(["completed"], set()), (["logs", "completed"], {"logs"}), (["output"], {"output"})]
)
def test_a_request_chooses_what_its_receiver_is_told(
    server: Server, receiver: Receiver, chosen: list[str], kinds: set[str]
) -> None:
    body = {"input": {"steps": 4, "pause": 0.5}, "webhook_events_filter": [*chosen, "completed"]}
    told(server, receiver, "/predictions", body)
    names = {headers["webhook-id"].split("_")[2] for headers, _ in receiver.events}
    assert names == kinds | {"completed"}


@pytest.mark.document("cog.22", "cog.27")
def test_a_receiver_gets_the_trace_of_the_request_with_every_event(server: Server, receiver: Receiver) -> None:
    trace = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "vendor=1,other=2"}
    body = {"input": {"steps": 4, "pause": 0.5}}
    told(server, receiver, "/predictions", body, **trace)
    kinds = {headers["webhook-id"].split("_")[2] for headers, _ in receiver.events}
    assert kinds >= {"started", "logs", "completed"}
    for headers, _ in receiver.events:
        assert {name: headers.get(name) for name in trace} == trace
    told(server, receiver, "/predictions", body, traceparent="no trace", tracestate="vendor=1")
    assert not [headers for headers, _ in receiver.events if trace.keys() & headers.keys()]


def test_a_wrong_pause_between_events_ends_the_start() -> None:
    done = panglot("serve", "tests/packages/cog_steps", "--port", "0", env={"COG_THROTTLE_RESPONSE_INTERVAL": "soon"})
    assert done.returncode == 3
    assert "COG_THROTTLE_RESPONSE_INTERVAL=soon: must be seconds" in done.stderr


# Trainings


@pytest.mark.document("cog.23")
def test_a_training_is_answered_as_a_prediction_is(server: Server) -> None:
    answer = server.client.post("/trainings", json={"input": {"data": DATA, "epochs": 3}})
    assert answer.status_code == 200
    done = answer.json()
    assert (done["status"], done["output"]) == ("succeeded", {"weights": "data:text/plain;base64,Ng=="})
    assert done["logs"] == "epoch 0: 2 words\nepoch 1: 2 words\nepoch 2: 2 words\n"
    failed = server.client.post("/trainings", json={"input": {"data": "data:text/plain;base64,"}}).json()
    assert (failed["status"], failed["error"]) == ("failed", "there is nothing to learn")
    refused = server.client.post("/trainings", json={"input": {"data": DATA, "epochs": 99}})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "input", "epochs"])
    assert server.client.get("/").json()["trainings_url"] == "/trainings"


@pytest.mark.document("cog.23")
def test_a_training_has_an_id_of_its_own(server: Server, receiver: Receiver) -> None:
    put = server.client.put("/trainings/mine", json={"input": {"data": DATA}}).json()
    assert (put["id"], put["status"]) == ("mine", "succeeded")
    # A prediction of the same name is another one.
    assert server.client.put("/predictions/mine", json={"input": {"steps": 1}}).json()["logs"] == "step 0\n"
    assert server.client.post("/trainings/nobody/cancel").status_code == 404
    assert server.client.post("/trainings/mine/cancel").status_code == 200
    events = told(server, receiver, "/trainings", {"input": {"data": DATA}, "webhook_events_filter": ["completed"]})
    assert events[-1]["output"] == {"weights": "data:text/plain;base64,Mg=="}


def test_a_package_without_a_trainer_has_no_trainings() -> None:
    with serving("cog_stream") as server:
        assert server.client.post("/trainings", json={"input": {}}).status_code == 404
        assert "trainings_url" not in server.client.get("/").json()


# Files


@pytest.mark.document("cog.24")
def test_files_of_a_prediction_with_an_id_are_uploaded(receiver: Receiver) -> None:
    receiver.files.clear()
    with serving("cog_steps", "--workers", "1", "--upload-url", f"http://{receiver.host}/out") as server:
        at = [f"http://{receiver.host}/stored/out/panglot-step-{step}.txt" for step in range(2)]
        body = {"input": {"steps": 2}}
        assert server.client.put("/predictions/a", json=body).json()["output"] == at
        assert receiver.files["/out/panglot-step-1.txt"] == ("text/plain", b"picture 1")
        # Without an id, and without a webhook, the client waits for the answer, which has the files.
        assert server.client.post("/predictions", json=body).json()["output"][0].startswith("data:text/plain;base64,")
        receiver.refuse = 1
        failed = server.client.put("/predictions/b", json=body).json()
        assert (failed["status"], failed["error"]) == (
            "failed", "panglot-step-0.txt cannot be uploaded: the receiver answers 403",
        )  # fmt: skip


def test_an_address_that_is_none_ends_the_start() -> None:
    done = panglot("serve", "tests/packages/cog_steps", "--port", "0", "--upload-url", "bucket")
    assert done.returncode == 3
    assert "upload_url 'bucket' is no address" in done.stderr
