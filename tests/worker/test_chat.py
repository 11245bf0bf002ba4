"""What requests of OpenAI's form ask for, and where answers stop."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panglot_worker.dialects.plain.chat import reading
from panglot_worker.dialects.plain.chat.composing import Composer, Stopper, usage
from panglot_worker.errors import ClientError

WORDS = st.text(alphabet="ab ", max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "model",
    "messages",
    "prompt",
    "input",
    "stream",
    "stream_options",
    "n",
    "stop",
    "user",
    "self",
    "texts",
    "options",
    "encoding_format",
    "role",
]
BODIES = st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=6) | ANYTHING


class Model:
    def chat(self, messages: Any, temperature: float = 1.0, **options: Any) -> Any:
        return sorted({"temperature": temperature, **options})

    def embed(self, texts: list[str], **options: Any) -> Any:
        return [[1.0] for _ in texts]


@given(st.lists(WORDS, max_size=8), st.lists(WORDS.filter(bool), max_size=3))
def test_an_answer_ends_before_the_first_stop_however_it_is_cut(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    stopper = Stopper(stops)
    sent = ""
    for piece in pieces:
        sent += stopper.take(piece)
        if stopper.met:
            break
    sent += stopper.rest()
    places = [place for place in map(text.find, stops) if place >= 0]
    met_first = min(places) if places else len(text)
    assert stopper.met == bool(places)
    # Of two stops that overlap, the one that is whole first ends the answer.
    assert text.startswith(sent)
    assert not any(stop in sent for stop in stops)
    assert len(sent) >= met_first
    assert sent == text or stopper.met


@given(BODIES)
def test_whatever_is_asked_is_answered_or_refused(body: Any) -> None:
    model = Model()
    for read in (reading.chat, reading.completion):
        with contextlib.suppress(ClientError):
            asked = read(body, "m", "id", model.chat)
            assert all(isinstance(model.chat(messages, **asked.options), list) for messages in asked.chats)
    with contextlib.suppress(ClientError):
        texts = reading.embedding(body, "m", model.embed)
        assert len(model.embed(texts.texts, **texts.options)) == len(texts.texts)


def test_options_are_those_that_the_function_takes() -> None:
    def few(messages: Any, top_p: float = 1.0, stop: Any = None) -> None: ...

    body: dict[str, Any] = {
        "messages": [{"role": "user"}],
        "top_p": 0.5,
        "seed": 1,
        "stop": "x",
        "self": 1,
        "logit": None,
    }
    assert reading.options_for(few, body, set()) == {"top_p": 0.5, "stop": "x"}
    assert reading.options_for(Model().chat, body, set()) == {"top_p": 0.5, "seed": 1}


def test_what_a_script_counts_wins() -> None:
    composer = Composer(())
    composer.take({"content": "a b", "usage": {"completion_tokens": 9}})
    assert usage(["one two"], [composer], None) == {"prompt_tokens": 2, "completion_tokens": 9, "total_tokens": 11}
    assert usage(["one two"], [composer], len)["prompt_tokens"] == 7


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="chat must give texts, or dicts with content, not int"):
        Composer(()).take(3)
