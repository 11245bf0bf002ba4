"""`--inline`: the script can be stopped at a breakpoint."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import threading
import time

import httpx

from support.server import PACKAGES, ROOT


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *command: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, start_new_session=True
        )
        os.close(slave)
        self.text = ""

    def expect(self, pattern: str, seconds: float = 20) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end() :]
                return found
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        raise AssertionError(f"{pattern!r} did not appear:\n{self.text}")

    def type(self, line: str) -> None:
        os.write(self.master, line.encode() + b"\n")


def test_a_breakpoint_stops_the_script_and_the_answer_still_comes() -> None:
    terminal = Terminal(
        sys.executable, "-m", "panglot", "serve", str(PACKAGES / "breakpoint"), "--inline", "--port", "0"
    )
    port = terminal.expect(r"is ready[\s\S]*?http://127.0.0.1:(\d+)")[1]
    answers: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: answers.append(httpx.post(f"http://127.0.0.1:{port}/predict", json={"value": 41}, timeout=30))
    )
    asking.start()
    terminal.expect(r"\(Pdb\)")
    assert httpx.get(f"http://127.0.0.1:{port}/v2/health/live").status_code == 200, "the server goes on meanwhile"
    terminal.type("p 'answer is', answer")
    terminal.expect(r"\('answer is', 42\)")
    terminal.type("answer = 43")
    terminal.type("c")
    asking.join()
    assert answers[0].json() == 43
    terminal.process.terminate()
    assert terminal.process.wait(20) == 0


def test_a_failed_load_ends_inline_with_exit_code_3() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "panglot", "serve", str(PACKAGES / "broken" / "load_fails"), "--inline", "--port", "0"],
        capture_output=True, text=True, timeout=30, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "running load() failed: FileNotFoundError: weights.bin" in done.stderr
