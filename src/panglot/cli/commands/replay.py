"""`panglot replay`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.durations import duration
from panglot.cli.options import OnPackage, of_groups, setting_options
from panglot.errors import StartError
from panglot.settings.setting import RECORDING
from panglot.terminal.text import brief

if TYPE_CHECKING:
    from panglot.inputs.addresses import ServerAddress
    from panglot.recording.recording import Recording
    from panglot.tools.replay.answers import Rules

OWN = ("host", "port", "inline", "reload", "timeout", "log_format", "log_level", "tls_cert", "tls_key")
OWN_OPTIONS = (
    "as_list", "har", "as_json", "html", "speed", "connections", "header", "atol", "rtol", "strict_types", "mask",
    "no_default_masks", "pixel_gap", "slower",
)  # fmt: skip


@click.command(cls=OnPackage)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.argument("target", default="", metavar="[PATH_OR_URL]")
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    metavar="X",
    help="speed, relative to the recording [1]",
)
@click.option(
    "--connections",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="send as fast as N connections can, at no pace",
)
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="send this too: credentials are never recorded")
@click.option("--atol", type=click.FloatRange(0), default=1e-6, metavar="NUMBER", help="absolute tolerance [1e-6]")
@click.option("--rtol", type=click.FloatRange(0), default=1e-5, metavar="NUMBER", help="relative tolerance [1e-5]")
@click.option("--strict-types", is_flag=True, help="treat 1 and 1.0 as different")
@click.option("--mask", multiple=True, metavar="PATH", help="do not compare this place: /id, /rows[*]/when, /**/seed")
@click.option("--no-default-masks", is_flag=True, help="compare dates, UUIDs, request ids and times of creation too")
@click.option(
    "--pixel-gap",
    type=click.IntRange(0, 255),
    default=0,
    metavar="N",
    help="largest difference allowed between pixels [0]",
)
@click.option(
    "--slower", type=click.FloatRange(0), default=0.0, metavar="X", help="fail if it is X times as slow as recorded"
)
@click.option("--json", "as_json", is_flag=True, help="print everything as one JSON object; with --list, one per pair")
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="write a page with plots and the largest differences",
)
@click.option("--list", "as_list", is_flag=True, help="print a line for every request, and send nothing")
@click.option("--har", type=click.Path(path_type=Path), metavar="FILE", help="write the recording as HAR, send nothing")
@click.option("--timeout", type=duration(0.1), default=60.0, metavar="SECONDS", help="longest time for a request [60]")
@lambda function: setting_options(function, (*OWN, *of_groups(RECORDING)), ())
def replay(file: Path, target: str, arguments: tuple[str, ...], timeout: float, **given: Any) -> None:
    """Send a recording to a server, or to a package that this command serves, and compare the answers.

    Numbers are compared as by `panglot check`, images by their pixels, streams by their parts. The order of keys does
    not matter, and dates and ids are not compared. PANGLOT_TOKEN is sent as the token. The exit code is 1 if an answer
    differs or is missing.
    """
    from panglot.recording.recording import Recording

    own = {name: given.pop(name) for name in OWN_OPTIONS}
    with Recording(file) as recording:
        if own["har"] is not None:
            _write_har(recording, own["har"])
        elif own["as_list"]:
            _list(recording, own["as_json"])
        elif not target:
            raise StartError(
                "name what to send the recording to",
                fix="panglot replay FILE PATH_OR_URL, or panglot replay --list FILE",
            )
        code = 0 if not target else _replay(recording, target, arguments, timeout, own, given)
        if recording.truncated:
            click.echo(f"{file} ends in the middle of a pair: its process was killed", err=True)
    sys.exit(code)


def _replay(
    recording: Recording, target: str, arguments: tuple[str, ...], timeout: float, own: dict[str, Any], given: Any
) -> int:
    import panglot.tools.arrays  # noqa: F401  it says what to install, before a request is sent
    from panglot.tools.replay import page, report
    from panglot.tools.replay.findings import Findings
    from panglot.tools.replay.replaying import replay as replay_all
    from panglot.tools.replay.sending import ReplayPace

    rules, more = _rules(own), _headers(own["header"])
    findings = Findings(own["slower"])
    pace = ReplayPace(own["speed"], own["connections"], timeout)
    # After Ctrl-C the findings so far are shown.
    with _opened(target, given, arguments, timeout) as (address, headers), contextlib.suppress(KeyboardInterrupt):
        replay_all(recording, address, {**headers, **more}, pace, rules, findings)
    if own["as_json"]:
        click.echo(json.dumps(findings.as_dict(), indent=2))
    else:
        for line in report.lines(findings, str(recording.path), target):
            click.echo(line)
    if own["html"]:
        page.write(findings, own["html"], str(recording.path), target)
    return findings.exit_code


def _rules(own: dict[str, Any]) -> Rules:
    from panglot.recording.json_paths import JsonPath
    from panglot.tools.check.compare import Tolerance
    from panglot.tools.replay.answers import Rules

    try:
        masks = tuple(JsonPath.parse(text) for text in own["mask"])
    except ValueError as error:
        raise StartError(str(error)) from None
    tolerance = Tolerance(own["atol"], own["rtol"], own["strict_types"])
    return Rules(tolerance, masks, not own["no_default_masks"], own["pixel_gap"])


def _headers(words: tuple[str, ...]) -> dict[str, str]:
    headers = {}
    for word in words:
        name, colon, value = word.partition(":")
        if not colon or not name.strip() or any(mark in word for mark in "\r\n\0"):
            raise StartError(f"'{brief(word, 40)}' is no header", fix="such as --header 'Authorization: Bearer ...'")
        headers[name.strip()] = value.strip()
    return headers


@contextlib.contextmanager
def _opened(
    target: str, given: dict[str, Any], arguments: tuple[str, ...], timeout: float
) -> Iterator[tuple[ServerAddress, dict[str, str]]]:
    """The address of the target and the headers it needs; a package is served until this is closed."""
    from panglot.cli.commands.bench import opened_target
    from panglot.inputs.addresses import is_address
    from panglot.tools.running_server import RunningServer

    if is_address(target):
        client = RunningServer(target)
        yield client.address, client.headers()
        return
    with opened_target(target, given, arguments, "", timeout) as (aim, _):
        yield aim.client.address, aim.client.headers()


def _write_har(recording: Recording, path: Path) -> None:
    """Write the pairs as one document, readable by its owner alone."""
    from panglot.tools.record import har

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            output.writelines(har.lines(recording))
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None


def _list(recording: Recording, as_json: bool) -> None:
    from panglot.recording.recording import encoded

    for pair in recording.pairs():
        if as_json:
            click.echo(encoded(pair).partition(b"\n")[0].decode())
            continue
        request, answer = pair.request, pair.answer
        outcome = brief(pair.problem, 60) if pair.problem else f"{answer.status} {answer.content_type:.30}"
        sizes = f"{request.size:>9} ->{answer.size:>9}"
        click.echo(
            f"{pair.number:>6} {pair.at:>9.3f} s {pair.took * 1000:>9.1f} ms {sizes} "
            f"{brief(request.method, 8)} {brief(request.target, 80)} {brief(outcome, 80)}"
        )
