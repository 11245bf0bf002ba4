"""Graph files: any bytes give a package, or one line that names the file and the line in it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from fuzz.start_errors import one_line
from panglot.dialects.megflow import detect
from panglot.errors import StartError
from panglot.packages.package import Package
from panglot_worker.graphs import configuration, reading
from panglot_worker.graphs.expressions import FILTERS
from panglot_worker.graphs.ports import BUILT_IN
from panglot_worker.line import wire

PLUGIN = """
from megflow import register


@register(inputs=["inp"], outputs=["out"])
class Shape:
    def __init__(self, name, args):
        pass

    def exec(self):
        pass


@register(inputs=["inp", "[lots]", "{named}"], outputs=["out"])
class Many:
    pass
"""
VARIABLES = 'port = 8080\nname = "main"\nnames = ["a", "b"]\n[deep]\nflag = true\n'
GRAPH = b"""main = "g"
[[graphs]]
name = "g"
inputs = [{ name = "inp", cap = 16, ports = ["a:inp"] }]
outputs = [{ name = "out", cap = 16, ports = ["a:out"] }]
[[graphs.nodes]]
name = "a"
ty = "Shape"
"""
SERVER = b"""main = "s"
[[graphs]]
name = "s"
connections = [{ cap = 16, ports = ["b:out", "a:inp"] }, { cap = 16, ports = ["b:inp", "a:out"] }]
[[graphs.nodes]]
name = "b"
ty = "BytesServer"
port = {{ port }}
response = "text"
[[graphs.nodes]]
name = "a"
ty = "Shape"
"""

WORDS = [
    GRAPH, SERVER,
    *rb"""{{ }} {% %} {# #} {{- -}} {%- -%} if else end for in scope range( range(3) range(9,0,-1) true null""".split(),
    *rb"""| ~ + - * / % == != < >= && || ! ( ) [ ] [[ ]] { } , . : = " ' ` # names deep.flag names[0]""".split(),
    *rb"""port name {"a":1} [1,2]""".split(),
    *[b"|" + name.encode() for name in FILTERS],
    *[name.encode() for name in sorted({*BUILT_IN, *reading.TOP, *reading.GRAPH, *reading.CONNECTION})],
    *rb"""ty res cloned port response "a:inp" "a:out" "b:named:0" "graph.toml" Shape Many Shape|Many g""".split(),
    *rb"""[[graphs]] [[graphs.nodes]] [[nodes]] [[resources]] [[graphs.connections]] [[graphs.resources]]""".split(),
    b"{% for x in names %}", b"{% end for %}", b"{% if deep.flag %}", b"{% else if port == 1 %}", b"{% else %}",
    b"{{ x = 1 }}", b"{% end if %}", b"{% scope %}", b"{% end scope %}",
    *[b"\n", b"\r\n", b" ", b"\0", b"\xff", "é".encode(), b"9" * 20, b"inf", b"1_6", b"'''", b'"""', b"true"],
]  # fmt: skip


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "graph").resolve()
        root.mkdir()
        (root / "shape.py").write_text(PLUGIN)
        variables = Path(folder, "variables.toml")
        variables.write_text(VARIABLES)
        os.chdir(folder)
        try:
            yield lambda data: check(root, variables, data)
        finally:
            os.chdir(before)


def check(root: Path, variables: Path, data: bytes) -> None:
    file = root / "graph.toml"
    file.write_bytes(data)
    try:
        check_package(detect.package_of(file, root, dynamic=str(variables)))
    except StartError as error:
        one_line(error, file)


def check_package(package: Package) -> None:
    """Its worker reads the same graphs, and it can be shown."""
    frame = wire.json_frame(wire.HELLO, 1, package.for_worker())
    options = wire.json_object(frame[wire.HEADER.size :])["options"]
    assert configuration.from_json(options["config"]).main == package.entry
    assert all(isinstance(line, str) for lines in package.facts.values() for line in lines)
