"""The promise: a client that has gone holds nothing for long, and one that reads slowly but steadily is never cut."""

from __future__ import annotations

import re
import subprocess
import sys
import time

from support.namespace import unshared
from support.raw import post
from support.server import ROOT, Server, serving, wait_until
from support.wire import Wire

RATE = 300_000
STALL = ("--write-stall", "3s")
ADDRESS = "10.9.0.2/32"


def test_a_steady_reader_is_not_cut() -> None:
    """What has reached the client counts, not our buffer, which the kernel empties by megabytes.

    A client tells the kernel of 64 kB read at once. What is 30 kB a second by the default of 30 s is 300 kB by 3 s.
    """
    with (
        serving("edge_big", *STALL) as whole,
        serving("fat_stream", *STALL) as parts,
        Wire(whole, receive_buffer=65536) as one,
        Wire(parts, receive_buffer=65536) as other,
    ):
        one.send(post(b'{"size": 12000000}'))
        other.send(post(b"{}"))
        for _ in range(45):
            for client in (one, other):
                assert client.socket.recv(RATE // 10), "the server has closed the connection"
            time.sleep(0.1)
        assert (cut(whole), cut(parts)) == (0, 0)
        wait_until(lambda: (cut(whole), cut(parts)) == (1, 1), 40)


def cut(server: Server) -> float:
    return server.metric("panglot_connections_refused_total", limit="write_stall")


def test_half_open_clients_are_noticed() -> None:
    """When the network to a client breaks without a word, its stream ends and its worker is free again."""
    command = unshared("ip link set lo up", f"ip address add {ADDRESS} dev lo")
    cases = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/promises/half_open_cases.py"]
    done = subprocess.run([*command, *cases], capture_output=True, text=True, cwd=ROOT, timeout=150)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"3 passed", done.stdout)
