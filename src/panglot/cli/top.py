"""`panglot top`."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from panglot.errors import StartError
from panglot.terminal import printing

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

    URL is http://127.0.0.1:8080 unless given; with /models/NAME behind it the figures are those of one model. The
    token is that in PANGLOT_TOKEN. Ends with q or Ctrl-C.
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
    """Draw the figures anew each second until q or Ctrl-C. A server that goes away is waited for."""
    from rich.live import Live

    from panglot.tools import top as figures

    console = printing.console()
    shown = figures.screen(figures.read(server), url, *console.size, keys=True)
    with _keys(), Live(shown, console=console, screen=True, auto_refresh=False) as view:
        while not _is_ended(EVERY):
            try:
                shown = figures.screen(figures.read(server), url, *console.size, keys=True)
            except StartError as error:
                shown = figures.lost(str(error), url)
            view.update(shown, refresh=True)


@contextlib.contextmanager
def _keys() -> Iterator[None]:
    """Have keys come one by one, without being shown; where the input is a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _is_ended(seconds: float) -> bool:
    """Wait; whether a key that ends the command was pressed meanwhile."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if not sys.stdin.isatty():
            time.sleep(left)
        elif select.select([sys.stdin], [], [], left)[0]:
            # Not by the buffer of the text file, which may hold keys that `select` does not see.
            keys = os.read(sys.stdin.fileno(), 64)
            if not keys or any(key in keys for key in ENDING):
                return True
    return False
