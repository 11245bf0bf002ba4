"""Whatever names files of the front's machine works on nodes, or is refused with a sentence before anything starts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import PACKAGES, panglot, serving

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


def graph(folder: Path, imported: str, file: str) -> Path:
    """A package of MegFlow three folders below where its imports may begin."""
    plugin = folder / "apps" / "echo"
    plugin.mkdir(parents=True)
    (folder / "apps" / "shared.py").write_text("WORD = 'shared '\n")
    (plugin / "words.py").write_text("WORD = 'own '\n")
    (plugin / "echo.py").write_text(NODE.format(imported=imported))
    (plugin / "file.txt").write_text("12345")
    (plugin / "echo.toml").write_text(GRAPH.format(file=file))
    return plugin


def refused(*arguments: str, env: dict[str, str] | None = None) -> str:
    """The sentence with which a server ends before it has tried to reach a cluster."""
    done = panglot("serve", *arguments, "--port", "0", "--ray", "nobody.invalid:1", env=env)
    assert done.returncode == 3, done.stderr
    return " ".join(done.stderr.split())


def test_what_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "words.txt").write_text("one two")
    words = "which is what the nodes are sent (fix: put it there, or have it on the nodes: --ray-files shared)"
    tiinfer = refused(str(PACKAGES / "tiinfer_batch"), env={"TI_MODEL_DIR": str(outside)})
    assert f"{outside} does not lie in {PACKAGES / 'tiinfer_batch'}, {words}" in tiinfer
    for package in ("evals_hello", "megflow_video/megflow_video.toml"):
        assert words in refused(str(PACKAGES / package), "--uri-root", str(outside))
    assert words in refused(str(graph(tmp_path, "echo.words", "../outside/words.txt") / "echo.toml"))
    assert words not in refused(str(PACKAGES / "evals_hello"), "--uri-root", str(outside), "--ray-files", "shared")


@pytest.mark.timeout(400)
def test_a_graph_finds_its_modules_and_files(inside: RayCluster, tmp_path: Path) -> None:
    """Its modules are named from a folder above it; with --module, that folder travels whole."""
    own = graph(tmp_path / "own", "echo.words", "file.txt")
    other = graph(tmp_path / "other", "apps.shared", "apps/echo/file.txt")
    for plugin, module, length in ((own, (), 9), (other, ("--module", str(tmp_path / "other")), 12)):
        flags = ("--place", "cpu=0.1", "--python", sys.executable, *module)
        with serving(plugin / "echo.toml", *inside.flags, *flags, ready=False) as server:
            server.wait_ready(120)
            answer = server.client.post("/analyze/bytes", content=b"ab")
            assert answer.content == bytes([length, length]), answer.text + server.log


@pytest.mark.timeout(400)
def test_files_of_requests_lie_in_the_package(inside: RayCluster, tmp_path: Path) -> None:
    """Those that evals may name by `uri`, in the folder of an image, below which its script lies."""
    image = tmp_path / "image"
    shutil.copytree(PACKAGES / "evals_rows", image / "python" / "evals")
    (image / "pictures").mkdir()
    (image / "pictures" / "a.txt").write_text("in the package")
    flags = ("--uri-root", str(image / "pictures"), "--python", sys.executable)
    with serving(image, *inside.flags, *flags, ready=False) as server:
        server.wait_ready(120)
        answer = server.client.post("/v1/eval", json={"data": {"uri": "file://a.txt"}})
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["body"] == ["in the package"], answer.text + server.log
