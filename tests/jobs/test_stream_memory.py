"""The parts of a job's stream count as memory of requests, as long as the job runs."""

from __future__ import annotations

from typing import Any

from support.server import Server, serving, wait_until

MEMORY = 4 << 20


def ended(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    job = server.predict(body, headers={"prefer": "respond-async"}).json()["id"]
    return dict(server.client.get(f"/jobs/{job}", headers={"prefer": "wait=30"}).json())


def test_a_stream_that_needs_too_much_memory_fails_and_gives_it_back() -> None:
    flags = ("--request-memory", str(MEMORY), "--max-body", str(3 << 20))
    with serving("job_steps", "--workers", "1", *flags) as server:
        fits = ended(server, {"stream": 10, "size": 100_000})
        assert (fits["state"], fits["parts"]) == ("done", 10)
        assert len(server.client.get(fits["result"]).content) > 1_000_000
        wait_until(lambda: server.metric("panglot_request_memory_bytes") < 100_000)
        large = ended(server, {"stream": 1000, "size": 100_000, "pause": 0.001})
        assert (large["state"], large["error"]["code"]) == ("failed", "stream_too_large")
        wait_until(lambda: server.metric("panglot_request_memory_bytes") < 100_000)
        assert server.predict({"a": 1}).json() == {"echo": {"a": 1}}, "its worker is free again"
