"""The reader of native output and the threads beside it: no text is lost between them, and none comes late."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from panglot_worker.dialects.cog.events import LogEvents
from panglot_worker.scripts import whole_lines
from panglot_worker.scripts.native_output import PATIENCE, NativeOutput, Source


class Pipe:
    """A source whose text is there as soon as `ready` is set."""

    name = "stdout"

    def __init__(self) -> None:
        self.asked, self.ready = threading.Event(), threading.Event()

    def texts(self) -> Iterator[str]:
        self.asked.set()
        self.ready.wait()
        yield "late"


def test_a_listener_that_leaves_has_all_that_was_read_before() -> None:
    pipe: Any = Pipe()
    native, heard = NativeOutput([pipe]), []
    native.listen(lambda name, text: heard.append(text))
    reader = threading.Thread(target=native.drain)
    reader.start()
    pipe.asked.wait()
    leaving = threading.Thread(target=native.listen, args=(None,))
    leaving.start()
    # It cannot leave yet; if it does, the text finds nobody.
    leaving.join(0.2)
    pipe.ready.set()
    reader.join()
    leaving.join()
    assert heard == ["late"]


def test_the_end_of_a_call_waits_for_what_another_thread_reads() -> None:
    pipe: Any = Pipe()
    native, heard = NativeOutput([pipe]), []
    native.listen(lambda name, text: heard.append(text))
    at_end: list[list[str]] = []
    reader = threading.Thread(target=native.drain)
    reader.start()
    pipe.asked.wait()

    def settle() -> None:
        native.settle()
        at_end.append(heard.copy())

    ending = threading.Thread(target=settle)
    ending.start()
    # Longer than a print waits.
    ending.join(2 * PATIENCE)
    pipe.ready.set()
    reader.join()
    ending.join()
    assert at_end[0][:1] == ["late"]


def test_what_is_printed_while_all_is_read_is_left_for_the_next_time() -> None:
    """Otherwise a program that prints without end would hold up everyone who reads."""
    log_read, number = os.pipe()
    read, write = os.pipe()
    opened = open(number, "w")  # noqa: SIM115  the source writes to it until its end
    stream = whole_lines.WholeLines(opened, whole_lines.Output())
    source = Source("stdout", stream, number, read, write)
    native, heard = NativeOutput([source]), []

    def listen(name: str, text: str) -> None:
        heard.append(text)
        assert len(heard) < 5
        os.write(number, b"more\n")

    native.listen(listen)
    os.write(number, b"one\n")
    native.drain()
    assert heard == ["one\n"]
    native.drain()
    assert heard == ["one\n", "more\n"]
    assert os.read(log_read, 100) == b"one\nmore\n"
    native.listen(None)
    for each in (log_read, read, source.log):
        os.close(each)
    opened.close()


@pytest.fixture
def switching_often() -> Any:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching_often")
def test_no_text_of_several_threads_is_lost() -> None:
    told: list[str] = []
    events = LogEvents(lambda event: told.append(event[1]["data"]))

    def write() -> None:
        for _ in range(200_000):
            events.heard("stdout", "ab")
            events.heard("stdout", "\n")

    threads = [threading.Thread(target=write, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    events.end()
    assert len("".join(told)) == 3 * 200_000 * 3


def test_nothing_is_told_after_the_end() -> None:
    """The answer has ended by then, and a thread that still reads would tell more of it."""
    told: list[str] = []
    events = LogEvents(lambda event: told.append(event[1]["data"]))
    events.heard("stdout", "whole\nhalf")
    events.end()
    events.heard("stdout", "late\n")
    assert told == ["whole\n", "half"]
