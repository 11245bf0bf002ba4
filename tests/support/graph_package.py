"""A small package of MegFlow whose node wants a module and a file."""

from __future__ import annotations

from pathlib import Path

NODE = """
from megflow import register
from {imported} import WORD


@register(inputs=["inp"], outputs=["out"])
class Echo:
    def __init__(self, name, args):
        self.word = WORD + open(args["file"]).read()

    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope.repack({{"data": envelope.msg["data"] * 0 + len(self.word)}}))
"""
GRAPH = """
main = "bytes"

[[graphs]]
name = "bytes"
connections = [{{ cap = 4, ports = ["server:out", "echo:inp"] }}, {{ cap = 4, ports = ["echo:out", "server:inp"] }}]
nodes = [{{ name = "server", ty = "BytesServer", port = 0 }}, {{ name = "echo", ty = "Echo", file = "{file}" }}]
"""


def graph(plugin: Path, imported: str, file: str) -> Path:
    """The package; every byte of an answer says how long a word of the imported module and the file are."""
    plugin.mkdir(parents=True)
    (plugin / "words.py").write_text("WORD = 'own '\n")
    (plugin / "echo.py").write_text(NODE.format(imported=imported))
    (plugin / "file.txt").write_text("12345")
    (plugin / f"{plugin.name}.toml").write_text(GRAPH.format(file=file))
    return plugin
