"""Receivers of webhooks are told what became of jobs: signed, tried again, over restarts too."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.jobs.webhooks import refusal, secrets_of, signature
from support.receiver import Receiver, receiving
from support.server import PACKAGES, Server, serving, wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def test_the_signature_is_that_of_the_reference() -> None:
    keys = secrets_of("", SECRET)
    signed = signature(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_only_hosts_that_are_named_may_be_called() -> None:
    assert refusal("http://127.0.0.1:9/x", ("127.0.0.1:9",)) == ""
    for url in ("http://127.0.0.1:10/x", "http://example.com/", "file:///etc/passwd", "http://user@127.0.0.1:9/", ""):
        assert refusal(url, ("127.0.0.1:9",)), url


def test_a_receiver_is_told_signed_and_again_after_a_refusal(receiver: Receiver, tmp_path: Path) -> None:
    host = receiver.host
    flags = ("--jobs", str(tmp_path / "jobs"), "--webhook-allow", host)
    hook = f'http://{host}/hook?a=1; events="started completed"'
    with serving("job_steps", *flags, env={"PANGLOT_WEBHOOK_SECRET": SECRET}) as server:
        receiver.refuse = 1
        answer = server.client.post("/predict", json={"a": 1}, headers={"prefer": "respond-async", "job-webhook": hook})
        job = answer.json()["id"]
        wait_until(lambda: len(receiver.events) == 2, 60)
        other = {"prefer": "respond-async", "job-webhook": "http://127.0.0.1:9/"}
        refused = server.client.post("/predict", json={}, headers=other)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_webhook")
    told = {json.loads(body)["type"]: (headers, json.loads(body), body) for headers, body in receiver.events}
    headers, value, body = told["job.completed"]
    assert headers["webhook-id"] == f"evt_{job}_completed"
    assert (value["data"]["state"], value["data"]["answer"]) == ("done", {"echo": {"a": 1}})
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    assert headers["webhook-signature"] == signature(
        [key], headers["webhook-id"], int(headers["webhook-timestamp"]), body
    )


def test_an_event_that_was_refused_comes_again_after_a_crash_and_a_restart(receiver: Receiver, tmp_path: Path) -> None:
    host = receiver.host
    flags = ("--jobs", str(tmp_path / "jobs"), "--webhook-allow", host)
    headers = {"prefer": "respond-async", "job-webhook": f"http://{host}/hook"}
    receiver.refuse = 1
    server = Server(PACKAGES / "job_steps", *flags).wait_ready()
    job = server.client.post("/predict", json={"a": 1}, headers=headers).json()["id"]
    wait_until(lambda: server.metric("panglot_webhooks", outcome="failed") == 1, 60)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)
    server.close()
    assert receiver.events == []
    with serving("job_steps", *flags) as server:
        wait_until(lambda: len(receiver.events) == 1, 60)
        wait_until(lambda: server.metric("panglot_webhooks", outcome="delivered") == 1)
        assert server.client.get(f"/jobs/{job}").json()["attempts"] == 1, "the job itself did not run again"
    ((sent, body),) = receiver.events
    assert [sent["webhook-id"]] == receiver.refused == [f"evt_{job}_completed"]
    assert json.loads(body)["data"]["answer"] == {"echo": {"a": 1}}
