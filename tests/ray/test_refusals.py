"""What cannot be served on nodes is refused with a sentence, before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import PACKAGES, panglot

PACKAGE = str(PACKAGES / "on_nodes")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--inline",), "leave out --inline or --ray"),
        (("--device", "cuda:0"), "use --worker-resources gpu=1"),
        (("--link-paths",), "--link-paths makes links on this machine only"),
        (("--mps",), "--mps is for the GPUs of this machine"),
        (("--worker-resources", "cpu"), "expected resources with their amounts, such as cpu=1,gpu=1"),
        (("--worker-resources", "gpu=1.5"), "above 1, amounts are whole numbers"),
        (("--agent-ports", "9-1"), "the lower one first"),
        (("--ray-python", "/nowhere/python"), "/nowhere/python cannot be started: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_does_not_go_together_is_refused(flags: tuple[str, ...], words: str) -> None:
    done = panglot("serve", PACKAGE, "--port", "0", "--ray", "auto", *flags)
    assert done.returncode == 3
    assert words in done.stderr


def test_an_interpreter_without_ray_is_named(tmp_path: Path) -> None:
    """A python whose packages are not to be found has no Ray, whatever this machine has."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nexec python3 -I -S "$@"\n')
    python.chmod(0o755)
    done = panglot("serve", PACKAGE, "--port", "0", "--ray", "auto", "--ray-python", str(python))
    assert done.returncode == 3
    assert f"{python} has no Ray" in done.stderr
    assert "pip install 'panglot[ray]', or --ray-python" in done.stderr


@pytest.mark.timeout(400)
def test_an_address_without_a_cluster_is_refused(inside: RayCluster) -> None:
    nobody = f"{inside.network.address(1)}:6398"
    done = panglot("serve", PACKAGE, "--port", "0", "--ray", nobody, "--ray-python", inside.python, seconds=120)
    assert done.returncode == 3
    assert f"--ray {nobody}: " in done.stderr
    assert "is it the address of a head" in done.stderr


@pytest.mark.timeout(400)
@pytest.mark.parametrize("token", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "0" * 64}], ids=["none", "wrong"])
def test_without_the_clusters_token_nothing_is_served(inside: RayCluster, token: dict[str, str]) -> None:
    done = panglot("serve", PACKAGE, "--port", "0", *inside.flags, env=token, seconds=120)
    assert done.returncode == 3
    assert "RAY_AUTH_TOKEN" in done.stderr
    assert inside.environment["RAY_AUTH_TOKEN"] not in done.stderr


@pytest.mark.timeout(400)
def test_a_script_that_does_not_load_ends_the_server_as_here(inside: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(value): return value\n\nraise ValueError('not today')\n")
    done = panglot("serve", str(tmp_path), "--port", "0", *inside.flags, seconds=120)
    assert done.returncode == 3
    assert "not today" in done.stderr
    assert f"{tmp_path / 'model.py'}:3" in done.stderr


@pytest.mark.timeout(400)
def test_an_interpreter_that_nodes_do_not_have_is_named(inside: RayCluster) -> None:
    done = panglot("serve", PACKAGE, "--port", "0", *inside.flags, "--python", "/nowhere/python", seconds=120)
    assert done.returncode == 3
    assert "/nowhere/python cannot be started there" in done.stderr
