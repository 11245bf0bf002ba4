"""Settings: one declaration, four sources, no guessing."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot.errors import StartError
from panglot.settings import Settings, flag, table_of, units, variable
from panglot.settings.counts import WorkerCount, exactly
from panglot.settings.resolving import parse, resolve

FIELDS = table_of(Settings)


def test_what_may_wait_is_bounded_by_default() -> None:
    """By 1,024 requests, and by their bytes: a quarter of a gibibyte."""
    settings = Settings()
    assert (settings.queue, settings.queue_bytes) == (1024, 256 << 20)


def test_the_strongest_source_wins(tmp_path: Path) -> None:
    file = tmp_path / "panglot.toml"
    file.write_text('queue = 1\ntimeout = "3s"\nmax_batch = 5\nworkers = 4\n')
    environ = {"PANGLOT_QUEUE": "2", "PANGLOT_TIMEOUT": "500ms", "HOME": "/"}
    found = resolve({"queue": 3}, environ, file, {"workers": exactly(9), "keep_alive": 1.0})
    assert (found.settings.queue, found.sources["queue"]) == (3, "--queue")
    assert (found.settings.timeout, found.sources["timeout"]) == (0.5, "PANGLOT_TIMEOUT")
    assert (found.settings.max_batch, found.sources["max_batch"]) == (5, "panglot.toml")
    assert (found.settings.workers, found.sources["workers"]) == (exactly(4), "panglot.toml")
    assert (found.settings.keep_alive, found.sources["keep_alive"]) == (1.0, "the dialect")
    assert (found.settings.port, found.sources["port"]) == (8080, "default")


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("1.5", 1.5), ("500ms", 0.5), ("2 m", 120), ("1h", 3600), ("10 S", 10)]
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert units.seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("1024", 1024), ("64MiB", 64 << 20), ("10MB", 10**7), ("1 gb", 10**9), ("2k", 2048), ("1.5KiB", 1536)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert units.size(text) == size


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("", ""), ("cpu", "cpu"), ("CPU", "cpu"), ("cuda:0, cuda:1", "cuda:0,cuda:1"), ("cuda", "cuda:0"),
        ("gpu:1", "cuda:1"), ("cuda:GPU-0a1b2c3d", "cuda:GPU-0a1b2c3d"),
    ],
)  # fmt: skip
def test_devices_are_read_as_people_write_them(text: str, devices: str) -> None:
    assert units.PARSERS["devices"](text) == devices


def test_a_wrong_device_is_refused_with_the_forms_it_may_have(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"'foo' is no device; expected cpu, cuda:N, "):
        parse(FIELDS["device"], "foo", "--device")
    file = tmp_path / "panglot.toml"
    for text in ('device = "foo"', 'pools = { inference = { workers = 1, device = "foo" } }'):
        file.write_text(text)
        with pytest.raises(StartError, match="'foo' is no device"):
            resolve({}, {}, file)


WRONG = [
    ("device", "foo"),
    ("device", "cuda:0,1"),
    ("device", "cuda:"),
    ("port", "eighty"),
    ("port", "-1"),
    ("timeout", "soon"),
    ("timeout", "10 parsecs"),
    ("max_body", "10 horses"),
    ("workers", "1.5"),
    ("workers", "8:1"),
    ("workers", "0:0"),
    ("workers", "a:b"),
    ("workers", "1:2000"),
    ("rerun", "maybe"),
    ("nan", "nothing"),
    ("max_wait_ms", "-3"),
    ("log_level", "loud"),
]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_wrong_values_are_refused_everywhere(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(StartError, match=flag(name)):
        parse(FIELDS[name], text, flag(name))
    with pytest.raises(StartError, match=variable(name)):
        resolve({}, {variable(name): text})
    file = tmp_path / "panglot.toml"
    file.write_text(f'\n{name} = "{text}"\n')
    with pytest.raises(StartError, match=rf"panglot.toml:2: {name}"):
        resolve({}, {}, file)


def test_a_range_of_workers_is_read_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "panglot.toml"
    file.write_text('workers = "1:8"\n\n[pools]\npreprocess = "2:4"\ninference = { workers = "1:2" }\n')
    settings = resolve({}, {}, file).settings
    assert settings.workers == WorkerCount(1, 8)
    assert settings.pools["preprocess"].workers == WorkerCount(2, 4)
    assert settings.pools["inference"].workers == WorkerCount(1, 2)
    assert resolve({}, {"PANGLOT_WORKERS": "2:3"}).settings.workers == WorkerCount(2, 3)
    assert parse(FIELDS["workers"], "4:4", "--workers") == exactly(4)
    assert units.show(settings.pools, "pools") == "preprocess=2:4,inference=1:2"


@pytest.mark.parametrize(
    "line",
    [
        "queue = true",
        "queue = [1]",
        "queue = 1.5",
        "rerun = 1",
        "workers = 1.5",
        "workers = true",
        "allow_host = 3",
        "host = 1",
    ],
)
def test_wrong_types_in_a_file_are_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "panglot.toml"
    file.write_text(line + "\n")
    with pytest.raises(StartError, match="panglot.toml:1"):
        resolve({}, {}, file)


def test_a_broken_file_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "panglot.toml"
    file.write_text("queue = 1\nworkers =\n")
    with pytest.raises(StartError, match="panglot.toml:2"):
        resolve({}, {}, file)


def test_every_unknown_key_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    """Each setting's name with one letter changed: never silently ignored."""
    file = tmp_path / "panglot.toml"
    for name in FIELDS:
        typo = name[:-1] + ("x" if name[-1] != "x" else "y")
        file.write_text(f"{typo} = 1\n")
        with pytest.raises(StartError, match=f"unknown key '{typo}'"):
            resolve({}, {}, file)


def test_every_setting_says_what_it_is() -> None:
    for name, field in FIELDS.items():
        assert field.metadata["help"], name
        assert field.metadata["kind"] in units.PARSERS, name


def test_run_timeout_follows_timeout() -> None:
    assert Settings(timeout=7).effective_run_timeout == 7
    assert Settings(timeout=7, run_timeout=2).effective_run_timeout == 2
