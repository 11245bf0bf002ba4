"""Receivers of webhooks are told what became of jobs: signed, tried again, over restarts too."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot.jobs.job import DONE, JobOutcome, NewJob, Webhook, new_id
from panglot.jobs.webhooks import sending as sending_module
from panglot.jobs.webhooks.sending import refusal, secrets_of, signature
from panglot.serving.job_host import JobHost
from panglot.settings import Settings
from panglot.web.models import Models
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
        assert "without a signature" not in server.log
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
        server.wait_log("webhooks are sent without a signature")
        assert server.log.count("webhooks are sent without a signature") == 1
    ((sent, body),) = receiver.events
    assert "webhook-signature" not in sent
    assert [sent["webhook-id"]] == receiver.refused == [f"evt_{job}_completed"]
    assert json.loads(body)["data"]["answer"] == {"echo": {"a": 1}}


class Sending:
    """One life of what tells receivers, without a server: its clock is a test's."""

    def __init__(self, folder: Path, *hosts: str) -> None:
        self.host = JobHost(Settings(jobs=str(folder), webhook_allow=hosts), Models())
        self.board, self.sender = self.host.board, self.host.sender
        self.board.start()

    async def ask(self, put: Callable[..., None], *arguments: Any) -> Any:
        stored: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        put(*arguments, then=stored.set_result)
        return await stored

    async def one_done_job(self, url: str, head: bytes = b"application/json", answer: bytes = b"{}") -> str:
        """The id of a job that is done, and whose receiver is to be told."""
        job = NewJob(new_id(), "m", "/predict", b"", b"{}", webhook=Webhook(url))
        store = self.board.store
        await self.ask(store.submit, job)
        (claimed,) = await self.ask(store.write, "claim", "m", 1)
        await self.ask(store.write, "finish", claimed.job.seq, 1, JobOutcome(DONE, 200, head, answer))
        return job.id

    async def tell(self) -> None:
        """Send all that is due now."""
        self.sender.look()
        while self.sender._looking or self.sender._tasks:
            await asyncio.sleep(0.002)

    async def close(self) -> None:
        await self.host.close()


def test_a_receiver_that_fails_for_an_hour_is_told_in_the_end_over_a_restart(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])

    async def minutes(sending: Sending, count: int) -> None:
        for _ in range(count):
            ahead[0] += 60
            await sending.tell()

    async def run() -> str:
        sending = Sending(tmp_path / "jobs", receiver.host)
        job = await sending.one_done_job(f"http://{receiver.host}/")
        receiver.refuse = 1000
        await sending.tell()
        await minutes(sending, 20)
        tried = len(receiver.refused)
        assert 3 <= tried <= 4, "at once, after 5 s, 35 s and about 6 minutes; the next after half an hour"
        await sending.close()
        sending = Sending(tmp_path / "jobs", receiver.host)
        await sending.tell()
        assert len(receiver.refused) == tried, "a restart is no reason to tell it earlier"
        await minutes(sending, 40)
        assert len(receiver.refused) == tried + 1
        receiver.refuse = 0
        await minutes(sending, 150)
        await sending.close()
        return job

    job = asyncio.run(run())
    assert set(receiver.refused) == {f"evt_{job}_completed"}
    assert [headers["webhook-id"] for headers, _ in receiver.events] == [f"evt_{job}_completed"]


def test_an_event_whose_job_cannot_be_read_now_is_told_later(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])

    async def run() -> None:
        sending = Sending(tmp_path / "jobs", receiver.host)
        job = await sending.one_done_job(f"http://{receiver.host}/", answer=b'"%s"' % (b"x" * 70_000))
        (answer,) = (tmp_path / "jobs" / "answers").iterdir()
        # A folder of the same name is an error of the disk that passes.
        kept = answer.rename(tmp_path / "kept")
        answer.mkdir()
        await sending.tell()
        assert (receiver.events, sending.board.webhooks) == ([], {"failed": 1})
        answer.rmdir()
        kept.rename(answer)
        ahead[0] += 60
        await sending.tell()
        assert [headers["webhook-id"] for headers, _ in receiver.events] == [f"evt_{job}_completed"]
        await sending.close()

    asyncio.run(run())


def test_an_event_whose_answer_is_damaged_is_told_without_it(receiver: Receiver, tmp_path: Path) -> None:
    async def run() -> None:
        sending = Sending(tmp_path / "jobs", receiver.host)
        job = await sending.one_done_job(f"http://{receiver.host}/", answer=b'"%s"' % (b"x" * 70_000))
        (answer,) = (tmp_path / "jobs" / "answers").iterdir()
        answer.write_bytes(b"something else")
        await sending.tell()
        ((_, body),) = receiver.events
        told = json.loads(body)
        assert (told["type"], told["data"]["id"], told["data"]["state"]) == ("job.completed", job, "done")
        assert "answer" not in told["data"]
        await sending.close()

    asyncio.run(run())


def test_an_answer_that_is_only_said_to_be_json_keeps_no_event_back(receiver: Receiver, tmp_path: Path) -> None:
    async def run() -> None:
        sending = Sending(tmp_path / "jobs", receiver.host)
        await sending.one_done_job(f"http://{receiver.host}/", answer=b'{"x": NaN}')
        await sending.tell()
        ((_, body),) = receiver.events
        assert "answer" not in json.loads(body)["data"]
        await sending.close()

    asyncio.run(run())


def test_a_receiver_that_hangs_holds_up_no_other_one(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending_module, "TIMEOUT", 3600.0)

    async def run() -> None:
        hanging = socket.create_server(("127.0.0.1", 0))
        slow = f"127.0.0.1:{hanging.getsockname()[1]}"
        sending = Sending(tmp_path / "jobs", slow, receiver.host)
        for _ in range(150):
            await sending.one_done_job(f"http://{slow}/hook")
        job = await sending.one_done_job(f"http://{receiver.host}?a=1")
        sending.sender.look()
        async with asyncio.timeout(30):
            while not receiver.events:
                await asyncio.sleep(0.01)
        assert [headers["webhook-id"] for headers, _ in receiver.events] == [f"evt_{job}_completed"]
        await sending.close()
        hanging.close()

    asyncio.run(run())
