"""Whatever is in a graph file: it is read, or refused with GraphError; never anything else, and never slowly."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from panglot_worker.graphs import checking, picture, positions, reading, template
from panglot_worker.graphs.errors import GraphError
from support.server import ROOT

TYPES = checking.Types({}, set(), False)
FILES = sorted((ROOT / "tests" / "packages").glob("megflow_*/*.toml")) + sorted(ROOT.glob("examples/megflow/*/*.toml"))


def load(text: str) -> None:
    try:
        config = reading.read_text(text, file="graph.toml")
        checking.check(config, TYPES)
        picture.describe(config, TYPES)
        picture.svg(config, TYPES)
    except GraphError:
        pass


@settings(max_examples=150, deadline=None)
@given(some.text(alphabet="{}%#-=\"'`[]()|~&!<>.,: \nabfinorsxe0123", max_size=80))
def test_templates_of_anything(text: str) -> None:
    positions.lines(text)
    try:
        template.render(text, {"a": 1, "b": [1, 2], "x": {"a": "s"}})
    except GraphError:
        pass


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_with_pieces_missing_doubled_or_swapped(path: Path) -> None:
    text = path.read_text()
    choose = random.Random(7)
    for _ in range(150):
        start, end = sorted(choose.randrange(len(text)) for _ in range(2))
        end = min(end, start + choose.randrange(1, 40))
        kind = choose.randrange(3)
        piece = text[start:end]
        changed = {0: "", 1: piece * 2, 2: piece[::-1]}[kind]
        load(text[:start] + changed + text[end:])


def test_what_nests_deeply_or_is_long() -> None:
    for text in ("{{ " + "(" * 3000 + "1", "{% if true %}" * 3000, "a = " + "[" * 3000, "{{ " + "!" * 3000 + "true }}"):
        with pytest.raises(GraphError):
            reading.read_text(text)
