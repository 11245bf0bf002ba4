"""`panglot bench`."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.durations import duration
from panglot.cli.options import OnPackage, of_groups, resolve_package, setting_options, warn
from panglot.errors import StartError
from panglot.settings.setting import RECORDING
from panglot.terminal import printing
from panglot.terminal.text import visible

if TYPE_CHECKING:
    from panglot.tools.bench.figures import Bench
    from panglot.tools.bench.levels import Level, Load, Options
    from panglot.tools.bench.target import BenchTarget

OWN = ("host", "port", "inline", "reload", "timeout", "log_format", "log_level", "tls_cert", "tls_key")


@click.command(cls=OnPackage)
@click.argument("target", metavar="PATH_OR_URL")
@click.argument("inputs", nargs=-1, metavar="[INPUT...]")
@click.option("--concurrency", default="", metavar="N,...", help="requests at the same time [1,4,16]")
@click.option("--rate", default="", metavar="R,...", help="requests per second, even if the server cannot keep up")
@click.option("--duration", type=duration(0.2), default=10.0, metavar="SECONDS", help="of each load [10]")
@click.option("--warmup", type=duration(0.0), default=1.0, metavar="SECONDS", help="before each load [1]")
@click.option("--even", is_flag=True, help="with --rate: at even intervals instead of random ones")
@click.option("--check", is_flag=True, help="compare every answer with the first one to its input")
@click.option("--json", "as_json", is_flag=True, help="print all figures as one JSON object")
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE", help="write the figures, for --compare")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="write a page with plots")
@click.option("--compare", type=click.Path(path_type=Path), metavar="FILE", help="compare with figures of --save")
@click.option(
    "--auto-log/--no-auto-log", "auto_log", default=None,
    help="print a report in AutoLog's format [for TIPC packages]",
)  # fmt: skip
@click.option("--timeout", type=duration(0.1), default=60.0, metavar="SECONDS", help="longest time for a request [60]")
@click.option(
    "--connections", type=click.IntRange(1), default=512, metavar="N", help="most connections of a rate [512]"
)
@click.option("--recording", type=click.Path(path_type=Path), metavar="FILE", help="send the requests of a recording")
@click.option("--field", default="", metavar="NAME", help="the form field for files, if the package does not name one")
@lambda function: setting_options(function, (*OWN, *of_groups(RECORDING)), ())
def bench(target: str, inputs: tuple[str, ...], arguments: tuple[str, ...], **given: Any) -> None:
    """Send many requests to a server, or to a package that this command serves, and show how fast it answers.

    Without an INPUT the package's or the server's own example is sent. With --rate, the latency of a request counts
    from the moment when it should have been sent. The exit code is 1 if requests failed, if an answer was wrong
    (--check), or if something got worse (--compare).
    """
    from panglot.tools.bench import figures
    from panglot.tools.bench.levels import Options
    from panglot.tools.run.inputs import gather

    names = ("concurrency", "rate", "as_json", "save", "html", "compare", "auto_log", "field", "recording")
    own = {name: given.pop(name) for name in names}
    numbers = ("duration", "warmup", "even", "connections", "timeout", "check")
    options = Options(**{name: given.pop(name) for name in numbers})
    if options.check:
        import panglot.tools.arrays  # noqa: F401  it says what to install, before a request is sent
    loads = _loads(own["concurrency"], own["rate"])
    old = figures.read(own["compare"]) if own["compare"] else None
    gathered = gather(inputs) if inputs else []
    if gathered and own["recording"]:
        raise StartError("give inputs or a recording, not both", fix="leave one of them out")
    with opened_target(target, given, arguments, own["field"], options.timeout) as (aim, about):
        if own["recording"]:
            aim.prepare_recorded(own["recording"])
        else:
            aim.prepare(gathered)
        done = _measure(aim, target, loads, options, quiet=own["as_json"])
    if own["auto_log"] is None:
        own["auto_log"] = bool(aim.about.api.get("autolog")) and not own["as_json"]
    sys.exit(_report(done, own, about, old))


def _loads(concurrency: str, rate: str) -> list[Load]:
    from panglot.tools.bench.levels import Load

    try:
        loads = [Load(rate=float(word)) for word in rate.split(",") if word]
        loads += [Load(concurrency=int(word)) for word in concurrency.split(",") if word]
    except ValueError as error:
        raise StartError(
            f"--concurrency and --rate take numbers: {error}", fix="such as --concurrency 1,4,16"
        ) from None
    if any(load.rate < 0 or load.concurrency < 0 or not (load.rate or load.concurrency) for load in loads):
        raise StartError("--concurrency and --rate must be larger than 0")
    return loads or [Load(concurrency=n) for n in (1, 4, 16)]


@contextlib.contextmanager
def opened_target(
    target: str, given: dict[str, Any], arguments: tuple[str, ...], field: str, timeout: float
) -> Iterator[tuple[BenchTarget, dict[str, Any]]]:
    """The target, a running server or a package that is served until this is closed; and facts about its model."""
    from panglot.inputs.addresses import is_address
    from panglot.tools.bench.target import running, served
    from panglot.tools.doctor import selftest
    from panglot.tools.running_server import RunningServer
    from panglot.web.access.tokens import establish

    if is_address(target):
        with running(RunningServer(target, str(given.get("dialect") or ""), field)) as aim:
            yield aim, {"model_name": aim.client.address.host, **aim.about.api.get("autolog", {})}
        return
    package, resolved = resolve_package(target, given, arguments)
    warn(resolved.warnings)
    settings = resolved.settings
    typed = {name: value for name, value in given.items() if value is not None}
    flags = [*selftest.flags_of(typed), f"--timeout={timeout}"]
    token = establish(dataclasses.replace(settings, host="127.0.0.1"), os.environ).token
    plan = selftest.ServerPlan(
        target, package.folder, flags, token, settings.load_timeout, timeout, settings.drain, arguments
    )
    with served(plan, package.dialect, field) as aim:
        known = {"model_name": package.name, "runtime_device": settings.device or "cpu"}
        yield aim, {**known, **aim.about.api.get("autolog", {})}


def _measure(aim: BenchTarget, name: str, loads: list[Load], options: Options, quiet: bool) -> Bench:
    """Put the loads on the target, and print the figures of each as soon as it has ended, unless `quiet`."""
    from rich.console import Console

    from panglot.machine import devices
    from panglot.tools.bench import figures, report_table
    from panglot.tools.bench.levels import measure
    from panglot.tools.doctor.machine import cpus

    done = figures.begin(name, aim.about.dialect, len(aim.requests), cpus().value)
    rows = report_table.Levels(printing.console(), options.check, bool(devices.count()))
    with Console(stderr=True).status("") as status:

        def report(level: Level) -> None:
            done.levels.append(level)
            if not quiet:
                status.stop()
                rows.add(level, is_first=len(done.levels) == 1)
                status.start()

        def begins(load: Load) -> None:
            status.update(f"{load}, {len(done.levels) + 1} of {len(loads)}, {options.duration:g} s each")

        # After Ctrl-C the figures so far are shown.
        with contextlib.suppress(KeyboardInterrupt):
            measure(aim, loads, options, report, begins)
    if done.levels and not quiet:
        rows.close()
    return done


def _report(done: Bench, own: dict[str, Any], about: dict[str, Any], old: Bench | None) -> int:
    """Print everything besides the table of loads, write the files that were asked for, and return the exit code."""
    from panglot.tools.bench import autolog, figures, report_table

    if not done.levels:
        return 130
    changes = figures.compare(old, done) if old else []
    if own["as_json"]:
        click.echo(figures.text(done, changes if old else None))
    else:
        console = printing.console()
        report_table.show_more(console, done)
        if old:
            report_table.show_changes(console, changes, old)
    for level in done.levels:
        if level.wrong:
            click.echo(f"the first wrong answer at {level.load}: {visible(level.first_wrong)}", err=True)
    if own["auto_log"]:
        click.echo("\n" + autolog.block(done.levels[0], about))
    if own["save"]:
        figures.save(done, own["save"])
    if own["html"]:
        from panglot.tools.bench import report_page

        report_page.write(done, own["html"], changes)
    bad = any(level.failed or level.wrong for level in done.levels)
    return 1 if bad or any(change.verdict == "worse" for change in changes) else 0
