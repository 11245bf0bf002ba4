"""A package on the nodes of a cluster is served as on this machine."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.on_nodes import agents
from support.ray_cluster import RayCluster
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import ask_all

pytestmark = pytest.mark.timeout(400)


@contextlib.contextmanager
def on_nodes(cluster: RayCluster, path: Path | str = "on_nodes", *flags: str) -> Iterator[Server]:
    with serving(path, *cluster.flags, *flags, ready=False) as server:
        yield server.wait_ready(120)


@pytest.fixture(scope="module")
def shared(cluster: RayCluster) -> Iterator[Server]:
    """A server with two workers, for tests that do it no harm."""
    with cluster.entered(), on_nodes(cluster, "on_nodes", "--workers", "2") as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2, 60)
        yield server


def test_calls_are_answered_by_workers_on_both_nodes(inside: RayCluster, shared: Server) -> None:
    asked = [{"id": number, "text": "猫" * number, "sleep": 0.01} for number in range(40)]
    answers = ask_all(shared, asked, 60)
    assert [answer.json()["id"] for answer in answers] == list(range(40))
    assert [answer.json()["text"] for answer in answers] == ["猫" * number for number in range(40)]
    assert len({answer.json()["pid"] for answer in answers}) == 2
    shared.wait_count("ready after", 2)
    assert set(re.findall(r"ready after .*\(node (\S+),", shared.log)) == {
        inside.network.address(2), inside.network.address(3)
    }  # fmt: skip


def test_a_script_sees_its_package_and_nothing_of_ray(inside: RayCluster, shared: Server) -> None:
    where = shared.predict({"do": "where"}).json()
    assert where["folder"] == "on_nodes"
    assert where["words"] == "words of the package"
    assert "words.txt" in where["files"]
    assert Path(where["path"]) != PACKAGES / "on_nodes"
    assert not [name for name in where["environment"] if name.startswith(("RAY_", "PANGLOT_"))]
    assert "PYTHONBREAKPOINT" not in where["environment"]
    assert where["node"] in (inside.node(2), inside.node(3))


def test_what_a_script_prints_and_raises_is_in_the_log(inside: RayCluster, shared: Server) -> None:
    shared.wait_log(r"on_nodes/0 \| loaded words of the package")
    assert shared.predict({"do": "print", "text": "a line from afar"}).status_code == 200
    shared.wait_log(r"on_nodes/\d \| a line from afar")
    before = len(shared.lines)
    assert shared.predict({"do": "nothing"}).status_code == 500
    shared.wait_log("it does not know how to nothing", after=before)
    shared.wait_log(r"model\.py\", line \d+, in predict", after=before)


def test_large_bodies_and_answers_travel_by_the_socket(inside: RayCluster, shared: Server) -> None:
    text = "large " * 500_000
    assert shared.predict({"text": text}).json()["text"] == text
    shared.wait_log("no memory can be shared with nodes")


def test_what_a_worker_started_ends_with_it(inside: RayCluster, shared: Server) -> None:
    """And the worker comes back at its placement."""
    child = shared.predict({"do": "child"}).json()
    assert psutil.pid_exists(child)
    for turn in range(4):
        assert shared.predict({"do": "kill", "signal": "SIGSEGV", "turn": turn}).status_code == 500
        wait_until(lambda: shared.metric("panglot_workers", state="ready") == 2, 60)
        if not psutil.pid_exists(child):
            break
    wait_until(lambda: not psutil.pid_exists(child))
    assert len(re.findall(r"placement \d+ on node \S+ \(.*\) is ours", shared.log)) == 2


def test_a_stranger_on_the_agents_port_learns_and_changes_nothing(inside: RayCluster, shared: Server) -> None:
    there = agents(inside)
    assert len(there) == 2
    node = 2 if inside.node(2) in Path(f"/proc/{there[0]}/environ").read_text() else 3
    with inside.network.entered(node):
        address = next(
            connection.laddr for connection in psutil.Process(there[0]).net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr.ip == inside.network.address(node)
        )  # fmt: skip
    for said in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 64, b"\xff" * 4096):
        with socket.create_connection(address, timeout=20) as stranger:
            stranger.sendall(said)
            heard = b""
            with contextlib.suppress(OSError):
                # The agent may have hung up already.
                stranger.shutdown(socket.SHUT_WR)
                while piece := stranger.recv(4096):
                    heard += piece
            assert len(heard) <= 32
    assert shared.predict({"id": 1}).json()["id"] == 1


def test_a_changed_package_is_sent_as_far_as_it_changed(inside: RayCluster, tmp_path: Path) -> None:
    """The successor runs at the placement of its predecessor, with the new files."""
    package = tmp_path / "on_nodes"
    shutil.copytree(PACKAGES / "on_nodes", package)
    (package / "weights.bin").write_bytes(b"w" * 3_000_000)
    with on_nodes(inside, package, "--reload") as server:
        before = server.predict({"do": "where"}).json()
        (package / "words.txt").write_text("other words")
        wait_until(lambda: server.predict({"do": "where"}).json()["words"] == "other words", 60)
        after = server.predict({"do": "where"}).json()
        assert after["node"] == before["node"]
        assert after["path"] != before["path"]
        weights = [Path(where["path"], "weights.bin").stat().st_ino for where in (before, after)]
        assert weights[0] == weights[1], "the same file under both folders"
    assert server.process.returncode == 0


def test_a_row_of_pools_goes_over_nodes(inside: RayCluster, tmp_path: Path) -> None:
    """Results between pools travel by sockets, sealed."""
    (tmp_path / "model.py").write_text(
        "import os\n"
        "def preprocess(r): return {'n': r['n'], 'bytes': b'x' * 100_000, 'first': os.getpid()}\n"
        "def predict(v): return (v['n'] + 1, len(v['bytes']), v['first'] != os.getpid())\n"
        "def postprocess(v): return list(v)\n"
    )
    with on_nodes(inside, tmp_path, "--pools", "preprocess=1,inference=1") as server:
        answers = ask_all(server, [{"n": number} for number in range(20)], 60)
        assert [answer.json() for answer in answers] == [[number + 1, 100_000, True] for number in range(20)]
