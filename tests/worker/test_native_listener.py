"""The reader of native output and the threads beside it: no text is lost between them, and none comes late."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from panglot_worker.dialects.cog.events import LogEvents
from panglot_worker.scripts.native_output import NativeOutput


class Pipe:
    """A source whose text is there as soon as `ready` is set."""

    name = "stdout"

    def __init__(self) -> None:
        self.asked, self.ready = threading.Event(), threading.Event()
        self.texts: list[str | None] = ["late", None]

    def take(self) -> str | None:
        self.asked.set()
        self.ready.wait()
        return self.texts.pop(0)


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
