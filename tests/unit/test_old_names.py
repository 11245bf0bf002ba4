"""Settings that were renamed: the old name works for one release with one warning, by flag, variable and file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panglot.cli.options import parse_flags
from panglot.errors import StartError
from panglot.settings import Settings
from panglot.settings.all_settings import former_names, table_of
from panglot.settings.names import flag, variable
from panglot.settings.resolving import Resolved, resolve

MIB = 1 << 20


def resolved(way: str, folder: Path, values: Mapping[str, Any]) -> Resolved:
    """The settings when these are given by flag, variable or file."""
    if way == "flag":
        return resolve(parse_flags(dict(values)), {})
    if way == "variable":
        return resolve({}, {variable(name): text for name, text in values.items()})
    file = folder / "panglot.toml"
    file.write_text("".join(f'{name} = "{text}"\n' for name, text in values.items()))
    return resolve({}, {}, file)


@pytest.mark.parametrize("way", ["flag", "variable", "file"])
@pytest.mark.parametrize(
    ("old", "new", "text", "value"),
    [
        ("max_held", "request_memory", "3MiB", 3 * MIB),
        ("place", "worker_resources", "cpu=2,gpu=1", {"cpu": 2.0, "gpu": 1.0}),
        ("keeper_ports", "agent_ports", "20000-20009", (20000, 20009)),
    ],
)
def test_an_old_name_works_with_one_warning_that_has_the_new(
    way: str, old: str, new: str, text: str, value: Any, tmp_path: Path
) -> None:
    outcome = resolved(way, tmp_path, {old: text})
    assert getattr(outcome.settings, new) == value
    spelt = {"flag": flag, "variable": variable, "file": str}[way]
    where = " in panglot.toml" if way == "file" else ""
    expected = (
        f"{spelt(old)}{where} is now called {spelt(new)}: the old name works in this release, and not in the next"
    )
    assert outcome.warnings == (expected,)
    assert outcome.sources[new] == ("panglot.toml" if way == "file" else spelt(old))
    assert resolved(way, tmp_path, {new: text}).warnings == ()


@pytest.mark.parametrize("way", ["flag", "variable", "file"])
def test_both_names_at_once_are_an_error(way: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"are both given.*: they are the old and the new name of one setting"):
        resolved(way, tmp_path, {"max_held": "3MiB", "request_memory": "4MiB"})


def test_a_stronger_source_wins_whichever_name_it_uses() -> None:
    flags = parse_flags({"request_memory": "4MiB"})
    assert resolve(flags, {"PANGLOT_MAX_HELD": "3MiB"}).settings.request_memory == 4 * MIB
    flags = parse_flags({"max_held": "4MiB"})
    assert resolve(flags, {"PANGLOT_REQUEST_MEMORY": "3MiB"}).settings.request_memory == 4 * MIB


def test_the_table_of_ray_has_the_old_names_too(tmp_path: Path) -> None:
    file = tmp_path / "panglot.toml"
    file.write_text('[ray]\nplace = { cpu = 2 }\nkeeper_ports = "1-2"\n')
    outcome = resolve({}, {}, file)
    assert (outcome.settings.worker_resources, outcome.settings.agent_ports) == ({"cpu": 2.0}, (1, 2))
    assert len(outcome.warnings) == 2


def test_a_wrong_value_is_told_under_the_name_that_was_used() -> None:
    with pytest.raises(StartError, match=r"^--max-held 'much'"):
        parse_flags({"max_held": "much"})


def test_the_reference_page_says_what_was_renamed() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/settings.md").read_text()
    for old, new in former_names(Settings).items():
        assert old not in table_of(Settings)
        assert re.search(rf"\| `{new}` \|.*formerly `{old}`", page)
