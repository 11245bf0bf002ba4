"""Run by test_netguard.py in a network namespace that has `lo` alone, with more addresses on it.

On these addresses one server answers that counts what comes: 127.0.0.1, ::1, a private one, that of the metadata
service, and one of the public internet, which here leads nowhere else.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server import PACKAGES
from support.tiinfer import Served, ours, wait_until

PUBLIC, PRIVATE, METADATA = "93.184.216.34", "10.0.0.5", "169.254.169.254"
CONTENT = b"a picture"


class Counting(http.server.ThreadingHTTPServer):
    """Answers everything; `/away` leads to 127.0.0.1."""

    def __init__(self, address: str, family: int = socket.AF_INET) -> None:
        self.address_family = family
        self.seen = 0
        super().__init__((address, 0), Answer)
        self.port = int(self.server_address[1])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self) -> Any:
        self.seen += 1
        return super().get_request()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def four() -> Iterator[Counting]:
    """One server on every IPv4 address there is."""
    with contextlib.closing(Counting("0.0.0.0")) as server:
        server.close = server.shutdown  # type: ignore[attr-defined]
        yield server


@pytest.fixture(scope="module")
def six() -> Counting:
    return Counting("::", socket.AF_INET6)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    with ours("tiinfer_fetch") as server:
        yield server


def ask(server: Served, op: str, **fields: Any) -> Any:
    return server.ask({"op": op, **fields}).body


REFUSED = {"failed": "ConnectionRefusedError", "text": "[Errno 111] Connection refused"}
LOOPBACK = ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "127.255.0.1")


@pytest.mark.parametrize("host", [*LOOPBACK, PRIVATE, METADATA, "inner.test"])
def test_forbidden_addresses(host: str, guarded: Served, four: Counting) -> None:
    before = four.seen
    where = {"host": host, "port": four.port}
    assert ask(guarded, "connect", **where) == REFUSED
    assert ask(guarded, "connect_ex", **where) == {"answer": 111}
    assert ask(guarded, "sendto", **where) == REFUSED
    assert ask(guarded, "sendmsg", **where) == REFUSED
    assert ask(guarded, "http", **where) == REFUSED
    answer = ask(guarded, "urlopen", url=f"http://{host}:{four.port}/")
    assert answer == {"failed": "URLError", "text": "<urlopen error [Errno 111] Connection refused>"}
    assert four.seen == before


def test_a_name_with_public_and_forbidden_addresses(guarded: Served, four: Counting) -> None:
    """By name it is refused whole; who looks it up first may connect to the public ones."""
    assert ask(guarded, "connect", host="mixed.test", port=four.port) == REFUSED
    assert ask(guarded, "http", host="mixed.test", port=four.port) == {"answer": 200}


@pytest.mark.parametrize("host", ["::1", "::ffff:127.0.0.1", "fd00::5", "fe80::1%lo"])
def test_forbidden_addresses_of_ipv6(host: str, guarded: Served, six: Counting) -> None:
    assert ask(guarded, "six", host=host, port=six.port) == REFUSED
    assert six.seen == 0


def test_public_addresses(guarded: Served, four: Counting) -> None:
    for host in (PUBLIC, "public.test"):
        answer = ask(guarded, "urlopen", url=f"http://{host}:{four.port}/")
        assert base64.b64decode(answer["answer"]) == CONTENT
        assert ask(guarded, "sendto", host=host, port=four.port) == {"answer": 1}


def test_a_redirect_to_a_forbidden_address(guarded: Served, four: Counting) -> None:
    before = four.seen
    answer = ask(guarded, "urlopen", url=f"http://{PUBLIC}:{four.port}/away")
    assert answer["failed"] == "URLError"
    assert four.seen == before + 1


def test_the_default_timeout(guarded: Served, four: Counting) -> None:
    assert ask(guarded, "connect", host=PUBLIC, port=four.port) == {"answer": 10.0}


def test_a_refusal_is_one_line_with_the_request_and_a_count(guarded: Served, four: Counting) -> None:
    before = guarded.metric("panglot_worker_net_refused_total")
    body = {"op": "connect", "host": PRIVATE, "port": four.port}
    guarded.client.post("/inference", json=body, headers={"X-Request-Id": "the-one"})
    line = (
        f"request the-one: the script may not connect to {PRIVATE}:{four.port}; --url-allow {PRIVATE}:{four.port} would"
    )
    guarded.wait_log(line)
    assert guarded.log.count("request the-one:") == 1
    assert guarded.metric("panglot_worker_net_refused_total") == before + 1


def test_unix_sockets_are_left_alone(guarded: Served, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        assert ask(guarded, "unix", path=str(tmp_path / "socket")) == {"answer": "connected"}


def test_between_requests_the_guard_is_off(guarded: Served, four: Counting) -> None:
    assert ask(guarded, "thread", host=PRIVATE, port=four.port, after=0.3) == {"answer": "started"}
    before = four.seen
    wait_until(lambda: four.seen == before + 1)
    assert ask(guarded, "heard") == {"answer": None}, "and no timeout was set"


def test_while_loading_the_guard_is_off(four: Counting, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(PACKAGES / "tiinfer_fetch", folder)
    (folder / "at_load").write_text(f"{PRIVATE} {four.port}")
    with ours(folder) as server:
        assert ask(server, "at_load") == {"answer": None}
        assert ask(server, "connect", host=PRIVATE, port=four.port) == REFUSED


def test_url_allow(four: Counting, six: Counting) -> None:
    allowed = ("--url-allow", f"127.0.0.1:{four.port}", "--url-allow", f"inner.test,[::1]:{six.port}")
    with ours("tiinfer_fetch", *allowed) as server:
        assert ask(server, "connect", host="127.0.0.1", port=four.port) == {"answer": 10.0}
        assert ask(server, "connect", host="localhost", port=four.port) == {"answer": 10.0}
        assert ask(server, "connect", host="127.0.0.1", port=four.port + 1) == REFUSED
        assert ask(server, "connect", host="127.0.0.2", port=four.port) == REFUSED
        assert ask(server, "connect", host="inner.test", port=four.port) == {"answer": 10.0}
        assert ask(server, "connect", host=PRIVATE, port=four.port) == {"answer": 10.0}
        assert ask(server, "connect", host=METADATA, port=four.port) == REFUSED
        assert ask(server, "six", host="::1", port=six.port) == {"answer": "connected"}


def test_open(four: Counting) -> None:
    with ours("tiinfer_fetch", "--worker-net", "open") as server:
        for host in ("127.0.0.1", PRIVATE, METADATA, PUBLIC):
            assert ask(server, "connect", host=host, port=four.port) == {"answer": None}


def test_none(four: Counting) -> None:
    before = four.seen
    with ours("tiinfer_fetch", "--worker-net", "none") as server:
        for host in ("127.0.0.1", PRIVATE, PUBLIC):
            assert ask(server, "connect", host=host, port=four.port)["failed"] == "OSError"
    assert four.seen == before
