"""Every name of `megflow` that a plugin may use."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import megflow
from megflow import Envelope
from support import graph_nodes as nodes
from support.graphs import ended, graph, one_node, through, to_end

PLATFORM = Path(megflow.__file__).parents[1]


@pytest.mark.document("megflow.21")
def test_the_names_are_there() -> None:
    names = (
        "Envelope Future Graph Waker block_on collect create_future join register res_register sleep version yield_now"
    )
    assert all(hasattr(megflow, name) for name in names.split())
    assert megflow.version() == megflow.__version__ == "0.3.5"


def test_pyflow_is_the_same_thing() -> None:
    import pyflow

    assert pyflow.register is megflow.register
    assert pyflow.Envelope is megflow.Envelope


@pytest.mark.document("megflow.16")
def test_collect_tells_all_that_is_registered() -> None:
    entries = {entry["name"]: entry for entry in megflow.collect()["nodes"]}
    assert entries["Listed"]["inputs"] == ["inp:[]"]
    assert entries["Listed"]["code"] is nodes.ListPorts
    assert {"name": "Store", "code": nodes.Store} in megflow.collect()["resources"]
    assert len(megflow.collect()["nodes"]) == len(entries)


# Envelopes


def test_what_an_envelope_carries() -> None:
    info = {"from_addr": 1, "to_addr": 2, "partial_id": 3, "tag": "t", "extra_data": "x", "transfer_addr": 9}
    envelope = Envelope.pack("message", info=info)
    fields = (
        envelope.msg,
        envelope.from_addr,
        envelope.to_addr,
        envelope.partial_id,
        envelope.tag,
        envelope.extra_data,
    )
    assert fields == ("message", 1, 2, 3, "t", "x")
    envelope.msg, envelope.from_addr, envelope.to_addr, envelope.tag, envelope.partial_id = "m", 4, 5, "u", 6
    other = envelope.repack(["new"])
    assert (other.msg, other.from_addr, other.to_addr, other.partial_id, other.tag) == (["new"], 4, 5, 6, "u")
    assert not hasattr(envelope, "info")
    assert Envelope.pack(1).partial_id is None


WRONG_USES = {
    "shell": lambda: Envelope().msg,
    "empty": lambda: Envelope.pack(None).msg,
    "unknown info": lambda: Envelope.pack(1, info={"addr": 1}),
}


@pytest.mark.parametrize("use", WRONG_USES)
def test_wrong_uses_raise(use: str) -> None:
    with pytest.raises(Exception, match="shell|empty|no 'addr'"):
        WRONG_USES[use]()


def test_pickle() -> None:
    envelope = Envelope.pack({"a": 1}, info={"partial_id": 4, "tag": "t"})
    again = copy.deepcopy(envelope)
    assert (again.msg, again.partial_id, again.tag) == ({"a": 1}, 4, "t")
    again.msg["a"] = 2
    assert envelope.msg == {"a": 1}


def test_sending_moves() -> None:
    running = graph(one_node("Transform"))
    envelope = Envelope.pack([1])
    running.input("inp").send(envelope)
    for use in (lambda: envelope.msg, lambda: envelope.repack(1), lambda: running.input("inp").send(envelope)):
        with pytest.raises(Exception, match="was sent"):
            use()
    with pytest.raises(Exception, match="takes an Envelope, not dict"):
        running.input("inp").send({"data": 1})
    assert running.output("out").recv().msg == [1]
    ended(running)


def test_the_message_is_the_same_object_all_the_way() -> None:
    message: list[int] = []
    assert through(one_node("Transform"), [message])[0] is message


# Channels


def test_batches() -> None:
    found = through(one_node("Batches", "n = 3\nms = 5000"), list(range(7)))
    assert found == [([0, 1, 2], False), ([3, 4, 5], False), ([6], True)]


def test_a_batch_that_is_late_is_partial() -> None:
    running = graph(one_node("Batches", "n = 100\nms = 50"))
    running.input("inp").send(Envelope.pack(1))
    assert running.output("out").recv().msg == ([1], False)
    ended(running)


def test_a_batch_of_none() -> None:
    running = graph(one_node("Transform"))
    assert running.output("out").batch_recv(0, 10_000) == ([], False)
    ended(running)


def test_unconnected_ports() -> None:
    to_end("""
    main = "g"
    [[graphs]]
    name = "g"
    nodes = [{ name = "alone", ty = "Collect", word = "unconnected" }, { name = "count", ty = "Count", n = 3 }]
    """)
    assert nodes.seen["unconnected"] == [None]


# Futures


def test_futures() -> None:
    future, waker = megflow.create_future()
    threading.Timer(0.02, waker.wake, ["value"]).start()
    assert future.wait() == "value"
    assert future.wait() is None
    heard: list[Any] = []
    future, waker = megflow.create_future(heard.append)
    waker.wake(1)
    waker.wake(2)
    assert (future.wait(), heard) == (1, [1])
    future, waker = megflow.create_future()
    future.cancel()
    waker.wake(3)
    assert future.wait() is None
    future, waker = megflow.create_future()
    del waker
    assert future.wait() is None


def test_join_runs_side_by_side() -> None:
    met = threading.Barrier(3, timeout=10)
    assert megflow.join([lambda n=n: (met.wait(), n)[1] for n in range(3)]) == [0, 1, 2]
    assert megflow.join([]) == []
    with pytest.raises(ZeroDivisionError):
        megflow.join([lambda: 1 / 0, lambda: 1])
    results: list[int] = []
    assert megflow.block_on(lambda: results.append(1)) is None
    megflow.yield_now()
    assert results == [1]


def test_sleep_counts_milliseconds() -> None:
    began = time.monotonic()
    megflow.sleep(30)
    assert 0.02 < time.monotonic() - began < 10


# Functions as nodes


def test_names_of_function_nodes() -> None:
    from megflow.func_op import _type_name

    def named(name: str) -> Any:
        return type(name, (), {"__name__": name})

    expected = {"noop": "Noop", "my_func": "Myfunc", "det2_x": "Det2X", "x_1y": "X_1Y"}
    assert {name: _type_name(named(name), None) for name in expected} == expected


def test_function_nodes() -> None:
    assert through(one_node("Double"), [1, 2]) == [2, 4]
    assert through(one_node("Tally", "total = 10"), [1, 2]) == [("x", 11), ("x", 13)]
    assert through(one_node("Inplace", "batch_size = 2\ntimeout = 5000"), [{}, {}, {}]) == [{"seen": True}] * 3
    assert nodes.seen["in_place"] == [2, 1]
    to_end("""
    main = "g"
    [[graphs]]
    name = "g"
    connections = [{ cap = 1, ports = ["a:out", "b:inp"] }]
    nodes = [{ name = "a", ty = "Letters" }, { name = "b", ty = "Swallow" }]
    """)
    assert nodes.seen["swallow"] == ["a", "b", "c"]


def test_reduce_takes_one_of_each_input() -> None:
    running = graph("""
    main = "g"
    [[graphs]]
    name = "g"
    inputs = [{ name = "a", cap = 2, ports = ["sum:inp:0"] }, { name = "b", cap = 2, ports = ["sum:inp:1"] }]
    outputs = [{ name = "out", cap = 2, ports = ["sum:out"] }]
    nodes = [{ name = "sum", ty = "Addup" }]
    """)
    assert running.inputs() == ["a", "b"]
    assert running.outputs() == ["out"]
    assert running.input("c") is running.output("c") is None
    running.input("a").send(Envelope.pack(1))
    running.input("b").send(Envelope.pack(2))
    assert running.output("out").recv().msg == 3
    ended(running)


# Embedding


def test_a_program_of_ones_own(tmp_path: Path) -> None:
    """With PYTHONPATH from `panglot shims megflow`, a graph file with variables, and a plugin folder."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "node.py").write_text(
        "from megflow import register\n"
        "@register(inputs=['inp'], outputs=['out'])\n"
        "class Twice:\n"
        "    def __init__(self, name, args): pass\n"
        "    def exec(self):\n"
        "        envelope = self.inp.recv()\n"
        "        if envelope is not None: self.out.send(envelope.repack(envelope.msg * 2))\n"
    )
    text = one_node("{{ kind }}")
    (tmp_path / "plugins" / "plugins.toml").write_text(text)
    (tmp_path / "variables.toml").write_text('kind = "Twice"')
    program = (
        "from megflow import Envelope, Graph\n"
        "graph = Graph(plugin_path='plugins', dynamic_path='variables.toml', dump=True)\n"
        "graph.input('inp').send(Envelope.pack(21))\n"
        "print(graph.output('out').recv().msg)\n"
        "graph.wait()\n"
    )
    from support.server import panglot

    shims = panglot("shims", "megflow").stdout.strip()
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": shims},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "42\n", done.stderr
    assert (tmp_path / "plugins" / "plugins.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs config_path, config_str or plugin_path"),
        ({"config_path": "/nowhere.toml"}, "No such file"),
        ({"config_str": 'main = "g"'}, "'graphs' is missing"),
        ({"config_str": one_node("ImageServer")}, "'port' is missing"),
        ({"config_str": one_node("Nope")}, "there is no type 'Nope'"),
    ],
)
def test_embedding_what_cannot_run(options: dict[str, str], words: str) -> None:
    with pytest.raises(Exception, match=words):
        megflow.Graph(**options)


def test_a_failing_node_is_told_at_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="2 call"):
        through(one_node("Fails"), [0, 1, 2, 3])
    assert "ValueError: 3" in capfd.readouterr().err


def test_an_old_interpreter_without_tomli_is_told_so() -> None:
    from support import interpreters

    old = {version: path for version, path in interpreters.found().items() if version in ("3.8", "3.9", "3.10")}
    if not old:
        pytest.skip("there is no CPython before 3.11 here")
    code = "import megflow; megflow.Graph(config_str='main = 1')"
    done = subprocess.run(
        [*list(old.values())[:1], "-S", "-c", code], env={"PYTHONPATH": str(PLATFORM)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "needs the package tomli before Python 3.11 (fix: pip install tomli)" in done.stderr
