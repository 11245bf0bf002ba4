"""Every key of a graph file, and every way to get it wrong: refused with file, line, what and a suggestion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from panglot_worker.graphs import checking, configuration, ports, reading
from panglot_worker.graphs.errors import GraphError

GOOD = """\
main = "main"

[[nodes]]
name = "model"
ty = "Model"

[[resources]]
name = "store"
ty = "Store"

[[graphs]]
name = "sub"
inputs = [{ name = "inp", cap = 16, ports = ["model:inp"] }]
outputs = [{ name = "out", cap = 16, ports = ["model:out"] }]

[[graphs]]
name = "main"
connections = [
    { cap = 16, ports = ["source:out", "inner:inp"] },
    { cap = 8, ports = ["inner:out", "last:inp:0"] },
    { cap = 8, ports = ["last:out", "source:inp"] },
]
    [[graphs.resources]]
    name = "own"
    ty = "Store"
    [[graphs.nodes]]
    name = "source"
    ty = "ImageServer"
    port = 8080
    [[graphs.nodes]]
    name = "inner"
    ty = "sub"
    [[graphs.nodes]]
    name = "last"
    ty = "Last"
    res = ["own", "store"]
    cloned = 2
    [graphs.nodes.size]
    width = 3
"""
TYPES = checking.Types(
    {
        **ports.BUILT_IN,
        "Model": ports.declared(["inp"], ["out"]),
        "Last": ports.declared(["inp:{}"], ["out"]),
        "Listed": ports.declared(["inp:[]"], ["out"]),
    },
    {"Store"},
)


def load(text: str) -> configuration.Config:
    config = reading.read_text(text, file="graph.toml")
    checking.check(config, TYPES)
    return config


@pytest.mark.document("megflow.08", "megflow.14")
def test_a_file_that_uses_every_key() -> None:
    config = load(GOOD)
    last = config.graphs["main"].node("last")
    assert last is not None
    assert (last.cloned, last.res, last.args) == (2, ["own", "store"], {"size": {"width": 3}})
    assert (last.position.file, last.position.line) == ("graph.toml", 33)
    assert config.graphs["main"].connections[1].position.line == 20
    assert config.graphs["main"].connections[1].ports[1] == configuration.PortRef("last", "inp", 0)
    assert config.shared("model") is not None


def test_it_survives_the_way_to_the_worker() -> None:
    config = load(GOOD)
    assert configuration.from_json(json.loads(json.dumps(configuration.to_json(config)))) == config


def test_inline_tables_and_dates() -> None:
    config = load(
        'main = "g"\n'
        'graphs = [{ name = "g", nodes = [{ name = "a-b", ty = "Model", day = 2021-09-26, t = [07:32:00] }] }]'
    )
    node = config.graphs["g"].nodes[0]
    assert node.args == {"day": "2021-09-26", "t": ["07:32:00"]}


MUTATIONS = {
    # what is replaced, by what: words of the message
    ('main = "main"', ""): "'main' is missing",
    ('main = "main"', 'main = "mian"'): "did you mean 'main'?",
    ('main = "main"', "main = 3"): "main = 3: expected a name",
    ('main = "main"', 'main = "main"\nnode = []'): "unknown key 'node'",
    ('name = "sub"\ninputs', 'name = "sub"\ninput'): "unknown key 'input'",
    ('name = "main"\nconnections', 'name = "main"\nconections'): "unknown key 'conections'",
    ("[[graphs]]\nname = \"sub\"", "[[graphs]]\nnam = \"sub\""): "unknown key 'nam'",
    ("{ cap = 16, ports = [\"source:out\"", "{ cup = 16, ports = [\"source:out\""): "unknown key 'cup'",
    ("{ cap = 16, ports = [\"source:out\"", "{ ports = [\"source:out\""): "'cap' is missing",
    ("{ cap = 8, ports = [\"inner:out\"", "{ cap = 0, ports = [\"inner:out\""): "must be at least 1",
    ("{ cap = 8, ports = [\"inner:out\"", "{ cap = \"8\", ports = [\"inner:out\""): "expected a whole number",
    ("{ cap = 8, ports = [\"inner:out\"", "{ cap = true, ports = [\"inner:out\""): "expected a whole number",
    ('ports = ["last:out", "source:inp"]', "ports = []"): "ports is empty",
    ('ports = ["last:out", "source:inp"]', 'ports = "last:out"'): "expected a list of names",
    ('ports = ["last:out", "source:inp"]', 'ports = ["last", "source:inp"]'): "'last' names no port",
    ('ports = ["last:out", "source:inp"]', 'ports = ["last:out:x", "source:inp"]'): "names no port",
    ('"inner:out", "last:inp:0"', '"inner:out", "last:inp:-1"'): "names no port",
    ('"source:out", "inner:inp"', '"sorce:out", "inner:inp"'): "there is no node 'sorce'",
    ('"source:out", "inner:inp"', '"source:outp", "inner:inp"'): "has no port 'outp'",
    ('"source:out", "inner:inp"', '"source:out", "inner:in"'): "node 'inner' of type 'sub' has no port 'in'",
    ('"inner:out", "last:inp:0"', '"inner:out", "last:inp"'): "is a dict port and needs a tag",
    ('    { cap = 16, ports = ["source:out", "inner:inp"] },\n', ""): "its input 'inp' is connected to nothing",
    ('outputs = [{ name = "out", cap = 16, ports = ["model:out"] }]',
     'nodes = [{ name = "m", ty = "Model" }]\noutputs = [{ name = "out", cap = 16, ports = ["m:out"] }]'): (
        "without its port 'out'"),
    ('inputs = [{ name = "inp", cap = 16, ports = ["model:inp"] }]',
     'inputs = [{ name = "inp", cap = 16, ports = ["model:out"] }]'): "is an output of its node",
    ('ty = "ImageServer"', 'ty = "ImagServer"'): "there is no type 'ImagServer'",
    ('ty = "sub"', 'ty = "sub|Model"'): "gives alternatives",
    ('ty = "sub"', 'ty = "main"'): "contains itself",
    ('name = "last"', 'name = "inner"'): "a second node of graph 'main' is called 'inner'",
    ('name = "main"\nconn', 'name = "sub"\nconn'): "a second graph is called 'sub'",
    ('name = "own"', 'nome = "own"'): "'name' is missing",
    ('ty = "Store"\n    [[graphs.nodes]]', 'ty = "Stare"\n    [[graphs.nodes]]'): "there is no type 'Stare'",
    ("port = 8080", ""): "'port' is missing",
    ("port = 8080", 'port = "8080"'): "is no port",
    ("port = 8080", "port = 80800"): "is no port",
    ("cloned = 2", "cloned = 0"): "must be at least 1",
    ("cloned = 2", 'cloned = "2"'): "expected a whole number",
    ('res = ["own", "store"]', 'res = "own"'): "expected a list of names",
    ('res = ["own", "store"]', "res = [1]"): "expected a list of names",
    ("connections = [\n", "connections = [ 3,\n"): "is a list of tables",
    ('name = "last"', "name = last"): "not valid TOML",
    ('name = "last"', 'name = ""'): "name is empty",
    ('ty = "Last"', ""): "'ty' is missing",
}  # fmt: skip


@pytest.mark.parametrize("change", MUTATIONS, ids=range(len(MUTATIONS)))
def test_a_mistake_is_refused_with_its_line(change: tuple[str, str]) -> None:
    before, after = change
    assert GOOD.count(before) >= 1
    text = GOOD.replace(before, after, 1)
    with pytest.raises(GraphError) as caught:
        load(text)
    assert MUTATIONS[change] in str(caught.value)
    assert caught.value.file == "graph.toml"
    # A key that is missing is missed where its table begins.
    changed = (
        next(
            line for line, (old, new) in enumerate(zip(GOOD.split("\n"), text.split("\n"), strict=False)) if old != new
        )
        + 1
    )
    distance = changed - caught.value.line
    assert -1 <= distance <= 4 or MUTATIONS[change] in ELSEWHERE, str(caught.value)


ELSEWHERE = ("contains itself", "without its port 'out'", "its input 'inp' is connected to nothing")
"""Mistakes that are told of another place than the one that was changed."""


SUGGESTED = {
    ('main = "main"', 'main = "mian"'): "'main'",
    ('"source:out", "inner:inp"', '"sorce:out", "inner:inp"'): "'source'",
    ('"source:out", "inner:inp"', '"source:outp", "inner:inp"'): "'out'",
    ('ty = "ImageServer"', 'ty = "ImagServer"'): "'ImageServer'",
    ('{ cap = 16, ports = ["source:out"', '{ cup = 16, ports = ["source:out"'): "'cap'",
    ('ty = "Store"\n    [[graphs.nodes]]', 'ty = "Stare"\n    [[graphs.nodes]]'): "'Store'",
}


@pytest.mark.parametrize("change", SUGGESTED, ids=range(len(SUGGESTED)))
def test_a_near_word_is_suggested(change: tuple[str, str]) -> None:
    with pytest.raises(GraphError) as caught:
        load(GOOD.replace(*change, 1))
    assert SUGGESTED[change] in caught.value.fix


def test_a_resource_that_is_nowhere_is_a_warning() -> None:
    config = reading.read_text(GOOD.replace('"own", "store"', '"own", "stor"'), file="graph.toml")
    assert "asks for the resource 'stor'" in checking.check(config, TYPES)[0]


DYNAMIC = """
main = "g"
[[graphs]]
name = "sub"
inputs = [{ name = "inp", cap = 1, ports = ["m:inp"] }]
outputs = [{ name = "out", cap = 1, ports = ["m:out"] }]
nodes = [{ name = "m", ty = "Model" }]
[[graphs]]
name = "g"
connections = [
    { cap = 1, ports = ["demux:out", "t:inp"] },
    { cap = 1, ports = ["t:out", "sink:inp"] },
]
nodes = [
    { name = "demux", ty = "DynDemux" }, { name = "other", ty = "DynDemux" }, { name = "t", ty = "sub" },
    { name = "plain", ty = "Model" }, { name = "sink", ty = "NoopConsumer" },
]
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"demux:out", "t:inp"', '"demux:out", "other:out"'), "two dynamic ports"),
        (('"demux:out", "t:inp"', '"demux:out", "plain:inp"'), "whose type is a graph"),
        (('"demux:out", "t:inp"', '"demux:out", "t:inp", "plain:inp"'), "whose type is a graph"),
        (('["t:out", "sink:inp"]', '["plain:out", "t:inp"]'), "made on demand by a dynamic port"),
        (('"demux:out", "t:inp"', '"demux:out", "t:out"'), "are both outputs"),
    ],
)
def test_dynamic_ports(change: tuple[str, str], words: str) -> None:
    load(DYNAMIC)
    load(DYNAMIC.replace('ty = "sub" }', 'ty = "sub|sub" }'))
    with pytest.raises(GraphError, match=words):
        load(DYNAMIC.replace(*change))


def test_a_shared_graph_may_not_use_shared_nodes() -> None:
    text = """
main = "g"
nodes = [{ name = "one", ty = "Model" }, { name = "two", ty = "sub" }]
[[graphs]]
name = "sub"
inputs = [{ name = "inp", cap = 1, ports = ["one:inp"] }]
outputs = [{ name = "out", cap = 1, ports = ["one:out"] }]
[[graphs]]
name = "g"
"""
    with pytest.raises(GraphError, match="sharing inside sharing"):
        load(text)


def test_includes_are_appended(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    part = 'main = "part"\nnodes = [{ name = "s", ty = "Model" }]\n[[graphs]]\nname = "part"\n'
    (tmp_path / "more" / "part.toml").write_text(part)
    (tmp_path / "all.toml").write_text('main = "all"\ninclude = ["more/part.toml"]\n[[graphs]]\nname = "all"\n')
    config = reading.read(str(tmp_path / "all.toml"))
    assert config.main == "all"
    assert list(config.graphs) == ["all", "part"]
    assert config.nodes[0].position.file.endswith("part.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('main = "a"\ninclude = ["b.toml"]\n[[graphs]]\nname = "a"', "include one another: a.toml -> b.toml -> a.toml"),
        ('main = "a"\ninclude = ["nowhere.toml"]\n[[graphs]]\nname = "a"', "there is no such file"),
    ],
)
def test_wrong_includes(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    (tmp_path / "b.toml").write_text('main = "b"\ninclude = ["a.toml"]\n[[graphs]]\nname = "b"')
    with pytest.raises(GraphError, match=words):
        reading.read(str(tmp_path / "a.toml"))


def test_variables_for_the_template(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text('main = "g"\n[[graphs]]\nname = "g"\nnodes = [{ name = "n", ty = "{{ kind }}" }]')
    (tmp_path / "v.toml").write_text('kind = "Model"')
    assert reading.read(str(tmp_path / "g.toml"), str(tmp_path / "v.toml")).graphs["g"].nodes[0].ty == "Model"
    with pytest.raises(GraphError, match="give it with --dynamic"):
        reading.read(str(tmp_path / "g.toml"))
