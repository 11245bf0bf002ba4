"""The table [ray] of a panglot.toml is the flags that begin with --ray, and what goes with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot.errors import StartError
from panglot.settings import resolving


def resolve(folder: Path, text: str, **environ: str) -> resolving.Resolved:
    file = folder / "panglot.toml"
    file.write_text(text)
    return resolving.resolve({}, environ, file)


def test_the_table_has_an_address_and_more(tmp_path: Path) -> None:
    resolved = resolve(
        tmp_path,
        '[ray]\naddress = "auto"\nworker_resources = { cpu = 2, gpu = 0.5, big = 1 }\npython = "/opt/ray/bin/python"\n'
        'agent_ports = "20000-20099"\nfiles = "shared"\ntls = true\n',
    )
    settings = resolved.settings
    assert settings.ray == "auto"
    assert settings.worker_resources == {"cpu": 2.0, "gpu": 0.5, "big": 1.0}
    assert settings.ray_python == "/opt/ray/bin/python"
    assert settings.agent_ports == (20000, 20099)
    assert settings.ray_files == "shared"
    assert settings.ray_tls
    assert resolved.sources["ray"] == "panglot.toml"


def test_a_variable_wins_over_the_table(tmp_path: Path) -> None:
    resolved = resolve(tmp_path, 'ray = "auto"\n', PANGLOT_RAY="10.0.0.1:6379", PANGLOT_WORKER_RESOURCES="gpu=1")
    assert (resolved.settings.ray, resolved.settings.worker_resources) == ("10.0.0.1:6379", {"gpu": 1.0})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[ray]\nadress = "auto"\n',
            r"toml:2: unknown key 'adress' in \[ray\] \(fix: did you mean address\?\)",
        ),
        ("[ray]\nworker_resources = { cpu = -1 }\n", r"panglot.toml:2: worker_resources"),
        ('[ray]\naddress = "auto"\ntls = "maybe"\n', r"panglot.toml:3: tls = 'maybe': expected true or false"),
        ('[ray]\nagent_ports = "x"\n', r"expected two ports such as 20000-20099"),
    ],
)
def test_what_is_wrong_in_it_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StartError, match=words):
        resolve(tmp_path, text)
