"""`panglot top`."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import TYPE_CHECKING

import click

from panglot.errors import StartError
from panglot.terminal import printing
from panglot.terminal.keys import one_by_one

if TYPE_CHECKING:
    from panglot.tools.running_server import RunningServer

EVERY = 1.0
ENDING = (b"q", b"Q")


@click.command()
@click.argument("url", default="http://127.0.0.1:8080")
@click.option("--once", is_flag=True, help="print the figures once and end")
@click.option("--json", "as_json", is_flag=True, help="print them once, as one JSON object")
def top(url: str, once: bool, as_json: bool) -> None:
    """Show what the server at URL does, second by second: the figures of its status page, in a terminal.

    Without URL it is the one at http://127.0.0.1:8080. Add /models/NAME for the figures of one model. The token comes
    from PANGLOT_TOKEN. Press q or Ctrl-C to end.
    """
    from panglot.tools import top as figures

    server = figures.reached(url)
    if as_json:
        click.echo(json.dumps(figures.read(server)))
    elif once or not sys.stdout.isatty():
        console = printing.console()
        console.print(figures.screen(figures.read(server), url, console.width))
    else:
        _follow(server, url)


def _follow(server: RunningServer, url: str) -> None:
    """Draw the figures every second, until q or Ctrl-C. Where the server is gone, wait for it to come back."""
    from rich.live import Live

    from panglot.tools import top as figures

    console = printing.console()
    shown = figures.screen(figures.read(server), url, *console.size, keys=True)
    with one_by_one(), Live(shown, console=console, screen=True, auto_refresh=False) as view:
        while not _is_ended(EVERY):
            try:
                shown = figures.screen(figures.read(server), url, *console.size, keys=True)
            except StartError as error:
                shown = figures.lost(str(error), url)
            view.update(shown, refresh=True)


def _is_ended(seconds: float) -> bool:
    """Wait, and return whether a key was pressed that ends the command."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if not sys.stdin.isatty():
            time.sleep(left)
        elif select.select([sys.stdin], [], [], left)[0]:
            # Not by `sys.stdin.read`: `select` does not see keys that are already in its buffer.
            keys = os.read(sys.stdin.fileno(), 64)
            if not keys or any(key in keys for key in ENDING):
                return True
    return False
