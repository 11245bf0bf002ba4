"""All commands by name, one file for each; each is imported only when it is used."""

from __future__ import annotations

import importlib

import click

from panglot import __version__

COMMANDS = {
    "serve": "Serve a package over HTTP.",
    "inspect": "Explain what a package is and how it would be served.",
    "run": "Run a package on files or JSON, without a server.",
    "call": "Send files or JSON to a server that runs.",
    "check": "Compare two saved results, or two packages stage by stage.",
    "bench": "Measure how fast a package or a server answers.",
    "record": "Record requests and answers, as a proxy in front of a service.",
    "replay": "Send a recording to a package or a server, and compare the answers.",
    "top": "Show what a server does, second by second.",
    "export": "Run a package's export script and try the model that comes out.",
    "shims": "Print the folders of the modules that a platform's scripts import.",
    "new": "Write a small working package to start from.",
    "key": "Make a key for clients of a server.",
    "doctor": "Find out why serving does not work.",
    "package": "Write a Dockerfile and other files to deploy a package.",
    "completion": 'Complete words in your shell: eval "$(panglot completion)"',
}
"""Each command with its purpose. A command is the function of its name, in the module of its name in this folder."""


class Lazy(click.Group):
    """A group that imports a command when it is used. A dialect with a command of its own adds it under its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_of_dialects()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            command: click.Command = getattr(importlib.import_module(f"{__name__}.{cmd_name}"), cmd_name)
            return command
        # Only now: this looks up all dialects, which takes time.
        return _of_dialects().get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Commands of platforms"):
            formatter.write_dl(
                [(name, _first_sentence(command.help or "")) for name, command in _of_dialects().items()]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of this name, or an error that names the nearest."""
        if args and args[0] not in COMMANDS and args[0] not in _of_dialects():
            from panglot.settings import suggestion

            known = self.list_commands(ctx)
            hint = suggestion(args[0], known) or f"commands are {', '.join(known)}"
            raise click.UsageError(f"there is no command '{args[0]}' (fix: {hint})")
        return super().resolve_command(ctx, args)


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).partition(":")[0].removesuffix(".") + "."


def _of_dialects() -> dict[str, click.Command]:
    from panglot import dialects

    having = [dialect for dialect in dialects.known().values() if dialect.has("command")]
    return {dialect.name: dialect.load("command").COMMAND for dialect in having}


@click.group(cls=Lazy, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="panglot %(version)s")
@click.pass_context
def panglot(ctx: click.Context) -> None:
    """Serve inference scripts, unmodified, behind one fast and safe HTTP server."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
