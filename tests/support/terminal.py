"""A command in a terminal of a given size, and what is on its screen."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from support.server import ROOT

Until = str | Callable[[str], bool]
"""A pattern, or what looks at the screen and says that it is enough."""
SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]")


@dataclass(frozen=True)
class Shown:
    """What a terminal was sent, as it came; and its exit code."""

    raw: str
    code: int

    @property
    def screen(self) -> str:
        """The lines that stand at the end, without colours."""
        return screen(self.raw)


def in_terminal(
    words: Sequence[str], columns: int = 80, *, rows: int = 24, cwd: Path = ROOT, until: Until = "",
    seconds: float = 90, env: dict[str, str] | None = None, stop: int = signal.SIGINT, keys: str = "",
) -> Shown:  # fmt: skip
    """Run a command with a terminal for input and output to its end; or stop it when its screen shows `until`.

    With `keys` these are pressed, in place of a signal.
    """
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_") and key != "COLUMNS"}
    path = f"{Path(sys.executable).parent}:{kept['PATH']}"
    process = subprocess.Popen(
        list(words), cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**kept, "PATH": path, "TERM": "xterm-256color", **(env or {})},
    )  # fmt: skip
    os.close(theirs)
    end = (lambda: os.write(ours, keys.encode())) if keys else (lambda: process.send_signal(stop))
    raw = _read(ours, process, until, seconds, end)
    os.close(ours)
    return Shown(raw, process.wait(30))


def _read(ours: int, process: subprocess.Popen[bytes], until: Until, seconds: float, end: Callable[[], object]) -> str:
    found = b""
    deadline = time.monotonic() + seconds
    is_stopped = False
    # A terminal whose programs have all gone says so by an error.
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            piece = os.read(ours, 65536)
            if not piece:
                break
            found += piece
            if until and not is_stopped and _is_there(until, screen(found.decode(errors="replace"))):
                is_stopped = True
                # What it says of the last moments comes first.
                time.sleep(0.2)
                end()
    if time.monotonic() >= deadline:
        process.kill()
        raise AssertionError(f"not done within {seconds} s:\n{found.decode(errors='replace')}")
    return found.decode(errors="replace")


def _is_there(until: Until, shown: str) -> bool:
    return bool(re.search(until, shown)) if isinstance(until, str) else until(shown)


def screen(raw: str) -> str:
    """What stands on a screen without an edge after all of this was written to it, without colours."""
    return "\n".join("".join(character for _, character in line).rstrip() for line in _cells(raw))


def coloured(raw: str) -> str:
    """The same with the colours, each line beginning and ending without one."""
    lines = []
    for line in _cells(raw):
        text, now = "", ""
        for style, character in line:
            if style != now:
                text += ("\x1b[0m" if now else "") + style
                now = style
            text += character
        lines.append(text.rstrip() + ("\x1b[0m" if now else ""))
    return "\n".join(lines)


def _cells(raw: str) -> list[list[tuple[str, str]]]:
    """The lines of the screen, each character with the sequences that colour it."""
    lines: list[list[tuple[str, str]]] = [[]]
    row = column = at = 0
    style = ""
    while at < len(raw):
        found = SEQUENCE.match(raw, at)
        if found:
            at = found.end()
            number = int(found[1]) if (found[1] or "").isdecimal() else 0
            if found[2] == "A":
                row = max(0, row - (number or 1))
            elif found[2] == "H":
                # To where a further frame begins.
                row = column = 0
            elif found[2] == "K":
                lines[row][0 if number == 2 else column :] = []
            elif found[2] == "m":
                style = "" if found[1] in ("", "0") else style + found[0]
            continue
        character = raw[at]
        at += 1
        if character == "\r":
            column = 0
        elif character == "\n":
            row += 1
            if row == len(lines):
                lines.append([])
        elif character != "\x1b":
            line = lines[row]
            line.extend([("", " ")] * (column - len(line)))
            line[column : column + 1] = [(style, character)]
            column += 1
    return lines
