"""`panglot call`."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.durations import duration
from panglot.cli.options import TakesInputs, chosen_form
from panglot.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable

    from panglot.cli.commands.run import Bar
    from panglot.client import CallAnswer, Client
    from panglot.inputs.base import Given
    from panglot.tools.run.inputs import Input
    from panglot.tools.run.running import RunResult

EVERY = 0.25
"""Seconds between two looks at a job."""


@click.command(cls=TakesInputs)
@click.argument("url")
@click.argument("inputs", nargs=-1, metavar="[INPUT...]")
@click.option("--format", "form", type=click.Choice(["table", "jsonl", "csv"]), help="how answers are printed [table]")
@click.option("--json", "as_json", is_flag=True, help="one JSON object per answer, as --format jsonl")
@click.option("--concurrency", type=click.IntRange(1), default=8, metavar="N", help="inputs sent at the same time [8]")
@click.option("--timeout", type=duration(0.1), default=60.0, metavar="SECONDS", help="longest time for an input [60]")
@click.option("--wait", type=duration(0.0), default=5.0, metavar="SECONDS", help="how long to wait for the server [5]")
@click.option("--follow", is_flag=True, help="run the inputs as jobs, and show their progress")
@click.option("--retry", is_flag=True, help="send an input again after a lost connection, although it may have run")
@click.option("--dialect", default="", metavar="NAME", help="the server's dialect, if the server does not name it")
@click.option("--field", default="", metavar="NAME", help="the form field for files, if the server does not name one")
def call(
    url: str, inputs: tuple[str, ...], form: str | None, as_json: bool, concurrency: int, follow: bool, **given: Any
) -> None:
    """Send each INPUT to the server at URL, and print the answers.

    URL is, for example, http://127.0.0.1:8080 or unix:PATH. An INPUT is a file, a folder, a glob, JSON, a file of JSON
    lines, or - for standard input. Without an INPUT the server's own example is sent. The command waits if the server
    is busy or restarts. The token comes from PANGLOT_TOKEN. The exit code is 1 if an input failed. With --follow, each
    input becomes a job of the server, which goes on if you interrupt this command.
    """
    client = _client(url, given)
    kind = chosen_form(form, as_json) or ("table" if sys.stdout.isatty() else "jsonl")
    with client:
        sys.exit(_call(client, _inputs(client, inputs), concurrency, kind, follow))


def _client(url: str, given: dict[str, Any]) -> Client:
    from panglot.client import Client

    try:
        return Client(url, connect_timeout=given.pop("wait"), **given)
    except ValueError as error:
        raise StartError(str(error)) from None


def _inputs(client: Client, words: tuple[str, ...]) -> list[Input]:
    """The inputs given, or else the example that the server publishes. Raises StartError without either."""
    from panglot.client import CallError
    from panglot.inputs.base import Given
    from panglot.tools.run.inputs import gather

    try:
        about = client.about()
    except CallError as error:
        fix = "is the server running?" if error.code == "no_connection" else ""
        raise StartError(error.message, fix=fix) from None
    if words:
        return gather(words)
    shown = about.api.get("example") or {}
    if shown.get("kind") != "json":
        raise StartError("no input is given, and the server has no example in JSON", fix="name files, or give JSON")
    return [Given("the server's example", value=shown["value"])]


def _call(client: Client, gathered: list[Input], concurrency: int, kind: str, follow: bool) -> int:
    """Send all inputs, print the results in their order, and return the exit code."""
    from functools import partial

    from panglot.cli.commands.run import Bar
    from panglot.client.synchronous import in_order
    from panglot.tools.run import result_writers

    done: list[RunResult] = []
    writer = result_writers.writer(kind, sys.stdout)
    began = time.monotonic()
    with Bar(len(gathered), "the server", "calling") as bar:
        followed = FollowedJobs(client, bar)
        ask = followed.answer if follow else client.call
        try:
            for result in in_order(partial(_one, ask), gathered, concurrency, False, followed.left.set):
                done.append(result)
                writer.add(result)
                bar.advance()
        except KeyboardInterrupt:
            pass
    writer.close()
    followed.say_what_goes_on()
    line = result_writers.summary(done, len(gathered), time.monotonic() - began)
    completed = len(done) == len(gathered)
    click.echo(line if completed else f"interrupted: {line}", err=True)
    return 130 if not completed else 1 if any(result.failed for result in done) else 0


class FollowedJobs:
    """The jobs of this command, each with its progress in a line on the terminal. Several threads use it."""

    def __init__(self, client: Client, bar: Bar) -> None:
        self.client = client
        self.bar = bar.bar
        self.going_on: set[str] = set()
        """Jobs that have not ended, by id."""
        self.left = threading.Event()
        """Set when the command is interrupted: the threads then leave their jobs."""

    def answer(self, entry: Given) -> CallAnswer:
        """Have an input run as a job, and wait for its end. Raises CallError."""
        from panglot.client import CallError

        job = self.client.submit(entry)
        self.going_on.add(job.id)
        line = self.bar.add_task(f"{entry.name}: queued", total=1.0)
        try:
            # Not by the job's events: a thread that reads them could not be woken when the command is interrupted.
            while not (state := job.state())["ended"]:
                progress = state["progress"] or {}
                said = f"{entry.name}: {progress.get('text') or state['state']}"
                self.bar.update(line, description=said, completed=progress.get("progress") or 0.0)
                if self.left.wait(EVERY):
                    raise CallError("the command was interrupted")
        finally:
            self.bar.remove_task(line)
        self.going_on.discard(job.id)
        return job.answer()

    def say_what_goes_on(self) -> None:
        for name in sorted(self.going_on):
            click.echo(f"the job {name} goes on: GET /jobs/{name} shows it, DELETE /jobs/{name} cancels it", err=True)


def _one(ask: Callable[[Any], CallAnswer], entry: Input) -> RunResult:
    """The result of one input. A failure is a result too."""
    from panglot.client import CallError
    from panglot.terminal.text import counted
    from panglot.tools.run.inputs import UnreadableInput
    from panglot.tools.run.running import RunResult

    if isinstance(entry, UnreadableInput):
        return RunResult(entry.name, error=entry.problem)
    began = time.perf_counter()
    try:
        answer = ask(entry)
    except CallError as error:
        return RunResult(entry.name, error.status, error=str(error))
    except (OSError, ValueError) as error:
        return RunResult(entry.name, error=getattr(error, "strerror", None) or str(error))
    times = {**answer.times_ms, "total": round((time.perf_counter() - began) * 1000, 3)}
    value = answer.value
    if isinstance(value, bytes):
        value = f"<{counted(len(value), 'byte')} of {answer.content_type or 'nothing'}>"
    return RunResult(entry.name, answer.status, value, times=times, runs=1)
