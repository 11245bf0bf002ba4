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
    """Print what makes a shell complete commands and options of panglot: SHELL is bash, zsh or fish.

    Without SHELL it is the one in the variable SHELL. In bash or zsh: eval "$(panglot completion)"; in fish: panglot
    completion fish | source. Put the line into the file that the shell reads when it starts.
    """
    from click.shell_completion import get_completion_class

    from panglot.cli.commands import panglot

    wanted = shell or Path(os.environ.get("SHELL", "")).name
    made = get_completion_class(wanted) if wanted in SHELLS else None
    if made is None:
        fix = "panglot completion bash, zsh or fish"
        raise StartError(f"there is no completion for the shell '{wanted}'", fix=fix)
    click.echo(made(panglot, {}, "panglot", "_PANGLOT_COMPLETE").source())
