"""`panglot completion`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from panglot.errors import StartError

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", required=False, type=click.Choice(SHELLS))
def completion(shell: str | None) -> None:
    """Print a script that lets your shell complete commands and options of panglot.

    Without a name, the shell is that of the variable SHELL. For bash or zsh, add eval "$(panglot completion)" to
    ~/.bashrc or ~/.zshrc. For fish, add panglot completion fish | source to ~/.config/fish/config.fish.
    """
    from click.shell_completion import get_completion_class

    from panglot.cli.commands import panglot

    wanted = shell or Path(os.environ.get("SHELL", "")).name
    made = get_completion_class(wanted) if wanted in SHELLS else None
    if made is None:
        fix = "panglot completion bash, zsh or fish"
        raise StartError(f"there is no completion for the shell '{wanted}'", fix=fix)
    click.echo(made(panglot, {}, "panglot", "_PANGLOT_COMPLETE").source())
