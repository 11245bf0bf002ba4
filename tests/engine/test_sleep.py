"""What decides about sleep, without a server: damping, what is remembered of a model, the digest of a package."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from panglot.engine.sleep import last_life
from panglot.engine.sleep.damping import MOST, SleepDamping
from panglot.engine.sleep.last_life import LastLife
from panglot.packages.package import Package
from panglot.serving.models.last_lives import MOST_FILES, WHOLE, LastLives, digest
from panglot.settings import Settings, counts

READY = {
    "seconds": 0.1, "batched": False, "slots": 1, "workers": 0, "max_batch": 0, "api": {"routes": {}},
}  # fmt: skip
LIFE = LastLife(READY, (2, 1), 1.5, 1 << 30, None)


def test_a_sleep_that_was_too_short_doubles_the_time_awake_up_to_a_limit() -> None:
    damping = SleepDamping()
    grown = [damping.woken(slept=5, load=1) for _ in range(4)]
    assert grown == [True, True, False, False]
    assert damping.factor == MOST
    assert damping.stay(load=1, most=60) == MOST
    assert damping.stay(load=100, most=60) == 60


def test_a_sleep_that_paid_off_ends_the_damping() -> None:
    damping = SleepDamping()
    damping.woken(slept=1, load=1)
    assert not damping.woken(slept=10, load=1)
    assert damping.factor == 1


def test_what_is_remembered_is_read_as_it_was_written() -> None:
    assert last_life.read(LIFE.text()) == LIFE


@pytest.mark.parametrize(
    "change",
    [
        {"workers": ()}, {"workers": (0,)}, {"workers": (-1, 1)}, {"seconds": -1.0}, {"seconds": float("inf")},
        {"memory": -1}, {"ready": {}}, {"ready": {**READY, "slots": "many"}},
    ],
)  # fmt: skip
def test_what_makes_no_sense_counts_as_nothing_remembered(change: dict[str, object]) -> None:
    assert last_life.read(dataclasses.replace(LIFE, **change).text()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[" * 100_000, LIFE.text()[:-2], '{"format": 2}'])
def test_a_damaged_text_counts_as_nothing_remembered(text: str) -> None:
    assert last_life.read(text) is None


def package_in(folder: Path) -> Package:
    folder.mkdir(exist_ok=True)
    script = folder / "predict.py"
    script.write_text("def predict(request): return 1\n")
    return Package("predict", folder, script, "plain", "predict")


def test_the_digest_changes_with_files_and_settings_and_stays_otherwise(tmp_path: Path) -> None:
    package, settings, apart = package_in(tmp_path / "package"), Settings(), tmp_path / "package" / "state"
    before = digest(package, settings, apart)
    apart.mkdir()
    (apart / "stored").write_text("by ourselves")
    os.utime(package.script, (1, 1))
    assert digest(package, settings, apart) == before
    assert digest(package, dataclasses.replace(settings, max_batch=7), apart) != before
    package.script.write_text("def predict(request): return 2\n")
    assert digest(package, settings, apart) != before


def test_large_files_count_by_size_and_time(tmp_path: Path) -> None:
    package, weights = package_in(tmp_path / "package"), tmp_path / "package" / "weights"
    weights.write_bytes(bytes(WHOLE + 1))
    before = digest(package, Settings(), tmp_path)
    os.utime(weights, (1, 1))
    assert digest(package, Settings(), tmp_path) != before


def test_links_in_a_circle_and_to_nowhere_do_no_harm(tmp_path: Path) -> None:
    package = package_in(tmp_path / "package")
    (package.folder / "again").symlink_to(package.folder)
    (package.folder / "nowhere").symlink_to(tmp_path / "missing")
    os.mkfifo(package.folder / "pipe")
    assert digest(package, Settings(), tmp_path / "state")


def test_a_package_with_too_many_files_is_not_remembered(tmp_path: Path) -> None:
    package = package_in(tmp_path / "package")
    many = package.folder / "many"
    many.mkdir()
    for number in range(MOST_FILES):
        (many / str(number)).touch()
    lives = LastLives(tmp_path / "state")
    lives.store(package, Settings(), LIFE)
    assert lives.find(package, Settings()) is None
    assert not (tmp_path / "state").exists()


def test_what_is_stored_is_found_again(tmp_path: Path) -> None:
    package, lives = package_in(tmp_path / "package"), LastLives(tmp_path / "state")
    assert lives.find(package, Settings()) is None
    lives.store(package, Settings(), LIFE)
    assert lives.find(package, Settings()) == LIFE
    assert (tmp_path / "state" / "models").stat().st_mode & 0o077 == 0


def test_a_range_from_zero_counts_as_one_worker_while_awake() -> None:
    count = counts.parse("0:4")
    assert (count.sleeps, count.awake, str(count), bool(count)) == (True, 1, "0:4", True)
    assert (counts.parse("2:4").sleeps, counts.parse("2:4").awake) == (False, 2)
    assert (counts.ANY.sleeps, counts.ANY.awake, bool(counts.ANY)) == (False, 0, False)
