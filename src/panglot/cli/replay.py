"""`panglot replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from panglot.errors import StartError
from panglot.terminal.text import brief


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--list", "as_list", is_flag=True, help="print a line for every pair of the recording")
@click.option("--har", type=click.Path(path_type=Path), metavar="FILE", help="write the recording as HAR")
@click.option("--json", "as_json", is_flag=True, help="with --list: a JSON object for every pair, without its bodies")
def replay(file: Path, as_list: bool, har: Path | None, as_json: bool) -> None:
    """Look into a recording."""
    from panglot.tools.record.recording import Recording

    with Recording(file) as recording:
        if har is not None:
            _write_har(recording, har)
        elif as_list:
            _list(recording, as_json)
        else:
            raise StartError("nothing to do", fix="panglot replay --list FILE, or panglot replay --har OUT FILE")
        if recording.truncated:
            click.echo(f"{file} ends in the middle of a pair: its process was killed", err=True)


def _write_har(recording: Any, path: Path) -> None:
    """Write the pairs as one document, readable by its owner alone."""
    import os

    from panglot.tools.record import har

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            output.writelines(har.lines(recording))
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None


def _list(recording: Any, as_json: bool) -> None:
    import json

    from panglot.tools.record.recording import encoded

    for pair in recording.pairs():
        if as_json:
            click.echo(json.dumps(json.loads(encoded(pair).partition(b"\n")[0])))
            continue
        request, answer = pair.request, pair.answer
        outcome = brief(pair.problem, 60) if pair.problem else f"{answer.status} {answer.content_type:.30}"
        sizes = f"{request.size:>9} ->{answer.size:>9}"
        click.echo(
            f"{pair.number:>6} {pair.at:>9.3f} s {pair.took * 1000:>9.1f} ms {sizes} "
            f"{brief(request.method, 8)} {brief(request.target, 80)} {brief(outcome, 80)}"
        )
