"""What a path is, and what a graph that cannot run is told: one line, exit code 3, within the check or the load."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot.cli.options import resolve_package
from panglot.dialects.megflow import detect
from panglot.errors import StartError
from panglot.packages.package import Package
from support import interpreters
from support.server import PACKAGES, panglot, serving

GRAPH = """\
main = "g"

[[graphs]]
name = "g"
connections = [
    { cap = 4, ports = ["server:out", "node:inp"] },
    { cap = 4, ports = ["node:out", "server:inp"] },
]
nodes = [{ name = "server", ty = "BytesServer", port = 8085 }, { name = "node", ty = "Node" }]
"""
PLUGIN = """\
from megflow import register


@register(inputs=["inp"], outputs=["out"])
class Node:
    def __init__(self, name, args):
        pass

    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope)
"""


def discover(path: Path, **given: str) -> Package:
    """The package as the commands see it."""
    return resolve_package(str(path), given)[0]


def package(folder: Path, graph: str = GRAPH, plugin: str = PLUGIN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.toml").write_text(graph)
    (folder / "plugin.py").write_text(plugin)
    return folder


# Detection


def test_a_folder_and_a_file() -> None:
    for path in (PACKAGES / "megflow_echo", PACKAGES / "megflow_echo" / "megflow_echo.toml"):
        found = discover(path)
        assert (found.dialect, found.entry, found.defaults["port"]) == ("megflow", "echo", 8084)
        assert found.options["servers"][0]["node"] == "source"


def test_nodes_in_static_subgraphs_serve_too(tmp_path: Path) -> None:
    text = (
        GRAPH.replace('main = "g"', 'main = "outer"')
        + '[[graphs]]\nname = "outer"\nnodes = [{ name = "in", ty = "g" }]\n'
    )
    assert discover(package(tmp_path / "p", text)).options["servers"][0]["node"] == "in/server"
    with serving(tmp_path / "p") as server:
        assert server.client.post("/analyze/bytes", content=b"x").content == b"x"


def test_several_files_in_a_folder(tmp_path: Path) -> None:
    package(tmp_path / "p")
    (tmp_path / "p" / "other.toml").write_text(GRAPH)
    with pytest.raises(StartError, match="several graph files: graph.toml, other.toml"):
        discover(tmp_path / "p")
    (tmp_path / "p" / "p.toml").write_text(GRAPH)
    assert discover(tmp_path / "p").script.name == "p.toml", "DIR/DIR.toml comes first"


def test_other_toml_is_no_graph(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert detect.detect(tmp_path) is None
    assert detect.detect(tmp_path / "pyproject.toml") is None


@pytest.mark.document("megflow.12")
def test_a_plugin_folder_of_its_own(tmp_path: Path) -> None:
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    (graphs / "graph.toml").write_text(GRAPH)
    package(tmp_path / "plugins")
    (tmp_path / "plugins" / "graph.toml").unlink()
    with serving(graphs / "graph.toml", "-p", str(tmp_path / "plugins")) as server:
        assert server.client.post("/analyze/bytes", content=b"x").content == b"x"


def test_variables_of_the_template(tmp_path: Path) -> None:
    text = GRAPH.replace("port = 8085", "port = {{ port }}")
    folder = package(tmp_path / "p", text)
    (tmp_path / "values.toml").write_text("port = 8099\n")
    found, resolved = resolve_package(str(folder), {"dynamic": str(tmp_path / "values.toml")})
    assert found.options["servers"][0]["port"] == resolved.settings.port == 8099
    with pytest.raises(StartError, match="there is no variable 'port' .fix: give it with --dynamic FILE"):
        discover(folder)


def test_a_module_named_like_its_folder(tmp_path: Path) -> None:
    folder = package(tmp_path / "ball")
    (folder / "plugin.py").rename(folder / "ball.py")
    with serving(folder) as server:
        assert server.client.post("/analyze/bytes", content=b"abc").content == b"abc"


def test_relative_imports_siblings_and_odd_names(tmp_path: Path) -> None:
    folder = package(tmp_path / "my-plugins v1.0", plugin="from helper import Node\n")
    (folder / "helper.py").write_text(PLUGIN)
    assert discover(folder).options["module"] == str(folder)
    with serving(folder) as server:
        assert server.client.post("/analyze/bytes", content=b"x").content == b"x"


def test_relative_paths_are_looked_for_where_they_lead_somewhere(tmp_path: Path) -> None:
    text = GRAPH.replace('ty = "Node" }', 'ty = "Node", path = "models/a.bin" }')
    folder = package(tmp_path / "above" / "plugins", text)
    (tmp_path / "above" / "models").mkdir()
    (tmp_path / "above" / "models" / "a.bin").write_bytes(b"")
    assert discover(folder).options["working"] == str(tmp_path / "above")


# What cannot run

REFUSED_BEFORE_LOADING = {
    "unknown port": (GRAPH.replace('"node:inp"', '"node:in"'), PLUGIN, "graph.toml:6: connection 1 of graph 'g':"),
    "unknown type": (GRAPH.replace('ty = "Node"', 'ty = "Nod"'), PLUGIN, "no type 'Nod' (fix: did you mean 'Node'?)"),
    "syntax": (GRAPH, PLUGIN + "def :\n", "plugin.py:13: syntax error"),
    "port word": (GRAPH, PLUGIN.replace('["inp"]', '["inp:<>"]'), "plugin.py:4: 'inp:<>' declares no port"),
    "toml": (GRAPH.replace("cap = 4", "cap ="), PLUGIN, "graph.toml:6: this is not valid TOML"),
    "same port": (GRAPH.replace(
        'ty = "Node" }', 'ty = "Node" }, { name = "second", ty = "BytesServer", port = 8085 }'), PLUGIN,
        "'server' and 'second' have the same port 8085"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_BEFORE_LOADING)
def test_refused_before_anything_runs(tmp_path: Path, case: str) -> None:
    graph, plugin, words = REFUSED_BEFORE_LOADING[case]
    with pytest.raises(StartError) as caught:
        discover(package(tmp_path / "p", graph, plugin))
    assert words in str(caught.value)


REFUSED_WHILE_LOADING = {
    "import error": (
        PLUGIN + "import there_is_no_such_module\n",
        "plugin.py:13: the package 'there_is_no_such_module'",
    ),
    "import raises": (PLUGIN + "1 / 0\n", "importing p.plugin failed: ZeroDivisionError"),
    "missing port": (
        PLUGIN.replace('inputs=["inp"]', "inputs=WORDS").replace("\n\n@reg", '\nWORDS = ["other"]\n\n@reg', 1),
        "has no port 'inp' (fix: there is 'other', 'out')",
    ),
    "no exec": (PLUGIN.replace("def exec", "def execute"), "the class Node has no method exec(self)"),
    "constructor raises": (
        PLUGIN.replace("pass", "raise KeyError('model')"),
        "constructing node node failed: KeyError",
    ),
    "constructor exits": (PLUGIN.replace("pass", "raise SystemExit(4)"), "ended the process with exit code 4"),
    "constructor takes nothing": (
        PLUGIN.replace("(self, name, args)", "(self)"),
        "constructing node node failed: TypeError",
    ),
}


@pytest.mark.parametrize("case", REFUSED_WHILE_LOADING)
def test_refused_while_loading(tmp_path: Path, case: str) -> None:
    plugin, words = REFUSED_WHILE_LOADING[case]
    done = panglot("serve", str(package(tmp_path / "p", GRAPH, plugin)), "--port", "0")
    assert done.returncode == 3
    assert words in done.stderr.splitlines()[-1]


def test_a_resource_that_cannot_be_made(tmp_path: Path) -> None:
    graph = (
        GRAPH.replace('ty = "Node" }', 'ty = "Node", res = ["store"] }')
        + '[[resources]]\nname = "store"\nty = "Store"\n'
    )
    plugin = PLUGIN + (
        "from megflow import res_register\n@res_register()\nclass Store:\n"
        "    def __init__(self, name, args):\n        raise OSError('no store')\n"
    )
    done = panglot("serve", str(package(tmp_path / "p", graph, plugin)), "--port", "0")
    assert done.returncode == 3
    assert "OSError: no store" in done.stderr


def test_the_oldest_interpreter_runs_graphs(tmp_path: Path) -> None:
    """The front reads the graph file, so that a worker before 3.11 needs no TOML; bytes need numpy there."""
    oldest = next(iter(interpreters.found().values()), "")
    if not oldest:
        pytest.skip("there is no other CPython here")
    graph = GRAPH[: GRAPH.index("connections")] + 'nodes = [{ name = "node", ty = "Node" }]\n'
    plugin = PLUGIN.replace('inputs=["inp"], outputs=["out"]', "").replace(
        "envelope = self.inp.recv()\n        if envelope is not None:\n            self.out.send(envelope)",
        "import sys; print('ran on', sys.version_info[:2])",
    )
    plugin = plugin.replace("@register()", "@register(outputs=['out'])")
    done = panglot("serve", str(package(tmp_path / "p", graph, plugin)), "--python", oldest)
    assert done.returncode == 0, done.stderr
    assert "ran on (3, 8)" in done.stdout or "ran on" in done.stdout


@pytest.mark.document("megflow.20")
def test_requests_wait_until_every_node_is_made(tmp_path: Path) -> None:
    slow = f"import os, time\n        while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.02)"
    with serving(package(tmp_path / "p", GRAPH, PLUGIN.replace("pass", slow)), ready=False) as server:
        assert server.client.post("/analyze/bytes", content=b"x").status_code == 503
        (tmp_path / "go").touch()
        server.wait_ready()
        assert server.client.post("/analyze/bytes", content=b"x").content == b"x"


def test_nodes_are_finalised_when_the_server_stops(tmp_path: Path) -> None:
    plugin = (
        PLUGIN
        + f"""
    def __del__(self):
        with open({str(tmp_path / "ended")!r}, "a") as out:
            out.write("once")
"""
    )
    with serving(package(tmp_path / "p", GRAPH, plugin)) as server:
        assert server.client.post("/analyze/bytes", content=b"x").content == b"x"
    assert (tmp_path / "ended").read_text() == "once"


def test_reload_loads_the_graphs_plugins_anew(tmp_path: Path) -> None:
    folder = package(tmp_path / "p")
    with serving(folder, "--reload") as server:
        # The line of the first start may come after the answer that the server is ready.
        server.wait_log("worker 0 ready", 20)
        before = len(server.lines)
        worse = PLUGIN.replace("self.out.send(envelope)", "raise ValueError('new')")
        server.change(lambda: (folder / "plugin.py").write_text(worse))
        server.wait_log("worker 0 ready", 20, after=before)
        assert server.client.post("/analyze/bytes", content=b"x").status_code == 500
