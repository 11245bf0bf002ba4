"""Each fuzz target keeps its promise on its corpus, and on some inputs made of its words."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.run import TARGETS

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus(target: str) -> None:
    module = importlib.import_module(f"fuzz.{target}")
    files = sorted((CORPUS / getattr(module, "CORPUS", target)).iterdir())
    assert files
    with module.checking() as check:
        for file in files:
            try:
                check(file.read_bytes())
            except Exception as error:
                error.add_note(f"the input is {file}")
                raise


@pytest.mark.parametrize("target", TARGETS)
def test_inputs_made_of_its_words(target: str) -> None:
    module = importlib.import_module(f"fuzz.{target}")
    pieces = st.sampled_from(module.WORDS) | st.binary(max_size=4)

    with module.checking() as check:

        @settings(max_examples=60, deadline=None)
        @given(st.lists(pieces, max_size=24).map(b"".join))
        def try_out(data: bytes) -> None:
            check(data)

        try_out()
