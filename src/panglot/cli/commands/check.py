"""`panglot check`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.options import PER_INPUT, OnPackage, all_settings, of_groups, resolve_package, setting_options, warn
from panglot.errors import StartError
from panglot.settings.setting import ACCESS, HTTP, RECORDING
from panglot.terminal import printing

if TYPE_CHECKING:
    from panglot.tools.check.compare import Tolerance
    from panglot.tools.check.sides import Where
    from panglot.tools.check.stagewise import Compared
    from panglot.tools.run.inputs import Input

OWN = ("host", "port", "inline", "reload", "dev")


@click.command(cls=OnPackage)
@click.argument("words", nargs=-1, metavar="A.npy B.npy | PATH INPUT...")
@click.option(
    "--against", metavar="OTHER", help="a package, a URL, a command line with {input} in it, or a .jsonl of answers"
)
@click.option("--atol", type=click.FloatRange(0), default=1e-6, metavar="NUMBER", help="absolute tolerance [1e-6]")
@click.option("--rtol", type=click.FloatRange(0), default=1e-5, metavar="NUMBER", help="relative tolerance [1e-5]")
@click.option("--any-dtype", is_flag=True, help="treat float32 and float64 as equal")
@click.option("--lenient", is_flag=True, help="accept a single value without its key, and a number as an array of one")
@click.option("--field", default="", metavar="NAME", help="the form field for files, if a package does not name one")
@click.option("--against-dialect", default="", metavar="TEXT", help="the dialect of OTHER")
@click.option("--against-python", default="", metavar="TEXT", help="the interpreter of OTHER")
@click.option(
    "--json", "as_json", is_flag=True, help="print JSON: an object for two files, else a list of one for each input"
)
@lambda function: setting_options(function, (*OWN, *of_groups(HTTP, ACCESS, RECORDING)), (), PER_INPUT)
def check(words: tuple[str, ...], against: str | None, arguments: tuple[str, ...], **given: Any) -> None:
    """Compare two saved results, or a package with another one stage by stage.

    The stages are the decoded input, preprocess, the raw output and the final answer. Panglot sees the stages
    of packages that it runs, and of servers with --dev. Otherwise it compares only the final answers. Keys, shapes and
    types must be the same. Numbers may differ by atol + rtol * |right|, whole numbers by atol. The exit code is 1 if
    something differs.
    """
    from panglot.tools.check.compare import Tolerance

    tolerance = Tolerance(given.pop("atol"), given.pop("rtol"), not given.pop("any_dtype"), given.pop("lenient"))
    own = {name: given.pop(name) for name in ("field", "against_dialect", "against_python", "as_json")}
    if against is None:
        sys.exit(_files(words, tolerance, own["as_json"]))
    if not words:
        raise StartError("no package to check", fix="panglot check PATH INPUT... --against OTHER")
    sys.exit(_sides(words, against, arguments, tolerance, own, given))


def _files(words: tuple[str, ...], tolerance: Tolerance, as_json: bool) -> int:
    from panglot.tools import arrays
    from panglot.tools.check import report
    from panglot.tools.check.compare import compare, flat

    if len(words) != 2 or not all(word.endswith(".npy") for word in words):
        fix = "panglot check A.npy B.npy, or panglot check PATH INPUT... --against OTHER"
        raise StartError("there are not two .npy files, and nothing to check against", fix=fix)
    left, right = (arrays.read(Path(word)) for word in words)
    if not left and not right:
        raise StartError(f"{words[0]} and {words[1]} hold nothing to compare")
    verdicts = compare(dict(flat(left)), dict(flat(right)), tolerance)
    if as_json:
        rows = [vars(entry) for entry in verdicts]
        click.echo(json.dumps({"agree": not any(row["differs"] for row in rows), "keys": rows}, indent=2))
    else:
        report.show_keys(printing.console(), verdicts)
    return 1 if any(verdict.differs for verdict in verdicts) else 0


def _sides(
    words: tuple[str, ...], against: str, arguments: tuple[str, ...], tolerance: Tolerance, own: Any, given: Any
) -> int:
    from panglot.logs import lines
    from panglot.settings.variables import unknown
    from panglot.tools.check import report
    from panglot.tools.run.inputs import gather

    right_given = {**given, "dialect": own["against_dialect"] or None}
    if own["against_python"]:
        right_given["python"] = own["against_python"]
    inputs = gather(words[1:])
    left = _where(words[0], given, arguments, own["field"])
    if isinstance(left, tuple) and not right_given["python"]:
        # The interpreter of the left side, also one of panglot.toml or a variable: a command line on the right uses it.
        right_given["python"] = left[1].python
    pairs = ((words[0], left), (against, _other(against, inputs, right_given, arguments, own["field"])))
    warn(unknown(os.environ, all_settings(), {}))
    lines.configure("human", "critical")
    outcomes: list[Compared] = []
    console = printing.console()

    def note(outcome: Compared) -> None:
        outcomes.append(outcome)
        if not own["as_json"]:
            report.show_input(console, outcome)

    asyncio.run(_check(pairs, inputs, tolerance, note, own["field"]))
    if own["as_json"]:
        click.echo(json.dumps([_row(outcome) for outcome in outcomes], indent=2))
    else:
        report.show_summary(console, outcomes)
    return 1 if any(outcome.first or outcome.problem for outcome in outcomes) else 0


def _other(word: str, inputs: list[Input], given: dict[str, Any], arguments: tuple[str, ...], field: str) -> Where:
    from panglot.tools.check.recorded import LINES, PastAnswers

    if word.endswith(LINES):
        return PastAnswers(word, [entry.name for entry in inputs])
    return _where(word, given, arguments, field)


def _where(word: str, given: dict[str, Any], arguments: tuple[str, ...], field: str) -> Where:
    from panglot.inputs.addresses import is_address
    from panglot.tools.check.sides import INPUT, Command
    from panglot.tools.running_server import RunningServer

    if is_address(word):
        return RunningServer(word, str(given.get("dialect") or ""), field)
    if INPUT in word:
        return Command(word, str(given.get("python") or ""))
    try:
        package, resolved = resolve_package(word, given, arguments)
    except StartError as error:
        if word.endswith(".py"):
            error.fix += f"; a script of another kind is run by a command line: '{word} {INPUT}'"
        raise
    return package, resolved.settings


async def _check(pairs: Any, inputs: Any, tolerance: Tolerance, report: Any, field: str) -> None:
    from panglot.tools.check.sides import opened
    from panglot.tools.check.stagewise import check as compare

    (left_name, left), (right_name, right) = pairs
    async with opened(left_name, left, field) as left_side, opened(right_name, right, field) as right_side:
        await compare(left_side, right_side, inputs, tolerance, report)


def _row(outcome: Compared) -> dict[str, Any]:
    stages = {
        stage.name: {"differs": stage.differs, "note": stage.note, "keys": [vars(entry) for entry in stage.verdicts]}
        for stage in outcome.stages
    }
    return {"input": outcome.name, "first": outcome.first, "problem": outcome.problem, "stages": stages}
