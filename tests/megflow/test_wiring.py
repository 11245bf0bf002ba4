"""The wiring rules: what a connection is, who receives, which arguments and resources a node sees."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

import pytest

from megflow import Envelope
from support import graph_nodes as nodes
from support.graphs import ended, graph, one_node, through, to_end

words = itertools.count()


def word() -> str:
    return f"wiring{next(words)}"


def test_order_inside_ports_has_no_meaning() -> None:
    text = (
        one_node("Add").replace('ports = ["x:out"]', 'ports = ["y:out"]')
        + """
[[graphs.nodes]]
name = "y"
ty = "Add"
"""
    )
    for connection in ('["x:out", "y:inp"]', '["y:inp", "x:out"]'):
        wired = text.replace(
            "[[graphs.nodes]]", f"connections = [{{ cap = 1, ports = {connection} }}]\n[[graphs.nodes]]", 1
        )
        assert through(wired, [1]) == [3]


def test_senders_merge_into_one_channel() -> None:
    name = word()
    to_end(f"""
    main = "g"
    [[graphs]]
    name = "g"
    connections = [{{ cap = 2, ports = ["a:out", "b:out", "c:inp"] }}]
    nodes = [{{ name = "a", ty = "Count", n = 5 }}, {{ name = "b", ty = "Count", n = 5 }},
             {{ name = "c", ty = "Collect", word = "{name}" }}]
    """)
    assert sorted(nodes.seen[name][:-1]) == sorted([*range(5), *range(5)])
    assert nodes.seen[name][-1] is None


@pytest.mark.parametrize("how", ["connection", "input"])
def test_receivers_all_get_every_message(how: str) -> None:
    name = word()
    running = graph(f"""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{{ name = "inp", cap = 2, ports = [{'"t:inp"' if how == "connection" else '"b:inp", "c:inp"'}] }}]
    connections = [{'{ cap = 2, ports = ["t:out", "b:inp", "c:inp"] }' if how == "connection" else ""}]
    nodes = [{{ name = "t", ty = "Transform" }}, {{ name = "b", ty = "Collect", word = "{name}b" }},
             {{ name = "c", ty = "Collect", word = "{name}c" }}]
    """)
    message: list[int] = []
    running.input("inp").send(Envelope.pack(message))
    ended(running)
    for place in "bc":
        assert nodes.seen[name + place][0] is message, "the payload is one object in every branch"
        assert nodes.seen[name + place] == [[], None]


def test_local_names_shadow_shared_ones() -> None:
    shared = '[[nodes]]\nname = "x"\nty = "Add"\nn = 100\n'
    assert through(one_node("Add", "n = 1", shared), [1]) == [2]
    other = """
    main = "g"
    nodes = [{ name = "x", ty = "Add", n = 100 }]
    [[graphs]]
    name = "g"
    inputs = [{ name = "inp", cap = 4, ports = ["x:inp"] }]
    outputs = [{ name = "out", cap = 4, ports = ["x:out"] }]
    """
    assert through(other, [1]) == [101]


@pytest.mark.parametrize("tags", [("0", "1", "2"), ("2", "1", "0")])
def test_list_ports_are_ordered_by_tag(tags: tuple[str, ...]) -> None:
    running = graph(f"""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{", ".join(f'{{ name = "i{tag}", cap = 1, ports = ["l:inp:{tag}"] }}' for tag in tags)}]
    outputs = [{", ".join(f'{{ name = "o{tag}", cap = 1, ports = ["l:out:{tag}"] }}' for tag in tags)}]
    nodes = [{{ name = "l", ty = "Listed" }}]
    """)
    for tag in tags:
        running.input(f"i{tag}").send(Envelope.pack(tag))
    for tag in tags:
        assert running.output(f"o{tag}").recv().msg == (int(tag), tag)
    ended(running)


def test_dict_ports_are_keyed_by_tag() -> None:
    running = graph("""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{ name = "i7", cap = 1, ports = ["k:inp:7"] }, { name = "i3", cap = 1, ports = ["k:inp:3"] }]
    outputs = [{ name = "o7", cap = 1, ports = ["k:out:7"] }, { name = "o3", cap = 1, ports = ["k:out:3"] }]
    nodes = [{ name = "k", ty = "Keyed" }]
    """)
    for key in (3, 7):
        running.input(f"i{key}").send(Envelope.pack("m"))
    assert [running.output(f"o{key}").recv().msg for key in (3, 7)] == [(3, "m"), (7, "m")]
    ended(running)


def test_a_unit_port_in_several_connections_serves_them_all() -> None:
    name = word()
    to_end(f"""
    main = "g"
    [[graphs]]
    name = "g"
    connections = [{{ cap = 1, ports = ["a:out", "c:inp"] }}, {{ cap = 1, ports = ["b:out", "c:inp"] }},
                   {{ cap = 1, ports = ["a:out", "d:inp"] }}]
    nodes = [{{ name = "a", ty = "Count", n = 2 }}, {{ name = "b", ty = "Count", n = 2 }},
             {{ name = "c", ty = "Collect", word = "{name}c" }}, {{ name = "d", ty = "Collect", word = "{name}d" }}]
    """)
    assert sorted(nodes.seen[name + "c"][:-1]) == [0, 0, 1, 1]
    assert nodes.seen[name + "d"] == [0, 1, None]


NESTED = """
main = "outer"
[[graphs]]
name = "inner"
inputs = [{ name = "inp", cap = 1, ports = ["args:inp"] }]
outputs = [{ name = "out", cap = 1, ports = ["args:out"] }]
nodes = [{ name = "args", ty = "Args", own = 1, both = "inner", table = { a = 1, b = 1 } }]
[[graphs]]
name = "middle"
inputs = [{ name = "inp", cap = 1, ports = ["deep:inp"] }]
outputs = [{ name = "out", cap = 1, ports = ["deep:out"] }]
nodes = [{ name = "deep", ty = "inner", from_middle = true, both = "middle", table = { b = 2, c = 2 } }]
[[graphs]]
name = "outer"
inputs = [{ name = "inp", cap = 1, ports = ["sub:inp"] }]
outputs = [{ name = "out", cap = 1, ports = ["sub:out"] }]
nodes = [{ name = "sub", ty = "middle", from_outer = 3, from_middle = false, table = { d = 3 } }]
"""


@pytest.mark.document("megflow.09")
def test_arguments_flow_down_and_inner_ones_win() -> None:
    name, args = through(NESTED, [0])[0]
    assert name == "args"
    assert args == {
        "own": 1, "both": "inner", "from_middle": True, "from_outer": 3, "table": {"a": 1, "b": 1, "c": 2, "d": 3},
    }  # fmt: skip


def test_shared_nodes_do_not_inherit() -> None:
    text = """
    main = "outer"
    nodes = [{ name = "args", ty = "Args", own = 1 }]
    [[graphs]]
    name = "inner"
    inputs = [{ name = "inp", cap = 1, ports = ["args:inp"] }]
    outputs = [{ name = "out", cap = 1, ports = ["args:out"] }]
    [[graphs]]
    name = "outer"
    inputs = [{ name = "inp", cap = 1, ports = ["sub:inp"] }]
    outputs = [{ name = "out", cap = 1, ports = ["sub:out"] }]
    nodes = [{ name = "sub", ty = "inner", more = 3 }]
    """
    assert through(text, [0])[0][1] == {"own": 1}


def test_node_types_beat_graph_names() -> None:
    text = one_node("Add") + '\n[[graphs]]\nname = "Add"\nnodes = [{ name = "n", ty = "Nothing" }]\n'
    assert through(text, [1]) == [2]


# Resources


RESOURCES = """
main = "g"
[[resources]]
name = "store"
ty = "Store"
where = "global"
[[graphs]]
name = "inner"
inputs = [{ name = "inp", cap = 1, ports = ["uses:inp"] }]
outputs = [{ name = "out", cap = 1, ports = ["uses:out"] }]
nodes = [{ name = "uses", ty = "Uses", res = ["store", "other"] }]
[[graphs]]
name = "g"
inputs = [{ name = "inp", cap = 1, ports = ["sub:inp"] }]
outputs = [{ name = "out", cap = 1, ports = ["sub:out"] }]
nodes = [{ name = "sub", ty = "inner" }]
"""
OTHER = '[[graphs.resources]]\nname = "other"\nty = "Store"\nwhere = "graph"\n'


def found(text: str) -> dict[str, Any]:
    one: dict[str, Any] = through(text, [0])[0]
    return {name: value and value[1]["where"] for name, value in one.items()}


def test_a_global_resource_is_seen_in_subgraphs() -> None:
    assert found(RESOURCES) == {"store": "global", "other": None}


def test_a_graphs_own_resource_is_seen_below_when_it_is_passed() -> None:
    assert found(RESOURCES + OTHER) == {"store": "global", "other": None}
    passed = RESOURCES.replace('ty = "inner" }', 'ty = "inner", res = ["other"] }') + OTHER
    assert found(passed) == {"store": "global", "other": "graph"}


def test_the_inner_scope_wins() -> None:
    inner = RESOURCES.replace(
        'nodes = [{ name = "uses"',
        'resources = [{ name = "store", ty = "Store", where = "inner" }]\nnodes = [{ name = "uses"',
    )
    assert found(inner)["store"] == "inner"


def test_a_resource_is_one_object_per_scope_made_when_needed() -> None:
    nodes.seen.pop("store.made", None)
    text = textwrap.dedent("""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{ name = "inp", cap = 1, ports = ["a:inp", "b:inp"] }]
    outputs = [{ name = "out", cap = 4, ports = ["a:out", "b:out"] }]
    resources = [{ name = "store", ty = "Store" }, { name = "unused", ty = "Store" }]
    nodes = [{ name = "a", ty = "Uses", res = ["store"] }, { name = "b", ty = "Uses", res = ["store"] }]
    """)
    one, other = through(text, [0])
    assert one["store"][2] == other["store"][2]
    assert nodes.seen["store.made"] == ["store"]


def test_a_resource_gets_a_second_chance() -> None:
    nodes.seen.pop("store.tried", None)
    text = one_node("Uses", 'res = ["store"]', '[[resources]]\nname = "store"\nty = "Store"\nfails_first = true')
    assert through(text, [0])[0]["store"][0] == "store"


def test_shared_nodes_get_every_global_resource() -> None:
    text = """
    main = "g"
    nodes = [{ name = "x", ty = "Uses" }]
    resources = [{ name = "store", ty = "Store", where = "global" }]
    [[graphs]]
    name = "g"
    inputs = [{ name = "inp", cap = 4, ports = ["x:inp"] }]
    outputs = [{ name = "out", cap = 4, ports = ["x:out"] }]
    """
    assert through(text, [0])[0]["store"][0] == "store"


def test_every_instance_of_a_graph_has_resources_of_its_own() -> None:
    text = """
    main = "g"
    [[graphs]]
    name = "inner"
    inputs = [{ name = "inp", cap = 1, ports = ["a:inp", "b:inp"] }]
    outputs = [{ name = "out", cap = 1, ports = ["a:out", "b:out"] }, { name = "unused", cap = 1, ports = ["a:out"] }]
    resources = [{ name = "store", ty = "Store" }]
    nodes = [{ name = "a", ty = "Uses", res = ["store"] }, { name = "b", ty = "Uses", res = ["store"] }]
    [[graphs]]
    name = "g"
    inputs = [{ name = "inp", cap = 4, ports = ["one:inp", "two:inp"] }]
    outputs = [{ name = "out", cap = 8, ports = ["one:out", "two:out"] }]
    nodes = [{ name = "one", ty = "inner" }, { name = "two", ty = "inner" }]
    """
    assert len({one["store"][2] for one in through(text, [0])}) == 2
