"""The command line: one file per command; errors become exit codes here alone."""

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
    near = getattr(error, "possibilities", None) or []
    hint = f" (fix: did you mean {' or '.join(difflib.get_close_matches(name, near, n=2, cutoff=0))}?)" if near else ""
    return f"there is no option {name}{hint}"


def _end(message: str, code: int) -> None:
    import click

    from panglot.terminal.text import visible

    click.echo(click.style("error: ", fg="red", bold=True) + visible(message, "\n\t"), err=True)
    sys.exit(code)
