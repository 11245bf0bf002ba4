"""What the pages say of installing is what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib

import yaml

from panglot import __version__
from panglot.tools.package import wheel
from support.server import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTALLATION = (ROOT / "docs" / "install.md").read_text()


def test_it_names_every_extra_and_no_other() -> None:
    named = re.findall(r"^\| `(\w+)` \|", INSTALLATION, re.MULTILINE)
    assert set(named) == set(PROJECT["optional-dependencies"]) - {"docs", "test"}


def test_it_names_the_wheel_of_this_version() -> None:
    assert f"pip install {wheel.NAME}" in INSTALLATION
    assert f"`dist/{wheel.NAME}`" in INSTALLATION
    for page in ("reference/containers.md", "guides/deploy.md"):
        assert wheel.NAME in (ROOT / "docs" / page).read_text()
    assert f"panglot-{__version__}" in wheel.NAME


def test_it_names_the_interpreters() -> None:
    assert f"Panglot needs Linux and CPython {PROJECT['requires-python'].removeprefix('>=')} or newer" in INSTALLATION
    assert "of CPython 3.8 or newer" in INSTALLATION


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
