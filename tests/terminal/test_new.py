"""`panglot new` in a terminal: it asks, with arrow keys, and shows what it will write."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

from support.server import panglot
from support.terminal import screen

UP, DOWN, ENTER = "\x1b[A", "\x1b[B", "\r"


class Person:
    """Sits before a terminal: waits for what the screen shows, and presses keys."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.terminal = terminal
        self.raw = b""

    def sees(self, text: str, seconds: float = 60) -> str:
        """Wait until the screen shows a text."""
        deadline = time.monotonic() + seconds
        while text not in (shown := screen(self.raw.decode(errors="replace"))):
            assert time.monotonic() < deadline, f"'{text}' is not on the screen:\n{shown}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.raw += os.read(self.terminal, 65536)
        return shown

    def presses(self, *keys: str) -> None:
        for key in keys:
            os.write(self.terminal, key.encode())
            # An arrow is told from the key Escape by what comes with it.
            time.sleep(0.05)

    def leaves(self) -> int:
        """Read to the end; the exit code."""
        while True:
            try:
                piece = os.read(self.terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            self.raw += piece
        return self.process.wait(30)


@contextmanager
def asked(folder: Path, *words: str, rows: int = 24) -> Iterator[Person]:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    env = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "panglot", "new", *words]
    process = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**env, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Person(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_one_chooses_with_arrows_names_a_folder_and_sees_the_files_first(tmp_path: Path) -> None:
    with asked(tmp_path) as person:
        shown = person.sees("Enter to choose")
        assert "What do you want to write?" in shown
        assert "> text" in shown
        assert all(len(line) < 80 for line in shown.splitlines()), shown
        person.presses(DOWN, DOWN, DOWN, UP)
        person.sees("> chat")
        person.presses(ENTER)
        person.sees("Folder to write [my_model]")
        person.presses("greeter\n")
        shown = person.sees("Write these files?")
        assert "greeter/test_package.py  a test" in shown
        assert not (tmp_path / "greeter").exists(), "nothing is written before the answer"
        person.presses("y\n")
        assert person.leaves() == 0
    shown = screen(person.raw.decode())
    assert "panglot serve greeter" in shown
    assert shown.count("greeter/test_package.py") == 1, "the files are listed once"
    assert (tmp_path / "greeter" / "test_package.py").is_file()


def test_keys_that_come_together_all_count(tmp_path: Path) -> None:
    """As those of an arrow that is held do, and all on a slow line."""
    with asked(tmp_path) as person:
        person.sees("Enter to choose")
        person.presses(DOWN * 3 + UP)
        person.sees("> chat")
        person.presses(DOWN + ENTER)
        person.sees("Folder to write")
        person.presses("streamer\n")
        assert "send" in person.sees("Write these files?")
        person.presses("y\n")
        assert person.leaves() == 0
    assert "yield" in (tmp_path / "streamer" / "model.py").read_text()


def test_a_list_longer_than_the_screen_scrolls_and_goes_round(tmp_path: Path) -> None:
    with asked(tmp_path, rows=12) as person:
        shown = person.sees("1 of ")
        assert len(shown.strip().splitlines()) <= 12
        person.presses(UP)
        shown = person.sees("> truss")
        assert len(shown.strip().splitlines()) <= 12
        person.presses("q")
        assert person.leaves() == 130
    assert os.listdir(tmp_path) == []


def test_who_says_no_has_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with asked(tmp_path, "text") as person:
        person.sees("Folder to write")
        person.presses("full\n")
        person.sees("full is there already, and is not empty. Name another.")
        person.presses("other\n")
        person.sees("Write these files?")
        person.presses("n\n")
        assert person.leaves() == 130
    assert "Nothing is written." in screen(person.raw.decode())
    assert os.listdir(tmp_path) == ["full"]


def test_interrupting_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with asked(tmp_path) as person:
        before = termios.tcgetattr(person.terminal)
        person.sees("Enter to choose")
        assert not termios.tcgetattr(person.terminal)[3] & termios.ECHO
        person.process.send_signal(signal.SIGINT)
        assert person.leaves() == 130
        assert termios.tcgetattr(person.terminal)[3] == before[3]


def test_without_a_terminal_the_choices_are_one_line() -> None:
    done = panglot("new")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "panglot new KIND DIR (fix: KIND is text, image, chat, stream, batch, sklearn, transformers," in done.stderr
    done = panglot("new", "chatt", "x")
    assert (done.returncode, "did you mean chat?" in done.stderr) == (3, True)
