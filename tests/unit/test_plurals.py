"""Numbers of things in messages: 1 request, 2 requests, and never `request(s)`."""

from __future__ import annotations

import ast
import re

import pytest

from panglot.terminal.text import counted
from support.server import ROOT

HEDGED = re.compile(r"[a-z]\(s\)")
SECONDS = {" total time spent(s): ", " total time spent(s): %s"}
"""As Paddle's own log writes them."""


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 keys"), (1, "1 key"), (2, "2 keys"), (0.5, "0.5 keys"), (1_500_000, "1500000 keys")]
)
def test_counted(number: float, words: str) -> None:
    assert counted(number, "key") == words


def test_no_message_leaves_the_number_to_its_reader() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if HEDGED.search(node.value) and node.value not in SECONDS
    ]
    assert found == []
