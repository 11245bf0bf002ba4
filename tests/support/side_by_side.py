"""The platform's own server and Panglot side by side, and the differences that docs/dialects/tiinfer.md lists."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

from support.server import ROOT
from support.tiinfer import Heard, Served, ours, theirs


@contextlib.contextmanager
def both(
    package: str | Path, *flags: str, env: dict[str, str] | None = None, ready: bool = True
) -> Iterator[tuple[Served, Served]]:
    """The same package served by theirs and by ours."""
    with theirs(package, *flags, env=env, ready=False) as original, ours(package, *flags, env=env, ready=False) as own:
        if ready:
            own.wait_ready()
            original.wait_open()
        try:
            yield original, own
        finally:
            original.terminate()


@functools.cache
def listed() -> frozenset[str]:
    """The differences that docs/dialects/tiinfer.md lists."""
    text = (ROOT / "docs" / "dialects" / "tiinfer.md").read_text()
    section = text.partition("\n## Deliberately different")[2].partition("\n## ")[0]
    return frozenset(line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")) - {
        "what",
        "---",
    }


def differs(name: str) -> str:
    """Name the difference a test shows. Every one that is listed must be named by a test, and no other."""
    assert name in listed(), f"docs/dialects/tiinfer.md does not list {name!r}"
    return name


class Like(str):
    """Equal to every text that holds it, whatever the case."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str.lower(self) in str.lower(other)


INTERNAL = Heard(500, "inference internal error")
