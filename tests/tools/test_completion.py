"""`panglot completion`: a shell completes commands and options."""

from __future__ import annotations

import pytest

from support.server import panglot


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    done = panglot("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "_PANGLOT_COMPLETE" in done.stdout


def test_the_shell_is_that_of_the_user_and_an_unknown_one_is_refused() -> None:
    assert panglot("completion", env={"SHELL": "/usr/bin/zsh"}).stdout.startswith("#compdef")
    done = panglot("completion", env={"SHELL": "/bin/csh"})
    assert done.returncode == 3
    assert "no completion for the shell 'csh' (fix: panglot completion bash, zsh or fish)" in done.stderr


def test_help_names_it() -> None:
    assert 'eval "$(panglot completion)"' in " ".join(panglot("--help").stdout.split())
