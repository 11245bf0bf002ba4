"""Lines that threads print at the same time are whole lines, in every dialect; so is what a thread left unfinished."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from support.graph_command import Command
from support.server import ROOT, serving, wait_until

LINES = 200
PRINTS = """
import sys, threading

def chatter(name, count):
    for number in range(count):
        stream = sys.stderr if number % 3 == 0 else sys.stdout
        print("<" + name, number, "x" * (number % 50), "end>", sep="|", file=stream, flush=number % 7 == 0)
    print("<" + name, "rest", sep="|", end="")

def all_at_once(count):
    threads = [threading.Thread(target=chatter, args=("t%d" % place, count)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
PLAIN = (
    PRINTS
    + """
def predict(request):
    all_at_once(request)
    return "done"
"""
)
GRAPH = """
main = "g"
[[graphs]]
name = "g"
connections = [{ cap = 1, ports = ["t0:out", "sink:inp"] }]
nodes = [
    { name = "t0", ty = "Chatter" }, { name = "t1", ty = "Chatter" }, { name = "t2", ty = "Chatter" },
    { name = "t3", ty = "Chatter" }, { name = "t4", ty = "Chatter" }, { name = "t5", ty = "Chatter" },
    { name = "t6", ty = "Chatter" }, { name = "t7", ty = "Chatter" }, { name = "sink", ty = "NoopConsumer" },
]
"""
NODES = (
    PRINTS
    + """
from megflow import register

@register(outputs=["out"])
class Chatter:
    def __init__(self, name, args):
        self.name = name
    def exec(self):
        chatter(self.name, 200)
"""
)


def check(text: str, lines: int = LINES) -> None:
    """Every line of every thread is there, whole, once, and in its thread's order."""
    found = [line[line.index("<") :] for line in text.splitlines() if "<t" in line]
    whole = [re.fullmatch(r"<t(\d)\|(\d+)\|(x*)\|end>", line) for line in found]
    rests = Counter(line for line, match in zip(found, whole, strict=True) if match is None)
    assert rests == Counter({f"<t{place}|rest": 1 for place in range(8)})
    for place in range(8):
        numbers = [int(match[2]) for match in whole if match is not None and match[1] == str(place)]
        assert numbers == list(range(lines))
    assert all(len(match[3]) == int(match[2]) % 50 for match in whole if match is not None)


def test_threads_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PLAIN)
    with serving(tmp_path, "--log-rate", "100000000") as server:
        assert server.client.post("/predict", json=LINES).status_code == 200
        wait_until(lambda: server.log.count("|rest") == 8, 20, lambda: server.log[-500:])
        check(server.log)


def test_nodes_of_a_graph(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "app.toml").write_text(GRAPH)
    (folder / "nodes.py").write_text(NODES)
    with Command("-p", "app", cwd=tmp_path) as command:
        assert command.end() == 0, command.text
    check(command.text)


ALONE = """
import sys
sys.path.insert(0, {source!r})
from panglot_worker.scripts import whole_lines
whole_lines.install()
{body}
whole_lines.finish()
import os
os._exit(0)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('print("a", end=""); print("b", end="", flush=True); print("c")', "abc\n"),
        ('print("no newline", end="")', "no newline\n"),
        # Incomplete and flushed, then another thread: each on a line of its own.
        (
            """
            import threading
            print("loading", end="", flush=True)
            thread = threading.Thread(target=print, args=("other",))
            thread.start(); thread.join()
            print("ready")
            """,
            "loading\nother\nready\n",
        ),
        # A fork prints its own and nothing twice.
        (
            """
            import os, threading
            gate = threading.Event()
            def other():
                print("of a thread", end="")
                gate.wait()
            thread = threading.Thread(target=other)
            thread.start()
            import time; time.sleep(0.2)
            child = os.fork()
            if child == 0:
                print("child")
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(child, 0)
            gate.set(); thread.join()
            """,
            "child\nof a thread\n",
        ),
        # A script that takes the buffer for itself.
        ('import io; sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8"); print("mine")', "mine\n"),
        ('sys.stdout.buffer.write(b"bytes\\n"); sys.stdout.write("text\\n")', "bytes\ntext\n"),
        ('sys.stdout.writelines(["x\\n", "y"]); sys.stdout.reconfigure(errors="replace"); print()', "x\ny\n"),
        ('sys.stdout = sys.__stdout__; print("put back")', "put back\n"),
    ],
)
def test_what_scripts_do_with_their_output(body: str, expected: str) -> None:
    text = ALONE.format(source=str(ROOT / "src"), body=textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, "-u", "-W", "ignore", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (done.stdout, done.returncode) == (expected, 0)
