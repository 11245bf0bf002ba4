"""`panglot key`."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.group()
def key() -> None:
    """Make a key for clients of a server."""


@key.command()
@click.argument("name")
@click.option("--keys", "file", default="", metavar="FILE", help="add it to this file, which a server has as --keys")
@click.option("--may", default="", metavar="WORDS", help="some of infer,jobs,metrics,pages,admin [infer,jobs]")
@click.option("--models", default="", metavar="NAMES", help="the models that it may use [all]")
@click.option("--routes", default="", metavar="PATHS", help="the paths that it may use, such as /predict,/v2/* [all]")
@click.option("--rate", type=float, metavar="N", help="requests per second [no limit]")
@click.option("--burst", type=int, metavar="N", help="requests at one moment after a pause [one second's]")
@click.option("--at-once", type=int, metavar="N", help="requests without an answer yet [no limit]")
@click.option("--expires", default="", metavar="MOMENT", help="when it ends, such as 2027-01-31T00:00:00Z [never]")
def new(name: str, file: str, **limits: object) -> None:
    """Make a key called NAME, and print its secret. Only the secret's digest is stored: it is never shown again.

    With --keys the entry is added to a file. Without, it is printed after the secret, to be pasted there.
    """
    from panglot.web.access import key_file

    secret = key_file.new_secret()
    entry = key_file.written(name, secret, _lines(limits))
    known = Path(file).read_text("utf-8") if file and Path(file).exists() else ""
    gap = "\n" if known else ""
    if known and not known.endswith("\n"):
        gap = "\n\n"
    # Raises StartError: what a server would refuse is not written.
    key_file.parse(known + gap + entry, file)
    # The file first: if it cannot be written, the secret is useless and is not shown.
    if file:
        _append(file, gap + entry)
    click.echo(secret)
    if not file:
        click.echo(f"\n{entry}", nl=False)
        return
    click.echo(f"{file} has the key '{name}' now. The line above is its secret, and is not shown again.", err=True)


def _append(file: str, text: str) -> None:
    """Add text to a file, in one write: a server may read it at any moment. Only its owner may read a new file."""
    from panglot.errors import StartError

    try:
        opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(opened, text.encode())
        finally:
            os.close(opened)
    except OSError as error:
        raise StartError(
            f"the key cannot be written: {error.strerror or error}",
            file=file,
            fix="name a file in a folder that you may write to",
        ) from None


def _lines(limits: dict[str, object]) -> list[str]:
    """The further lines of an entry."""
    lines = []
    for name, value in limits.items():
        if name in ("may", "models", "routes") and value:
            words = ", ".join(f'"{word.strip()}"' for word in str(value).split(","))
            lines.append(f"{name} = [{words}]")
        elif value not in ("", None):
            shown = int(value) if isinstance(value, float) and value.is_integer() else value
            lines.append(f"{name} = {shown}")
    return lines
