"""How graphs end, stall, share and go on."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from typing import Any

import pytest

import megflow
from megflow import Envelope
from support import graph_nodes as nodes
from support.graphs import LONG, ended, graph, one_node, through, to_end
from support.server import wait_until

words = itertools.count()


def word() -> str:
    return f"edge{next(words)}"


# Ending


def test_a_source_runs_exec_once() -> None:
    nodes.seen.pop("count.exec", None)
    to_end("""
    main = "g"
    [[graphs]]
    name = "g"
    connections = [{ cap = 1, ports = ["a:out", "b:inp"] }]
    nodes = [{ name = "a", ty = "Count", n = 3 }, { name = "b", ty = "NoopConsumer" }]
    """)
    assert len(nodes.seen["count.exec"]) == 1


@pytest.mark.document("megflow.17")
def test_closing_drains_what_is_queued_and_reaches_every_node() -> None:
    name = word()
    chain = "".join(f'[[graphs.nodes]]\nname = "n{n}"\nty = "Add"\nword = "{name}"\n' for n in range(5))
    links = ",".join(f'{{ cap = 3, ports = ["n{n}:out", "n{n + 1}:inp"] }}' for n in range(4))
    text = f"""
main = "g"
[[graphs]]
name = "g"
inputs = [{{ name = "inp", cap = 3, ports = ["n0:inp"] }}]
outputs = [{{ name = "out", cap = 3, ports = ["n4:out"] }}]
connections = [{links}]
{chain}"""
    assert through(text, list(range(50))) == [n + 5 for n in range(50)]
    assert nodes.seen[name].count("none") == nodes.seen[name].count("del") == 5


def test_outputs_are_open_while_the_end_is_seen() -> None:
    assert through(one_node("Sums"), [1, 2, 3]) == [6]


def test_a_node_without_ports_does_not_keep_the_graph_running() -> None:
    to_end('main = "g"\n[[graphs]]\nname = "g"\nnodes = [{ name = "a", ty = "Alone" }]')


def test_a_graph_that_is_dropped_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    for _ in range(20):
        through(one_node("Add"), [1])
    wait_until(lambda: threading.active_count() <= before)


# Ordering and pressure


def test_order_holds_per_channel() -> None:
    assert through(one_node("Transform"), list(range(500))) == list(range(500))


def test_clones_lose_the_order_and_reorder_restores_it() -> None:
    text = """
main = "g"
[[graphs]]
name = "g"
inputs = [{ name = "inp", cap = 8, ports = ["slow:inp"] }]
outputs = [{ name = "out", cap = 8, ports = ["order:out"] }]
connections = [{ cap = 8, ports = ["slow:out", "order:inp"] }]
nodes = [{ name = "slow", ty = "Slow", ms = 2, cloned = 4 }, { name = "order", ty = "Reorder" }]
"""
    assert through(text, list(range(60))) == list(range(60))


def test_a_full_channel_holds_its_sender_back() -> None:
    running = graph(one_node("Slow", "ms = 1"))
    sent = []

    def feed() -> None:
        for number in range(100):
            running.input("inp").send(Envelope.pack(number))
            sent.append(number)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    time.sleep(0.3)
    # Four in each channel, one in the node, one on its way: nobody reads the output.
    assert len(sent) <= 10
    for number in range(100):
        assert running.output("out").recv().msg == number
    feeder.join(LONG)
    ended(running)


def test_a_generator_that_never_drains_stalls_and_stays_bounded() -> None:
    nodes.seen.pop("greedy", None)
    running = graph("""
    main = "g"
    [[graphs]]
    name = "g"
    connections = [{ cap = 3, ports = ["a:out", "t:inp"] }, { cap = 3, ports = ["t:out", "a:inp"] }]
    nodes = [{ name = "a", ty = "Greedy" }, { name = "t", ty = "Transform" }]
    """)
    wait_until(lambda: len(nodes.seen.get("greedy", [])) >= 6)
    time.sleep(0.1)
    assert len(nodes.seen["greedy"]) <= 9
    del running


# Shapes


def test_a_diamond() -> None:
    text = """
main = "g"
[[graphs]]
name = "g"
inputs = [{ name = "inp", cap = 2, ports = ["a:inp", "b:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["p:out"] }]
connections = [{ cap = 2, ports = ["a:out", "p:a"] }, { cap = 2, ports = ["b:out", "p:b"] }]
nodes = [{ name = "a", ty = "Add", n = 1 }, { name = "b", ty = "Slow", ms = 1 }, { name = "p", ty = "Pair" }]
"""
    assert through(text, list(range(100))) == [(n + 1, n) for n in range(100)]


def test_a_feedback_loop() -> None:
    name = word()

    @megflow.register(name, inputs=["inp", "back"], outputs=["out", "loop"])
    class Turns:
        """Every message goes round until it is 5."""

        def __init__(self, name: str, args: dict[str, Any]) -> None:
            pass

        def exec(self) -> None:
            envelope = self.inp.recv()
            while envelope is not None and envelope.msg < 5:
                self.loop.send(envelope)
                envelope = self.back.recv()
            if envelope is not None:
                self.out.send(envelope)

    running = graph(f"""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{{ name = "inp", cap = 2, ports = ["t:inp"] }}]
    outputs = [{{ name = "out", cap = 2, ports = ["t:out"] }}]
    connections = [{{ cap = 1, ports = ["t:loop", "add:inp"] }}, {{ cap = 1, ports = ["add:out", "t:back"] }}]
    nodes = [{{ name = "t", ty = "{name}" }}, {{ name = "add", ty = "Add" }}]
    """)
    for number in range(5):
        running.input("inp").send(Envelope.pack(number))
        assert running.output("out").recv().msg == 5


# Shared nodes

SHARED = """
main = "g"
nodes = [{{ name = "shared", ty = "{ty}", {args} }}]
[[graphs]]
name = "user"
inputs = [{{ name = "inp", cap = 2, ports = ["shared:inp"] }}]
outputs = [{{ name = "out", cap = 2, ports = ["after:out"] }}]
connections = [{{ cap = 2, ports = ["shared:out", "after:inp"] }}]
nodes = [{{ name = "after", ty = "Add", n = 100, word = "{word}" }}]
[[graphs]]
name = "g"
inputs = [{{ name = "inp", cap = 8, ports = ["demux:inp"] }}]
outputs = [{{ name = "out", cap = 2000, ports = ["t:out"] }}]
connections = [{{ cap = 2, ports = ["demux:out", "t:inp"] }}]
nodes = [{{ name = "demux", ty = "DynDemux" }}, {{ name = "t", ty = "user" }}]
"""


def test_a_shared_node_used_by_300_dynamic_subgraphs() -> None:
    name = word()
    before = threading.active_count()
    running = graph(SHARED.format(ty="Add", args=f'word = "{name}s"', word=name))
    send, receive = running.input("inp").send, running.output("out").recv
    for user in range(300):
        for number in range(3):
            send(Envelope.pack(user * 10 + number, info={"to_addr": user}))
        if user >= 20:
            send(Envelope.pack(None, info={"to_addr": user - 20}))
    found = sorted(receive().msg for _ in range(900))
    assert found == sorted(user * 10 + number + 101 for user in range(300) for number in range(3))
    wait_until(lambda: threading.active_count() < before + 60, LONG, lambda: "instances that were closed leave threads")
    ended(running)
    assert nodes.seen[name].count("del") == 300
    assert nodes.seen[name + "s"].count("none") >= 300, "a flush for each user that went"
    assert nodes.seen[name + "s"].count("del") == 1


def test_the_end_of_one_user_does_not_touch_the_others() -> None:
    running = graph(SHARED.format(ty="Sums", args="x = 1", word=word()))
    send, receive = running.input("inp").send, running.output("out").recv
    send(Envelope.pack(1, info={"to_addr": 1}))
    send(Envelope.pack(2, info={"to_addr": 1}))
    send(Envelope.pack(None, info={"to_addr": 1}))
    assert receive().msg == 103, "the flush was seen as None, and what it released still reached the user"
    send(Envelope.pack(5, info={"to_addr": 2}))
    send(Envelope.pack(None, info={"to_addr": 2}))
    assert receive().msg == 105
    ended(running)


@pytest.mark.parametrize("clones", [1, 3])
def test_clones_of_a_shared_node_see_each_flush_once(clones: int) -> None:
    name = word()
    running = graph(SHARED.format(ty="Add", args=f'cloned = {clones}, word = "{name}s"', word=name))
    send, receive = running.input("inp").send, running.output("out").recv
    for user in range(4):
        send(Envelope.pack(user, info={"to_addr": user}))
        assert receive().msg == user + 101
        send(Envelope.pack(None, info={"to_addr": user}))
    ended(running)
    # Each clone sees each of the four users go, and then the end.
    assert nodes.seen[name + "s"].count("none") == clones * 5


def test_a_shared_graph() -> None:
    text = """
main = "g"
nodes = [{ name = "shared", ty = "pair" }]
[[graphs]]
name = "pair"
inputs = [{ name = "inp", cap = 2, ports = ["one:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["two:out"] }]
connections = [{ cap = 2, ports = ["one:out", "two:inp"] }]
nodes = [{ name = "one", ty = "Add" }, { name = "two", ty = "Sums" }]
[[graphs]]
name = "user"
inputs = [{ name = "inp", cap = 2, ports = ["shared:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["shared:out"] }]
[[graphs]]
name = "g"
inputs = [{ name = "inp", cap = 2, ports = ["u:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["u:out"] }]
nodes = [{ name = "u", ty = "user" }]
"""
    assert through(text, [1, 2, 3]) == [9]


def test_a_shared_node_must_answer_with_what_it_was_given(capfd: pytest.CaptureFixture[str]) -> None:
    running = graph(SHARED.format(ty="Fresh", args="x = 1", word=word()))
    running.input("inp").send(Envelope.pack(1, info={"to_addr": 1}))
    with pytest.raises(RuntimeError):
        ended(running)
    assert "the shared node 'shared' sent a new envelope" in capfd.readouterr().err


# Failing


def test_a_node_that_raises_is_rebuilt_and_goes_on() -> None:
    nodes.seen.pop("fails.made", None)
    found: list[Any] = []
    running = graph(one_node("Fails"))
    for number in range(6):
        running.input("inp").send(Envelope.pack(number))
        if number % 2 == 0:
            found.append(running.output("out").recv().msg)
    with pytest.raises(RuntimeError, match="3 call"):
        ended(running)
    assert found == [0, 2, 4]
    assert len(nodes.seen["fails.made"]) == 4


def test_a_node_that_fails_before_it_takes_anything_does_not_spin() -> None:
    name = word()

    @megflow.register(name, inputs=["inp"], outputs=["out"])
    class Misspelt:
        def __init__(self, name: str, args: dict[str, Any]) -> None:
            pass

        def exec(self) -> None:
            nodes.note(name, 1)
            self.imp.recv()

    running = graph(one_node(name))
    wait_until(lambda: name in nodes.seen)
    time.sleep(0.2)
    assert len(nodes.seen[name]) <= 2
    for number in range(3):
        running.input("inp").send(Envelope.pack(number))
    with pytest.raises(RuntimeError):
        ended(running)
    assert len(nodes.seen[name]) <= 6


def test_memory_is_flat_over_many_messages() -> None:
    running = graph(one_node("Add"))

    def some(count: int) -> None:
        for number in range(count):
            running.input("inp").send(Envelope.pack(number))
            assert running.output("out").recv().msg == number + 1

    some(500)
    gc.collect()
    before = len(gc.get_objects())
    some(5000)
    gc.collect()
    assert len(gc.get_objects()) < before + 500
    ended(running)


def test_a_shared_node_of_two_inputs_flushes_when_both_have_ended() -> None:
    text = """
main = "g"
nodes = [{ name = "shared", ty = "Pair" }]
[[graphs]]
name = "user"
inputs = [{ name = "a", cap = 2, ports = ["shared:a"] }, { name = "b", cap = 2, ports = ["shared:b"] }]
outputs = [{ name = "out", cap = 2, ports = ["shared:out"] }]
[[graphs]]
name = "g"
inputs = [{ name = "inp", cap = 2, ports = ["u:a", "u:b"] }]
outputs = [{ name = "out", cap = 2, ports = ["u:out"] }]
nodes = [{ name = "u", ty = "user" }]
"""
    assert through(text, [1, 2]) == [(1, 1), (2, 2)]


def test_several_graphs_in_one_process_share_nothing() -> None:
    name = word()
    text = SHARED.format(ty="Sums", args="x = 1", word=name)
    running = [graph(text) for _ in range(3)]
    for number, one in enumerate(running):
        one.input("inp").send(Envelope.pack(number, info={"to_addr": 1}))
        one.input("inp").send(Envelope.pack(None, info={"to_addr": 1}))
    assert [one.output("out").recv().msg for one in running] == [100, 101, 102]
    for one in running:
        ended(one)


def test_a_batch_in_a_shared_node_mixes_its_users() -> None:
    running = graph(SHARED.format(ty="Inplace", args="batch_size = 4, timeout = 3000", word=word()).replace(
        'ty = "Add", n = 100', 'ty = "Transform", n = 100'))  # fmt: skip
    nodes.seen.pop("in_place", None)
    for user in range(4):
        running.input("inp").send(Envelope.pack({"user": user}, info={"to_addr": user}))
    assert sorted(running.output("out").recv().msg["user"] for _ in range(4)) == [0, 1, 2, 3]
    assert nodes.seen["in_place"] == [4], "one call for the four of them, and each answer went back to its own"
    ended(running)


def test_what_a_shared_node_sends_too_late_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    running = graph(SHARED.format(ty="Tardy", args="x = 1", word=word()))
    for address in (1, 2):
        for message in (address, None):
            running.input("inp").send(Envelope.pack(message, info={"to_addr": address}))
    ended(running)
    said = "node 'shared' left out an envelope that was sent after its user had ended"
    assert capfd.readouterr().err.count(said) == 1


HALF_MADE = """
main = "g"
nodes = [{{ name = "shared", ty = "Transform" }}]
[[graphs]]
name = "user"
inputs = [{{ name = "inp", cap = 2, ports = ["before:inp"] }}]
outputs = [{{ name = "out", cap = 2, ports = ["last:out"] }}]
connections = [
    {{ cap = 2, ports = ["before:out", "shared:inp"] }},
    {{ cap = 2, ports = ["shared:out", "half:inp"] }},
    {{ cap = 2, ports = ["half:out", "last:inp"] }},
]
nodes = [
    {{ name = "before", ty = "Transform" }}, {{ name = "half", ty = "FirstFails", word = "{word}" }},
    {{ name = "last", ty = "Transform" }},
]
[[graphs]]
name = "g"
inputs = [{{ name = "inp", cap = 2, ports = ["demux:inp"] }}]
outputs = [{{ name = "out", cap = 2, ports = ["t:out"] }}]
connections = [{{ cap = 2, ports = ["demux:out", "t:inp"] }}]
nodes = [{{ name = "demux", ty = "DynDemux" }}, {{ name = "t", ty = "user" }}]
"""


def test_a_subgraph_that_could_be_made_by_half_leaves_nothing_behind() -> None:
    before = threading.active_count()
    running = graph(HALF_MADE.format(word=word()))
    for address in range(4):
        running.input("inp").send(Envelope.pack(address, info={"to_addr": address}))
    assert sorted(running.output("out").recv().msg for _ in range(3)) == [1, 2, 3]
    with pytest.raises(RuntimeError, match="1 call of a node failed"):
        ended(running)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before
