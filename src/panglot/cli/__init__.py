"""The command line: options, and `commands/` with a file for each command. Only here errors become exit codes."""

from __future__ import annotations

import difflib
import sys
from typing import Any


def main() -> None:
    """The command `panglot`."""
    from panglot.cli.commands import panglot

    run(panglot)


def run(command: Any) -> None:
    """Run a command and end the process with its exit code."""
    import click

    from panglot.errors import LoadError, PanglotError
    from panglot.logs.journal import open_standard_files
    from panglot.terminal.text import visible

    open_standard_files()
    # The most special errors first: LoadError is a PanglotError, NoSuchOption a UsageError.
    try:
        command.main(standalone_mode=False)
    except LoadError as error:
        if error.traceback:
            click.echo(visible(error.traceback.rstrip(), "\n\t"), err=True)
        _end(error.sentence(), error.exit_code)
    except PanglotError as error:
        _end(str(error), error.exit_code)
    except click.exceptions.NoSuchOption as error:
        _end(_unknown_option(error), 3)
    except click.UsageError as error:
        _end(error.format_message(), 3)
    except click.Abort:
        sys.exit(130)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)


def _unknown_option(error: object) -> str:
    name = getattr(error, "option_name", "")
    context = getattr(error, "ctx", None)
    options = context.command.get_params(context) if context else []
    shown = [option for option in options if not getattr(option, "hidden", False)]
    # Compared without the dashes: with them, any two options would look alike.
    words = [word for option in shown for word in (*option.opts, *option.secondary_opts) if word[:1] == "-"]
    bare = {word.lstrip("-"): word for word in words}
    meant = [bare[word] for word in difflib.get_close_matches(name.lstrip("-"), bare, n=2, cutoff=0.6)]
    hint = f"did you mean {' or '.join(meant)}?" if meant else "--help lists all options"
    return f"there is no option {name} (fix: {hint})"


def _end(message: str, code: int) -> None:
    import click

    from panglot.terminal.text import at_words, visible

    whole = at_words(visible(f"error: {message}", "\n\t"), sys.stderr)
    click.echo(click.style("error: ", fg="red", bold=True) + whole.removeprefix("error: "), err=True)
    sys.exit(code)
