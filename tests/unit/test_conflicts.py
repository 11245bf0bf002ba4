"""Flags that contradict each other, and values that are none: refused before anything starts, with the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.server import PACKAGES, panglot

FUNCTION = str(PACKAGES / "function")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--inline", "--workers", "4"), "which is one worker (fix: leave out --inline or --workers)"),
        (("--inline", "--pools", "preprocess=2"), "(fix: leave out --inline or --pools)"),
        (("--inline", "--reload"), "which cannot load it again (fix: leave out --inline or --reload)"),
        (("--inline", "--python", "python3"), "(fix: leave out --inline or --python)"),
        (("--inline", "--fronts", "2"), "which is one front (fix: leave out --inline or --fronts)"),
        (("--inline", "--install"), "(fix: leave out --inline or --install)"),
        (("--inline", "--sleep-after", "10m"), "(fix: leave out --inline or --sleep-after)"),
        (("--inline", "--on-leave", "kill"), "which no signal can end (fix: leave out --inline or --on-leave)"),
        (("--inline", "--worker-memory", "1GB"), "cannot be replaced (fix: leave out --inline or --worker-memory)"),
        (("--inline", "--worker-max-requests", "9"), "(fix: leave out --inline or --worker-max-requests)"),
        (("--record-redact", "/name"), "--record-redact has no effect without --record (fix: add --record, or leave"),
        (("--ray-tls",), "--ray-tls has no effect without --ray (fix: add --ray, or leave it out)"),
        (("--wake-queue", "3"), "has no effect without --sleep-after or --memory-budget or --gpu-memory-budget"),
        (("--memory", "1GB"), "--memory has no effect without --memory-budget"),
        (("--default", "x"), "--default is for several models (fix: --models DIR, or leave it out)"),
        (("--no-auth", "--token-file", "token"), "(fix: leave out --no-auth or --token-file)"),
        (("--device", "foo"), "'foo' is no device; expected cpu, cuda:N"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(flags: tuple[str, ...], said: str) -> None:
    done = panglot("serve", FUNCTION, "--port", "0", *flags)
    assert done.returncode == 3
    assert said in done.stderr
    assert "listening" not in done.stderr


def test_a_flag_overrules_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(request):\n    return request\n")
    (tmp_path / "panglot.toml").write_text("workers = 4\n")
    done = panglot("inspect", str(tmp_path), "--inline")
    assert done.returncode == 0, done.stderr
    assert panglot("inspect", str(tmp_path), "--inline", "--workers", "1").returncode == 0
    for harmless in (("--fronts", "1"), ("--fronts", "auto"), ("--on-leave", "finish")):
        assert panglot("inspect", str(tmp_path), "--inline", *harmless).returncode == 0, harmless


def test_what_a_flag_needs_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(request):\n    return request\n")
    (tmp_path / "panglot.toml").write_text("sleep_after = 60\n")
    assert panglot("inspect", str(tmp_path), "--wake-queue", "3").returncode == 0
    assert panglot("inspect", str(tmp_path), "--record-every", "3").returncode == 3
    assert panglot("inspect", str(tmp_path), "--record-every", "3", env={"PANGLOT_RECORD": "x"}).returncode == 0
