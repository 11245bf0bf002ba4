"""The limits on time hold for all connections, whatever happens while the server looks at one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.web.limits import peer
from support.server import Server, serving
from support.well import Left
from support.wire import Wire

SPOILT = """
import sys

if "serve" in sys.orig_argv:
    import itertools
    from panglot.web.limits import peer

    right, looks = peer.unacknowledged, itertools.count(1)

    def wrong(sock):
        if next(looks) % 3 == 0:
            raise FAULT
        return right(sock)

    peer.unacknowledged = wrong
"""
FAULTS = {
    "a socket that is closed": "OSError(9, 'bad file descriptor')",
    "one without a number": "ValueError('file descriptor cannot be a negative integer')",
    "a fault of our own": "ZeroDivisionError('a bug of the server')",
}


@pytest.fixture(params=FAULTS.values(), ids=FAULTS.keys())
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "sitecustomize.py").write_text(SPOILT.replace("FAULT", request.param))
    environment = {"PYTHONPATH": str(tmp_path)}
    with serving("function", "--header-timeout", "1s", env=environment, leaves=Left.TRACEBACKS) as running:
        yield running


def test_limits_hold_for_the_others_too(server: Server) -> None:
    """One failure in each turn would have ended the looking for good, and silently."""
    for _ in range(2):
        clients = [Wire(server) for _ in range(4)]
        for client in clients:
            client.send(b"POST /predict HT")
        for client in clients:
            assert client.wait_closed(20), "nobody looked at the time"
            client.close()
    with Wire(server) as client:
        client.send(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.reply().status == 200


def test_a_transport_may_have_no_socket_any_more() -> None:
    """TLS lets go of it a moment before the connection is told that it has ended."""
    assert (peer.unacknowledged(None), peer.acknowledged(None), peer.unread(None)) == (0, 0, 0)
    assert not peer.has_reset(None)
