"""Short ways to run a graph inside a test."""

from __future__ import annotations

import textwrap
import threading
from typing import Any

from megflow import Envelope, Graph

LONG = 20.0
"""Seconds after which something that should happen has not."""


def graph(text: str, **options: Any) -> Graph:
    return Graph(config_str=textwrap.dedent(text), **options)


def through(text: str, messages: list[Any], entrance: str = "inp", exit_: str = "out") -> list[Any]:
    """What comes out of a graph when these messages go in, to the end."""
    running = graph(text)
    sender, receiver = running.input(entrance), running.output(exit_)

    def feed() -> None:
        for number, message in enumerate(messages):
            sender.send(Envelope.pack(message, info={"partial_id": number}))
        running.close()

    threading.Thread(target=feed, daemon=True).start()
    found = []
    while (envelope := receiver.recv()) is not None:
        found.append(envelope.msg)
    running.wait()
    return found


def to_end(text: str) -> Graph:
    """Run a graph that ends by itself; not longer than LONG."""
    running = graph(text)
    ended(running)
    return running


def ended(running: Graph) -> None:
    failure: list[BaseException] = []

    def wait() -> None:
        try:
            running.wait()
        except RuntimeError as error:
            failure.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive(), "the graph did not end"
    if failure:
        raise failure[0]


def one_node(ty: str, args: str = "", more: str = "", ports: tuple[str, str] = ("inp", "out")) -> str:
    """A graph of one node between its own input and output."""
    return f"""
main = "g"
{more}
[[graphs]]
name = "g"
inputs = [{{ name = "inp", cap = 4, ports = ["x:{ports[0]}"] }}]
outputs = [{{ name = "out", cap = 4, ports = ["x:{ports[1]}"] }}]
[[graphs.nodes]]
name = "x"
ty = "{ty}"
{args}
"""
