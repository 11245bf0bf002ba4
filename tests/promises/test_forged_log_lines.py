"""No text of a client or a script makes a line of the human log that could pass for one of the server's own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support.server import Server, serving

FORGED = "23:59:59 worker 0 was killed by SIGSEGV"
OWN = re.compile(r"\d\d:\d\d:\d\d [^ ]")


@pytest.mark.parametrize("how", ["raise", "refuse", "print", "class", "die"])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x85", "\u2028"])
def test_a_newline_forges_nothing(how: str, end: str, words: Server) -> None:
    mark = len(words.lines)
    words.predict({"how": how, "words": f"tea{end}{FORGED}{end}\n{FORGED}"})
    words.wait_ready()
    if how != "refuse":
        words.wait_log("23:59:59", after=mark)
    nothing_is_forged(words)


def nothing_is_forged(words: Server) -> None:
    for line in words.lines:
        assert OWN.match(line) or line.startswith(" " * 9), line
        assert not line.startswith(FORGED[:12])


@pytest.fixture(scope="module")
def words() -> Iterator[Server]:
    with serving("edge_words", "--restart-delay", "0.05s", "--restart-delay-max", "0.1s") as server:
        yield server
    nothing_is_forged(server)
