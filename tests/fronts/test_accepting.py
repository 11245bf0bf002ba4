"""The parent accepts connections and gives them away, also where no front can take one."""

from __future__ import annotations

import selectors
import socket
import time

from panglot.fronts.accepting import PAUSE, Accepting
from panglot.fronts.board import ACCEPTING, READY, Board
from panglot.fronts.channel import Channel
from panglot.fronts.front_process import FrontProcess
from panglot.fronts.timers import Timers


def full_front(connection: socket.socket) -> tuple[FrontProcess, Channel]:
    """A front that reads nothing and has no space for a further connection; and its own end of the channel."""
    front = FrontProcess(0, Board(1))
    front.row[ACCEPTING] = front.row[READY] = 1
    ours, theirs = Channel.pair()
    front.channel = Channel(ours)
    while front.channel.give(0, connection):
        pass
    return front, Channel(theirs)


def test_the_end_drops_a_connection_that_no_front_can_take_and_forgets_it() -> None:
    now = [time.monotonic()]
    timers, selector = Timers(lambda: now[0]), selectors.DefaultSelector()
    one_end, other_end = socket.socketpair()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    front, theirs = full_front(one_end)
    accepting = Accepting([listening], [front], selector, timers)
    with socket.create_connection(listening.getsockname()) as client:
        accepting.look()
        for key, events in selector.select(5):
            key.data(events)
        accepting.end()
        # Its timers are due. Whatever an action of theirs raises ends the parent.
        for _ in range(3):
            now[0] += 2 * PAUSE
            timers.run()
        assert timers.wait() is None, "nothing waits any more"
        client.settimeout(10)
        assert client.recv(1) == b""
    assert front.channel is not None
    for each in (one_end, other_end, front.channel, theirs, selector):
        each.close()
