"""Whatever names files of the front's machine works on nodes, or is refused with a sentence before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.graph_package import graph
from support.ray_cluster import RayCluster
from support.server import PACKAGES, panglot, serving
from support.traffic import SOAK


def refused(*arguments: str, env: dict[str, str] | None = None) -> str:
    """The sentence with which a server ends before it has tried to reach a cluster."""
    done = panglot("serve", *arguments, "--port", "0", "--ray", "127.0.0.1:1", env=env)
    assert done.returncode == 3, done.stderr
    return " ".join(done.stderr.split())


def test_what_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "words.txt").write_text("one two")
    words = "which is what the nodes are sent (fix: put it there, or have it on the nodes: --ray-files shared)"
    tiinfer = refused(str(PACKAGES / "tiinfer_batch"), env={"TI_MODEL_DIR": str(outside)})
    assert f"{outside} does not lie in {PACKAGES / 'tiinfer_batch'}, {words}" in tiinfer
    assert words in refused(str(PACKAGES / "megflow_video"), "--uri-root", str(outside))
    assert words in refused(str(graph(tmp_path / "echo", "echo.words", "../outside/words.txt")))
    assert words not in refused(str(PACKAGES / "evals_hello"), "--uri-root", str(outside), "--ray-files", "shared")


@pytest.mark.timeout(400)
@pytest.mark.skipif(not SOAK, reason="the other way is tested always: make soak")
def test_with_module_the_folder_travels_where_imports_begin(inside: RayCluster, tmp_path: Path) -> None:
    plugin = graph(tmp_path / "apps" / "echo", "apps.shared", "apps/echo/file.txt")
    (tmp_path / "apps" / "shared.py").write_text("WORD = 'shared '")
    flags = ("--python", sys.executable, "--module", str(tmp_path))
    with serving(plugin, *inside.flags, *flags, ready=False) as server:
        server.wait_ready(120)
        assert server.client.post("/analyze/bytes", content=b"ab").content == bytes([12, 12]), server.log
