"""Run by test_f78_names.py in a namespace of its own, where this file is the only server of names."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from support.evals import ask
from support.scripted import Scripted, simple
from support.server import Server, serving

PUBLIC = "93.184.216.34"
MANY = [PUBLIC, *(f"93.184.217.{number}" for number in range(1, 100))]
CONTENT = b"a picture"


class Names:
    """Answers by the first part of a name: `dead` never, `slow` late, `many` with a hundred addresses."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.stream = socket.create_server(("127.0.0.1", 53))
        threading.Thread(target=self._datagrams, daemon=True).start()
        threading.Thread(target=self._streams, daemon=True).start()

    def _datagrams(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                query, client = self.socket.recvfrom(4096)
                threading.Thread(target=self._answer, args=(query, client), daemon=True).start()

    def _answer(self, query: bytes, client: tuple[str, int]) -> None:
        answer = self._reply(query)
        if answer is not None:
            short = answer if len(answer) <= 512 else answer[:2] + b"\x87\x80" + query[4:6] + bytes(6) + question(query)
            with contextlib.suppress(OSError):
                self.socket.sendto(short, client)

    def _streams(self) -> None:
        """Answers too long for a datagram."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.stream.accept()
                with connection:
                    while size := connection.recv(2):
                        answer = self._reply(connection.recv(struct.unpack(">H", size)[0])) or b""
                        connection.sendall(struct.pack(">H", len(answer)) + answer)

    def _reply(self, query: bytes) -> bytes | None:
        name = query[13 : 13 + query[12]].decode()
        if name == "dead":
            return None
        if name == "slow":
            time.sleep(4)
        addresses = MANY if name == "many" else [PUBLIC]
        asked = question(query)
        if asked[-4:-2] != b"\0\1":
            addresses = []
        records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(one) for one in addresses)
        return query[:2] + b"\x85\x80" + struct.pack(">4H", 1, len(addresses), 0, 0) + asked + records

    def close(self) -> None:
        self.socket.close()
        self.stream.close()


def question(query: bytes) -> bytes:
    end = query.index(b"\0", 12) + 5
    return query[12:end]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    names, web = Names(), Scripted({"/": simple(CONTENT)}, PUBLIC, 80)
    with serving("evals_rows", "--fetch-timeout", "2s", "--fetch-connect", "1s", "--fetch-at-once", "64") as running:
        yield running
    names.close()
    web.close()


def fetch(server: Server, name: str) -> int:
    with server.new_client() as client:
        return client.post("/v1/eval", json={"data": {"uri": f"http://{name}.test/"}}).status_code


def test_names_that_lead_somewhere(server: Server) -> None:
    for name in ("good", "many"):
        answer = ask(server, {"data": {"uri": f"http://{name}.test/"}})
        assert (answer.status_code, answer.json()["result"]["body"]) == (200, [CONTENT.decode()]), answer.text


@pytest.mark.parametrize("name", ["dead", "slow"])
def test_a_server_of_names_that_does_not_answer(server: Server, name: str) -> None:
    """The limit on a fetch holds, however many wait for a name, and whoever needs none is served meanwhile."""
    heard: list[int] = []
    crowd = [threading.Thread(target=lambda: heard.append(fetch(server, name))) for _ in range(40)]
    for one in crowd:
        one.start()
    plain = [ask(server, {"data": {"uri": "data:application/octet-stream;base64,Zm9v"}}).status_code for _ in range(10)]
    assert plain == [200] * 10
    assert server.client.get("/v2/health/live").status_code == 200
    assert any(one.is_alive() for one in crowd), "they were served while the others waited"
    for one in crowd:
        one.join(30)
    assert heard == [599] * len(crowd)
