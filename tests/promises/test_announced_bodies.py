"""The promise: room is taken by bytes that came, not by lengths that were announced, and small requests keep theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from support.raw import post
from support.server import Server, serving, wait_until
from support.wire import Wire

MIB = 1 << 20
SLOW = ("--body-gap", "60s", "--body-rate", "0")


@contextlib.contextmanager
def uploads(server: Server, count: int, announced: int, sent: int) -> Iterator[list[Wire]]:
    """So many clients that announce a large body and send only its beginning."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Wire(server)) for _ in range(count)]
        for client in clients:
            client.send(post(b" " * sent, f"Content-Length: {announced}"))
        yield clients


def test_announcing_takes_no_room() -> None:
    """64 clients announce 4 GiB together; everybody else is served, large bodies too."""
    with (
        serving("function", "--request-memory", "256MiB", *SLOW) as server,
        uploads(server, 64, 64 * MIB, 10) as clients,
    ):
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == 640)
        assert [server.predict(number).status_code for number in range(20)] == [200] * 20
        json = {"content-type": "application/json"}
        assert server.predict(content=b" " * 30 * MIB + b"7", headers=json).json() == {"got": 7}
        assert all(client.is_silent(0.001) for client in clients), "they were refused"


def test_large_uploads_cannot_take_the_room_of_small_requests() -> None:
    """Large bodies fill their part of the budget to the brim; the next large one is refused, small ones are served."""
    with serving("function", "--request-memory", "80MiB", *SLOW) as server, uploads(server, 40, 3 * MIB, 2 * MIB):
        wait_until(lambda: server.metric("panglot_connections_refused_total", limit="held") >= 1)
        wait_until(lambda: server.metric("panglot_request_memory_bytes") >= 60 * MIB)
        assert server.metric("panglot_request_memory_bytes") <= 70 * MIB
        assert [server.predict("x" * 60_000).status_code for _ in range(20)] == [200] * 20
        refused = server.predict("x" * 12 * MIB)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "memory")
        assert int(refused.headers["retry-after"]) >= 1


def test_what_came_is_let_go_when_its_client_leaves() -> None:
    with serving("function", "--request-memory", "80MiB", *SLOW) as server:
        with uploads(server, 10, 2_000_000, 1_000_000):
            wait_until(lambda: server.metric("panglot_request_memory_bytes") == 10_000_000)
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_a_body_that_never_fits_is_too_large() -> None:
    """Not `try again later`: it would be refused for ever."""
    with serving("function", "--request-memory", "8MiB") as server:
        refused = server.predict("x" * (7 * MIB + 1))
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "body_too_large")
        assert server.predict("x" * (7 * MIB - 2)).status_code == 200
