"""Keys with several fronts: a limit is one limit, whichever fronts have the connections of the client."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from support.server import Server, serving, wait_until

KEYS = """
[[key]]
name = "{name}"
secret = "sha256:{digest}"
{limits}
"""
LIMITS = {
    "parallel": "at_once = 2",
    "slow": "rate = 0.001\nburst = 4",
    "free": "",
    "pages": 'may = ["metrics", "pages"]',
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    entries = (
        KEYS.format(name=name, digest=hashlib.sha256(name.encode()).hexdigest(), limits=limits)
        for name, limits in LIMITS.items()
    )
    file.write_text("".join(entries))
    flags = ("--workers", "2", "--fronts", "2", "--keys", str(file))
    with serving("lent_calls", *flags, env={"PANGLOT_METRICS_TOKEN": "figures"}) as server:
        server.client.headers["authorization"] = "Bearer figures"
        yield server


def clients(server: Server, key: str) -> list[httpx.Client]:
    """Four clients that show a key, two of each front: connections go to the front with the fewest."""
    made = [server.new_client() for _ in range(4)]
    for client in made:
        client.headers["authorization"] = f"Bearer {key}"
    return made


def post(client: httpx.Client, **item: object) -> int:
    return client.post("/predict", json=item).status_code


def test_a_burst_is_one_burst_over_all_fronts(server: Server) -> None:
    statuses = [post(client) for client in clients(server, "slow") * 2]
    assert statuses == [200] * 4 + [429] * 4
    count = server.metric("panglot_key_requests_total", key="slow", outcome="admitted")
    assert count == 4, "whichever front is asked, the counts are those of all"


def test_requests_at_once_are_counted_over_all_fronts_and_a_dead_front_has_none(server: Server, tmp_path: Path) -> None:
    made = clients(server, "parallel")
    with ThreadPoolExecutor(2) as threads:
        gates = [tmp_path / "first", tmp_path / "second"]
        waiting = [
            threads.submit(client.post, "/predict", json={"gate": str(gate)})
            for client, gate in zip(made, gates, strict=False)
        ]
        for gate in gates:
            wait_until(Path(f"{gate}.begun").exists)
        assert [post(client) for client in made[2:]] == [429, 429]
        for gate in gates:
            gate.touch()
        assert [answer.result().status_code for answer in waiting] == [200, 200]
    wait_until(lambda: post(made[2]) == 200)
    # A front that dies with requests leaves none of them open.
    gate = tmp_path / "third"
    with ThreadPoolExecutor(1) as threads:
        lost = threads.submit(post, made[3], gate=str(gate))
        begun = Path(f"{gate}.begun")
        wait_until(lambda: begun.exists() and bool(begun.read_text()))
        psutil.Process(int(begun.read_text())).parent().kill()
        with pytest.raises(httpx.TransportError):
            lost.result()
    wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == 2)
    wait_until(lambda: server.metric("panglot_key_open_requests", key="parallel") == 0)
    with ThreadPoolExecutor(2) as threads:
        again = [threads.submit(post, client, sleep=0.2) for client in clients(server, "parallel")[:2]]
        assert [answer.result() for answer in again] == [200, 200]


def test_the_status_page_adds_what_all_fronts_have_counted(server: Server) -> None:
    before = count_of(server, "free")
    assert {post(client) for client in clients(server, "free")} == {200}
    wait_until(lambda: count_of(server, "free") == before + 4)


def count_of(server: Server, name: str) -> int:
    shown = clients(server, "pages")[0].get("/status.json").json()["keys"]
    return int(next(key["admitted"] for key in shown if key["name"] == name))
