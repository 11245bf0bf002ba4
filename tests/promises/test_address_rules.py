"""There is one set of rules on addresses: whoever asks, an address is refused or asked alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from panglot.errors import StartError
from panglot.settings.resolving import resolve
from support.addresses import BAD_URLS, FORBIDDEN, GOOD_URLS, LISTED, NO_ENTRIES, PUBLIC, WITH_A_ZONE
from support.namespace import run_inside
from support.server import ROOT

ASKERS = ROOT / "tests" / "support" / "askers.py"
NAMES = {f"n{number}.test": address for number, address in enumerate([*PUBLIC, *FORBIDDEN])}
MIXED = ("8.8.8.8", "10.0.0.5")


def word(asked: bool) -> str:
    return "asked" if asked else "refused"


def host_cases(scheme: str) -> dict[tuple[str, ...], str]:
    """Every address, spelt as a number and led to by a name."""
    found: dict[tuple[str, ...], str] = {}
    for address in (*PUBLIC, *FORBIDDEN, *WITH_A_ZONE):
        host = f"[{address}]" if ":" in address else address
        found[(f"{scheme}://{host}/",)] = word(address in PUBLIC)
    for name, address in NAMES.items():
        found[(f"{scheme}://{name}/",)] = word(address in PUBLIC)
        found[(f"{scheme}://{name}:8000/", name)] = "asked"
    return {**found, (f"{scheme}://mixed.test/",): "refused"}


def url_cases() -> dict[tuple[str, ...], str]:
    """A URL, with what `url_allow` lists, to what becomes of it."""
    plain = {(url,): word(url in GOOD_URLS) for url in (*GOOD_URLS, *BAD_URLS)}
    return {**host_cases("http"), **plain, **{(url, listed): word(asked) for url, listed, asked in LISTED}}


def socket_cases() -> dict[tuple[Any, ...], str]:
    """Host and port, with what `url_allow` lists."""
    found: dict[tuple[Any, ...], str] = {}
    for address in (*PUBLIC, *FORBIDDEN, *WITH_A_ZONE):
        found[(address, 80)] = word(address in PUBLIC)
    for name, address in NAMES.items():
        if ":" not in address:
            found[(name, 554)] = word(address in PUBLIC)
            found[(name, 554, name)] = "asked"
    found[("mixed.test", 80)] = "refused"
    found[("127.0.0.1", 9000, "127.0.0.1:9000")] = "asked"
    found[("127.0.0.1", 9001, "127.0.0.1:9000")] = "refused"
    found[("::1", 9000, "[0:0:0:0:0:0:0:1]")] = "asked"
    return found


@pytest.mark.timeout(180)
def test_every_user_of_the_rules_decides_alike(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    lines = [(address, name) for name, address in NAMES.items()] + [(address, "mixed.test") for address in MIXED]
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for address, name in lines))
    cases = {"urls": url_cases(), "streams": host_cases("rtsp"), "sockets": socket_cases()}
    assert all(len(found) > 100 for found in cases.values())
    given = json.dumps({name: list(found) for name, found in cases.items()})
    path = f"PYTHONPATH={ROOT}/src:{ROOT}/tests"
    done = run_inside(["env", path, sys.executable, str(ASKERS)], hosts, given=given)
    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads(done.stdout)
    for user, name in (("fetcher", "urls"), ("video", "urls"), ("camera", "streams"), ("script", "sockets")):
        wrong = {case: said for case, said in zip(cases[name], answers[user], strict=True) if cases[name][case] != said}
        assert not wrong, user


@pytest.mark.parametrize("text", [text for text in NO_ENTRIES if text])
def test_what_can_never_match_cannot_be_listed(text: str) -> None:
    with pytest.raises(StartError, match="is no host; write name, name:port or"):
        resolve({}, {"PANGLOT_URL_ALLOW": text})


def test_an_address_may_be_listed_in_any_spelling() -> None:
    environ = {"PANGLOT_URL_ALLOW": "::1,[::1]:80,[0:0::1],A.test,a_b.test:8000,127.0.0.1"}
    assert len(resolve({}, environ).settings.url_allow) == 6
