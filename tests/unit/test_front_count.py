"""How many fronts suit a machine, and when a server says that it should have more."""

from __future__ import annotations

import os

import pytest

from panglot.machine.front_count import advised, automatic
from panglot.settings import Settings
from panglot.settings.counts import exactly
from panglot.settings.resolving import resolve
from panglot.tools.doctor.fronts import fronts
from panglot.web.pages.front_load import SECONDS, FrontLoad


@pytest.mark.parametrize(
    ("workers", "cores", "count"),
    [(10, 16, 2), (32, 64, 8), (8, 96, 2), (64, 64, 8), (3, 64, 1), (4, 7.5, 1), (100, 256, 8), (0, 64, 1)],
)
def test_auto_goes_by_workers_and_cores(workers: int, cores: float, count: int) -> None:
    assert automatic(workers, cores) == count


def test_auto_is_read_everywhere() -> None:
    assert resolve({}, {"PANGLOT_FRONTS": "auto"}, None, {}).settings.fronts == 0
    assert resolve({}, {"PANGLOT_FRONTS": "3"}, None, {}).settings.fronts == 3
    assert Settings().fronts == 1


def loaded(busy: float, idle: bool, seconds: int = SECONDS) -> FrontLoad:
    load = FrontLoad()
    for _ in range(seconds):
        load.look({os.getpid(): (busy, 0)}, [{"state": "ready", "in_flight": 0 if idle else 1}])
    return load


def test_more_fronts_are_advised_only_where_the_front_is_full_for_a_minute_and_workers_are_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("panglot.machine.front_count.usable_cpus", lambda: 16.0)
    assert loaded(0.97, idle=True).advice() == "the front is at 97 % of a core while workers are idle: try --fronts 2"
    assert not loaded(0.97, idle=True, seconds=SECONDS - 1).advice()
    assert not loaded(0.8, idle=True).advice()
    assert not loaded(0.97, idle=False).advice(), "more fronts do not help where all workers are busy"
    assert (advised(1, 2), advised(1, 4), advised(2, 16)) == (0, 2, 4), "where there are cores for them"


def test_doctor_tells_how_many_fronts_suit_the_machine() -> None:
    at = {"port": 0}
    assert (
        fronts(Settings(workers=exactly(16), **at), 32).value == "1; for 16 workers on 32 CPUs, --fronts auto starts 4"
    )
    assert fronts(Settings(workers=exactly(2), **at), 32).value == "1, which suits 2 workers on 32 CPUs"
    found = fronts(Settings(fronts=4, workers=exactly(2), **at), 32)
    assert (found.state, found.fix) == ("warning", "--workers 4, or fewer fronts")
