"""HTTP, over a socket: one real server answers or closes, is never at fault, and loses neither worker nor memory."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

from fuzz import http_head
from support.server import Server, serving

CORPUS = "http_head"
WORDS = http_head.WORDS
PATIENCE = 15.0


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    with serving("edge_echo", "--max-body", "64KiB") as server, http_head.checking() as guide:
        yield lambda data: check(server, data, guide)
        assert server.predict(7).json()["id"] == 7
        assert server.metric("panglot_worker_restarts_total") == 0
        assert server.metric("panglot_request_memory_bytes") == 0
    assert "Traceback" not in server.log


def check(server: Server, data: bytes, guide: Callable[[bytes], None]) -> None:
    """Send it, say that nothing more comes, and listen to the end. Fails by TimeoutError when there is none.

    The same in process shows the fuzzer which inputs reach something new.
    """
    guide(data)
    heard = bytearray()
    client = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    with client, contextlib.suppress(ConnectionError):
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(65536):
            heard += part
    # A client may give its request no time at all.
    hurried = b"x-timeout-ms" in data.lower()
    http_head.statuses(bytes(heard), http_head.REFUSALS | ({http_head.TOO_LATE} if hurried else set()))
