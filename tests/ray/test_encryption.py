"""`--ray-tls`: everything is served as without it, and nobody on the network can read it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import Server, serving, wait_until
from support.sniffing import Sniffer
from support.traffic import ask_all

pytestmark = pytest.mark.timeout(400)
SECRETS = [
    word * 3 for word in ("body-of-a-client/", "answer-of-a-script/", "line-that-is-printed/", "file-of-a-package/")
]
SCRIPT = """
import os
import time
from pathlib import Path

FILE = Path("secret.txt").read_text()


def predict(value):
    if value.get("do") == "stream":
        return stream(value)
    if value.get("do") == "die":
        os._exit(7)
    print("line-that-is-printed/" * 3)
    return {"said": value.get("text", ""), "more": "answer-of-a-script/" * 3}


def stream(value):
    for number in range(value["parts"]):
        yield {"part": number}
        time.sleep(value.get("pause", 0))
"""


@contextlib.contextmanager
def served(cluster: RayCluster, folder: Path, *flags: str) -> Iterator[Server]:
    """The script above, on a node that has not seen it before."""
    folder.mkdir()
    (folder / "model.py").write_text(SCRIPT)
    (folder / "secret.txt").write_text("file-of-a-package/" * 3 + str(folder))
    with serving(folder, *cluster.flags, *flags, ready=False) as server:
        yield server.wait_ready(120)


@pytest.fixture
def sniffer(inside: RayCluster) -> Iterator[Sniffer]:
    if inside.network.holder is None:
        pytest.skip("listening to the network needs one of our own")
    with Sniffer(inside.network.address(2), inside.network.address(3)).listening() as sniffer:
        yield sniffer


def seen(sniffer: Sniffer) -> list[str]:
    return [secret for secret in SECRETS if secret.encode() in sniffer.seen]


def test_without_it_the_network_sees_everything(inside: RayCluster, sniffer: Sniffer, tmp_path: Path) -> None:
    """So that the next test means something."""
    with served(inside, tmp_path / "package") as server:
        assert server.predict({"text": SECRETS[0]}).status_code == 200
        wait_until(lambda: seen(sniffer) == SECRETS, 30)


def test_with_it_the_network_sees_nothing(inside: RayCluster, sniffer: Sniffer, tmp_path: Path) -> None:
    with served(inside, tmp_path / "package", "--ray-tls") as server:
        assert server.predict({"text": SECRETS[0]}).json()["said"] == SECRETS[0]
        server.wait_log("line-that-is-printed/")
        for size in (0, 1, 10_000, 300_000, 1_000_000, 5_000_000):
            asked = {"text": "x" * size}
            assert server.predict(asked).json()["said"] == asked["text"]
        answers = ask_all(server, [{"text": "猫" * number} for number in range(200)], 60)
        assert [answer.json()["said"] for answer in answers] == ["猫" * number for number in range(200)]
        parts = server.client.post("/predict", json={"do": "stream", "parts": 50}).text
        assert parts == "".join(f'data: {{"part":{number}}}\n\n' for number in range(50))
        left_early(server)
        assert server.predict({}).status_code == 200
        assert server.predict({"do": "die"}).status_code == 500
        wait_until(lambda: server.predict({}).status_code == 200, 60)
    assert len(re.findall("is ours: agent", server.log)) == 1, "the worker came back at its placement"
    assert len(sniffer.seen) > 5_000_000
    assert seen(sniffer) == []


def left_early(server: Server) -> None:
    """A client that leaves its stream ends it, so that the next request is answered at once."""
    stream = {"do": "stream", "parts": 600, "pause": 0.1}
    with server.new_client() as client, client.stream("POST", "/predict", json=stream) as answer:
        assert next(answer.iter_lines()) == 'data: {"part":0}'


def test_a_script_that_waits_for_several_calls_at_once(inside: RayCluster, tmp_path: Path) -> None:
    """Its event loop waits on the encrypted socket."""
    (tmp_path / "model.py").write_text(
        "import asyncio\n\n\nasync def predict(value):\n    await asyncio.sleep(0.01)\n    return value\n"
    )
    with serving(tmp_path, *inside.flags, "--ray-tls", ready=False) as server:
        server.wait_ready(120)
        asked = [{"id": number, "text": "x" * (number % 7) * 100_000} for number in range(60)]
        assert [answer.json() for answer in ask_all(server, asked, 60)] == asked
