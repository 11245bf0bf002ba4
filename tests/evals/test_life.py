"""From the start of a script to its answers: the net is made once, and helpers are those of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.evals import GOOD, group, package, result, returning, single
from support.server import serving

ONCE = """
CREATED = []


def created():
    CREATED.append("once")
    return {"created": CREATED}, 0, ""
"""


@pytest.mark.document("evals.01", "evals.13")
def test_the_net_is_made_once_and_handed_to_every_call(tmp_path: Path) -> None:
    toml = "[evals]\nbatch_size = 2\n"
    folder = package(tmp_path, returning(GOOD % "model['created']", ONCE, "created()"), panglot__toml=toml)
    with serving(folder) as server:
        assert [result(server, value) for value in (single(), group(b"a", b"b"), single())] == [["once"]] * 3


@pytest.mark.document("evals.43")
def test_helpers_below_a_folder_of_ones_own_clash_with_nobody(tmp_path: Path) -> None:
    """Neither with the platform's evals.utils nor with modules of the environment."""
    imports = "from mine import utils as helper\nfrom mine.lib import NAME as LIB\nimport evals.utils as other"
    folder = package(
        tmp_path / "package", returning(GOOD % "[helper.NAME, LIB, other.__name__]", imports),
        mine___utils__py="from mine.lib import NAME\n", mine___lib__py="NAME = 'own lib'\n",
    )  # fmt: skip
    (folder / "mine" / "__init__.py").touch()
    environment = package(tmp_path / "environment", "NAME = 'another'\n", "utils.py", lib__py="NAME = 'another'\n")
    with serving(folder, env={"PYTHONPATH": str(environment)}) as server:
        assert result(server, single()) == ["own lib", "own lib", "evals.utils"]
