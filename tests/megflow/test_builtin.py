"""The built-in nodes, one by one."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from megflow import Envelope
from panglot_worker.graphs.errors import GraphError
from support import graph_nodes as nodes
from support.graphs import ended, graph, one_node, through, to_end

words = itertools.count()


def word() -> str:
    return f"builtin{next(words)}"


def test_transform() -> None:
    assert through(one_node("Transform"), [1, 2]) == [1, 2]


def test_bcast() -> None:
    running = graph("""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{ name = "inp", cap = 1, ports = ["b:inp"] }]
    outputs = [{ name = "one", cap = 1, ports = ["b:out:0"] }, { name = "two", cap = 1, ports = ["b:out:1"] }]
    nodes = [{ name = "b", ty = "Bcast" }]
    """)
    message = object()
    running.input("inp").send(Envelope.pack(message))
    assert running.output("one").recv().msg is message
    assert running.output("two").recv().msg is message
    ended(running)


def test_demux() -> None:
    running = graph("""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{ name = "inp", cap = 9, ports = ["d:inp"] }]
    outputs = [{ name = "zero", cap = 9, ports = ["d:out:0"] }, { name = "five", cap = 9, ports = ["d:out:5"] }]
    nodes = [{ name = "d", ty = "Demux" }]
    """)
    for address in (5, 0, 3, None, 5):
        running.input("inp").send(Envelope.pack(address, info={"to_addr": address}))
    running.close()
    assert [running.output("five").recv().msg for _ in range(2)] == [5, 5]
    assert running.output("zero").recv().msg == 0
    assert running.output("five").recv() is running.output("zero").recv() is None
    with pytest.raises(RuntimeError):  # the one without an address
        running.wait()


DYNAMIC = """
main = "g"
[[graphs]]
name = "sub"
inputs = [{{ name = "inp", cap = 2, ports = ["n:inp"] }}]
outputs = [{{ name = "out", cap = 2, ports = ["n:out"] }}, {{ name = "unused", cap = 2, ports = ["n:out"] }}]
nodes = [{{ name = "n", ty = "Add", word = "{word}", from_sub = 1 }}]
[[graphs]]
name = "other"
inputs = [{{ name = "inp", cap = 2, ports = ["n:inp"] }}]
outputs = [{{ name = "out", cap = 2, ports = ["n:out"] }}]
nodes = [{{ name = "n", ty = "Add", word = "{word}o", n = 1000 }}]
[[graphs]]
name = "g"
inputs = [{{ name = "inp", cap = 2, ports = ["demux:inp"] }}]
outputs = [{{ name = "out", cap = 200, ports = ["t:out"] }}]
connections = [{{ cap = 2, ports = ["demux:out", "t:inp"] }}]
nodes = [{{ name = "demux", ty = "DynDemux" }}, {{ name = "t", ty = "sub | other", n = 10 }}]
"""


def test_dyndemux_makes_an_instance_per_address() -> None:
    name = word()
    running = graph(DYNAMIC.format(word=name))
    send = running.input("inp").send
    for number in range(6):
        send(Envelope.pack(number, info={"to_addr": number % 3}))
    assert sorted(running.output("out").recv().msg for _ in range(6)) == [10, 11, 12, 13, 14, 15]
    send(Envelope.pack(None, info={"to_addr": 1}))
    send(Envelope.pack(7, info={"to_addr": 1}))
    assert running.output("out").recv().msg == 17
    # The empty envelope ended the first instance of address 1 before the second one was made.
    assert nodes.seen[name] == ["none", "del"]
    send(Envelope.pack(None, info={"to_addr": 99}))
    ended(running)
    assert nodes.seen[name].count("del") == 4


def test_a_tag_chooses_among_alternatives() -> None:
    running = graph(DYNAMIC.format(word=word()))
    running.input("inp").send(Envelope.pack(1, info={"to_addr": 1, "tag": "other"}))
    running.input("inp").send(Envelope.pack(1, info={"to_addr": 2, "tag": "sub"}))
    running.input("inp").send(Envelope.pack(1, info={"to_addr": 3}))
    assert sorted(running.output("out").recv().msg for _ in range(3)) == [11, 11, 1001]
    ended(running)


GATHERED = """
main = "g"
[[graphs]]
name = "sub"
inputs = [{{ name = "inp", cap = 2, ports = ["n:inp"] }}]
outputs = [{{ name = "out", cap = 2, ports = ["n:out"] }}]
nodes = [{{ name = "n", ty = "Add", word = "{word}", n = 10 }}]
[[graphs]]
name = "g"
inputs = [{{ name = "inp", cap = 2, ports = ["{entrance}"] }}]
outputs = [{{ name = "out", cap = 200, ports = ["gather:out"] }}]
connections = [{more}{{ cap = 2, ports = ["t:out", "gather:inp"] }}]
nodes = [{demux}{{ name = "gather", ty = "DynInTransform" }}, {{ name = "t", ty = "sub" }}]
"""
BY_DEMUX = {
    "entrance": "demux:inp",
    "more": '{ cap = 2, ports = ["demux:out", "t:inp"] }, ',
    "demux": '{ name = "demux", ty = "DynDemux" }, ',
}
BY_A_CHANNEL = {"entrance": "t:inp", "more": "", "demux": ""}


@pytest.mark.parametrize("way", [BY_DEMUX, BY_A_CHANNEL], ids=["by DynDemux", "by an ordinary channel"])
def test_dynintransform_gathers_what_all_instances_send(way: dict[str, str]) -> None:
    """Who makes the instances is another dynamic port, or else what comes to them by an ordinary channel."""
    name = word()
    running = graph(GATHERED.format(word=name, **way))
    send, received = running.input("inp").send, running.output("out")
    for number in range(6):
        send(Envelope.pack(number, info={"to_addr": number % 3}))
    assert sorted(received.recv().msg for _ in range(6)) == [10, 11, 12, 13, 14, 15]
    # An empty envelope ends one instance, the end of the graph all others.
    send(Envelope.pack(None, info={"to_addr": 1}))
    send(Envelope.pack(7, info={"to_addr": 1}))
    assert received.recv().msg == 17
    assert nodes.seen[name] == ["none", "del"]
    running.close()
    assert received.recv() is None
    ended(running)
    assert nodes.seen[name].count("del") == 4


def test_a_template_is_fed_in_one_way() -> None:
    text = GATHERED.format(word=word(), **BY_DEMUX)
    with pytest.raises(GraphError, match="made on demand by a dynamic port and cannot be fed by another"):
        graph(text.replace('ports = ["demux:inp"]', 'ports = ["demux:inp", "t:inp"]'))
    text = GATHERED.format(word=word(), **BY_A_CHANNEL)
    another = '{ name = "b", cap = 2, ports = ["n:inp"] }'
    text = text.replace('ports = ["n:inp"] }]', f'ports = ["n:inp"] }}, {another}]')
    with pytest.raises(GraphError, match="by what comes to one of its inputs, and cannot have two"):
        graph(text.replace('ports = ["t:inp"]', 'ports = ["t:inp", "t:b"]'))


def test_reorder() -> None:
    running = graph(one_node("Reorder"))

    def send() -> None:
        for number in (2, 0, 1, 4, 3, 7):
            running.input("inp").send(Envelope.pack(number, info={"partial_id": number}))
        running.close()

    threading.Thread(target=send).start()
    received = running.output("out")
    # A gap at the end loses nothing.
    assert [received.recv().msg for _ in range(6)] == [0, 1, 2, 3, 4, 7]
    assert received.recv() is None
    ended(running)


@pytest.mark.parametrize("numbers", [(0, 0), (1, 1), (None,)])
def test_reorder_refuses_what_has_no_place(numbers: tuple[int | None, ...]) -> None:
    running = graph(one_node("Reorder"))
    for number in numbers:
        running.input("inp").send(Envelope.pack(0, info={"partial_id": number}))
    with pytest.raises(RuntimeError):
        ended(running)


def test_noop_nodes() -> None:
    to_end("""
    main = "g"
    [[graphs]]
    name = "g"
    connections = [{ cap = 1, ports = ["p:out", "c:inp"] }, { cap = 1, ports = ["n:out", "d:inp"] }]
    nodes = [{ name = "p", ty = "NoopProducer" }, { name = "c", ty = "NoopConsumer" },
             { name = "n", ty = "Count", n = 50 }, { name = "d", ty = "NoopConsumer" }]
    """)


def test_image_input(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pictures"
    (folder / "deeper").mkdir(parents=True)
    for name, colour in (("red.png", (255, 0, 0)), ("blue.jpeg", (0, 0, 255)), ("deeper/no.png", (0, 0, 0))):
        Image.new("RGB", (4, 3), colour).save(folder / name)
    (folder / "broken.png").write_bytes(b"no picture")
    name = word()
    to_end(f"""
    main = "g"
    [[graphs]]
    name = "g"
    connections = [{{ cap = 1, ports = ["i:out", "c:inp", "t:inp"] }}, {{ cap = 1, ports = ["t:out", "i:inp"] }}]
    nodes = [{{ name = "i", ty = "ImageInput", urls = ["{folder}", "{tmp_path}/nowhere"] }},
             {{ name = "c", ty = "Collect", word = "{name}" }}, {{ name = "t", ty = "Transform" }}]
    """)
    *found, end = nodes.seen[name]
    assert end is None
    pictures = {message["extra_data"]: message["data"] for message in found}
    assert sorted(pictures) == ["blue", "red"]
    assert pictures["red"].shape == (3, 4, 3)
    assert pictures["red"].dtype == np.uint8
    assert tuple(pictures["red"][0, 0]) == (0, 0, 255), "blue, green, red"
    assert "broken.png" in capfd.readouterr().err


def test_what_reorder_refuses_costs_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    running = graph(one_node("Reorder"))

    def send() -> None:
        for place, number in enumerate((0, 3, 3, 0, 2, None, 1)):
            running.input("inp").send(Envelope.pack((number, place), info={"partial_id": number}))
        running.close()

    threading.Thread(target=send).start()
    received = running.output("out")
    assert [received.recv().msg for _ in range(4)] == [(0, 0), (1, 6), (2, 4), (3, 1)]
    assert received.recv() is None
    with pytest.raises(RuntimeError, match="3 calls of nodes failed"):
        ended(running)
    assert capfd.readouterr().err.count("partial_id 3 came again") == 1


TALLIES = """
main = "g"
[[graphs]]
name = "sub"
inputs = [{ name = "inp", cap = 2, ports = ["t:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["t:out"] }]
nodes = [{ name = "t", ty = "Tally", total = 0 }]
[[graphs]]
name = "g"
inputs = [{ name = "inp", cap = 2, ports = ["demux:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["each:out"] }]
connections = [{ cap = 2, ports = ["demux:out", "each:inp"] }]
nodes = [{ name = "demux", ty = "DynDemux" }, { name = "each", ty = "sub" }]
"""


def test_an_envelope_without_an_address_costs_other_addresses_nothing() -> None:
    running = graph(TALLIES)
    for info in ({"to_addr": 1}, {}, {"to_addr": 1}):
        running.input("inp").send(Envelope.pack(5, info=info))
    assert [running.output("out").recv().msg[1] for _ in range(2)] == [5, 10]
    with pytest.raises(RuntimeError, match="1 call of a node failed"):
        ended(running)
