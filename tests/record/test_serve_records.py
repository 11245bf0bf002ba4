"""`panglot serve --record FILE`: the traffic of our own server, and a load for `bench`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from panglot.recording.recording import Pair, Recording
from support.server import PACKAGES, panglot, serving


def pairs_of(path: Path) -> list[Pair]:
    with Recording(path) as recording:
        return list(recording.pairs())


def test_a_server_records_what_it_answers_and_replay_and_bench_use_it(tmp_path: Path) -> None:
    path = tmp_path / "today.rec"
    large = os.urandom(150_000).hex()
    flags = ("--record", str(path), "--record-redact", "/name,x-customer")
    with serving(PACKAGES / "function", *flags, env={"PANGLOT_TOKEN": "hunter2"}) as server:
        client = server.new_client(headers={"Authorization": "Bearer hunter2", "X-Customer": "hunter2"})
        assert client.post("/predict", json={"name": "hunter2", "n": 1}).json()["got"]["name"] == "hunter2"
        assert client.post("/predict", json=large).json() == {"got": large}
        assert client.post("/predict", content=iter([b"[1,", b" 2]"])).json() == {"got": [1, 2]}
        assert client.post("/predict", content=b"{").status_code == 400
        assert client.get("/v2/health/ready").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert client.post("/predict", json=3, headers={"X-Other": "hunter2"}).status_code == 200
    first, second, third, fourth, last = pairs_of(path)
    assert json.loads(first.request.body) == {"name": "[redacted]", "n": 1}
    assert second.answer.body == json.dumps({"got": large}, separators=(",", ":")).encode()
    assert third.request.body == b"[1, 2]"
    assert fourth.answer.status == 400
    assert "x-other" in last.request.withheld
    assert "hunter2" not in f"{first}{second}{third}{fourth}{last}".replace('"got":{"name":"hunter2"', "")
    assert path.stat().st_mode & 0o777 == 0o600

    done = panglot("replay", str(path), str(PACKAGES / "function"), "--connections", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 not sent: their requests were redacted" in done.stdout
    flags = ("--concurrency", "2", "--duration", "0.4", "--warmup", "0.1", "--json", "--check", "--recording")
    done = panglot("bench", str(PACKAGES / "function"), *flags, str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    (level,) = json.loads(done.stdout)["levels"]
    assert level["requests"] > 0
    assert level["wrong"] == 0


def test_a_full_disk_ends_the_recording_of_a_server_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "today.rec"
    with serving(PACKAGES / "function", "--record", str(path), largest_file=200_000) as server:
        noise = os.urandom(300_000).hex()
        assert server.predict(noise).json() == {"got": noise}
        server.wait_log("the recording has ended: .*today.rec: File too large")
        assert server.predict(1).json() == {"got": 1}
    assert pairs_of(path) == []


def test_a_file_that_cannot_be_created_is_one_line(tmp_path: Path) -> None:
    done = panglot("serve", str(PACKAGES / "function"), "--port", "0", "--record", str(tmp_path / "no" / "x.rec"))
    assert done.returncode == 3
    assert "x.rec cannot be created: No such file or directory" in done.stderr
