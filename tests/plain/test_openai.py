"""OpenAI's own client, against scripts with `chat` and `embed`."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from support.server import PACKAGES, Server, panglot, serving, wait_until

TOKEN = "a-token-of-some-length"
ASYNC = """
import asyncio


async def chat(messages, max_tokens=10):
    for word in messages[-1]["content"].split()[:max_tokens]:
        await asyncio.sleep(0.001)
        yield word + " "


async def embed(texts):
    await asyncio.sleep(0)
    return [[float(len(text))] for text in texts]


def count_tokens(text):
    return len(text)
"""


def client_of(server: Server, api_key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=api_key, max_retries=0, timeout=30)


def said(text: str) -> list[Any]:
    return [{"role": "system", "content": "You are a parrot."}, {"role": "user", "content": text}]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("chat") as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with client_of(server) as made:
        yield made


def ask(client: openai.OpenAI, text: str, **options: Any) -> Any:
    return client.chat.completions.create(model="chat", messages=said(text), **options)


def test_a_chat(client: openai.OpenAI) -> None:
    answer = ask(client, "one two")
    assert answer.choices[0].message.content == "one two "
    assert (answer.choices[0].finish_reason, answer.model, answer.object) == ("stop", "chat", "chat.completion")
    counts = answer.usage
    assert (counts.prompt_tokens, counts.completion_tokens, counts.total_tokens) == (6, 2, 8)


def test_a_streamed_chat(client: openai.OpenAI) -> None:
    parts = list(ask(client, "one two three", stream=True, stream_options={"include_usage": True}))
    assert parts[0].choices[0].delta.role == "assistant"
    assert [part.choices[0].delta.content for part in parts[1:4]] == ["one ", "two ", "three "]
    assert [part.choices[0].finish_reason for part in parts[:5]] == [None, None, None, None, "stop"]
    assert (parts[5].choices, parts[5].usage.completion_tokens) == ([], 3)
    assert len({part.id for part in parts}) == 1
    assert all(part.usage is None for part in ask(client, "one", stream=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("stop", "left"),
    [
        ("three", "one two "),
        (["o t", "x"], "one tw"),
        (["never"], "one two three four "),
        ("four five", "one two three four "),
    ],
)
def test_stop_ends_the_answer_where_it_stands(client: openai.OpenAI, stop: Any, left: str, stream: bool) -> None:
    answer = ask(client, "one two three four", stop=stop, stream=stream)
    if stream:
        assert "".join(part.choices[0].delta.content or "" for part in answer) == left
    else:
        assert answer.choices[0].message.content == left


def test_options_reach_the_script(client: openai.OpenAI) -> None:
    answer = ask(client, "options", temperature=0.5, max_tokens=7, seed=3, stop="never", user="u")
    assert answer.choices[0].message.content == "[('max_tokens', 7), ('seed', 3), ('temperature', 0.5)]"


def test_what_else_a_script_may_tell(client: openai.OpenAI) -> None:
    cut = ask(client, "long")
    assert (cut.choices[0].finish_reason, cut.usage.total_tokens) == ("length", 14)
    called = ask(client, "tool").choices[0]
    assert (called.finish_reason, called.message.tool_calls[0].function.name) == ("tool_calls", "f")
    streamed = [part.choices[0] for part in ask(client, "tool", stream=True)]
    assert streamed[1].delta.tool_calls[0].function.name == "f"
    assert streamed[-1].finish_reason == "tool_calls"


def test_completions(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="chat", prompt=["one two", "three"])
    assert [choice.text for choice in answer.choices] == ["one two ", "three "]
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3
    parts = list(client.completions.create(model="chat", prompt="one two", stream=True))
    assert "".join(part.choices[0].text for part in parts) == "one two "
    assert parts[-1].choices[0].finish_reason == "stop"


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["chat"]
    assert client.models.retrieve("chat").owned_by == "panglot"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("other")
    assert caught.value.code == "model_not_found"


def test_embeddings_of_one_text_and_of_many(client: openai.OpenAI) -> None:
    one = client.embeddings.create(model="chat", input="abc")
    assert (one.data[0].embedding, one.usage.prompt_tokens) == ([3.0, 0.5], 1)
    many = client.embeddings.create(model="chat", input=["x" * n for n in range(1, 501)], encoding_format="float")
    assert [entry.embedding for entry in many.data] == [[float(n), 0.5] for n in range(1, 501)]
    assert [entry.index for entry in many.data] == list(range(500))
    assert many.usage.total_tokens == 500
    most, _ = client.embeddings.create(model="chat", input="calls").data[0].embedding
    assert most <= 32


def test_embeddings_of_many_requests_share_calls(client: openai.OpenAI) -> None:
    def number(n: int) -> Any:
        return client.embeddings.create(model="chat", input=["x" * n, "y"]).data[0].embedding[0]

    _, before = client.embeddings.create(model="chat", input="calls").data[0].embedding
    with ThreadPoolExecutor(16) as many:
        assert list(many.map(number, range(1, 65))) == [float(n) for n in range(1, 65)]
    _, after = client.embeddings.create(model="chat", input="calls").data[0].embedding
    assert after - before <= 64


def test_a_bad_text_costs_other_requests_nothing(client: openai.OpenAI) -> None:
    def embed(text: str) -> str:
        with contextlib.suppress(openai.InternalServerError):
            return str(client.embeddings.create(model="chat", input=text).data[0].index)
        return "failed"

    with ThreadPoolExecutor(8) as many:
        answers = list(many.map(embed, ["good", "bad", "fine", "well"] * 6))
    assert answers == ["0", "failed", "0", "0"] * 6


@pytest.mark.parametrize(
    ("given", "status", "code", "param"),
    [
        ({"model": "other"}, 404, "model_not_found", "model"),
        ({"messages": []}, 400, "invalid_value", "messages"),
        ({"messages": [{"content": "x"}]}, 400, "invalid_value", "messages[0]"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, "invalid_value", "messages[0].content"),
        ({"n": 2}, 400, "invalid_value", "n"),
        ({"stop": [1]}, 400, "invalid_value", "stop"),
        ({"messages": said("refuse")}, 422, "impolite", None),
        ({"messages": said("refuse"), "stream": True}, 422, "impolite", None),
        ({"messages": said("break")}, 500, "script_error", None),
    ],
)
def test_errors_have_their_form(
    client: openai.OpenAI, given: dict[str, Any], status: int, code: str, param: str | None
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**{"model": "chat", "messages": said("x"), **given})
    assert (caught.value.status_code, caught.value.code, caught.value.param) == (status, code, param)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [[1, 2]]}, "input"),
        ({"input": "x", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "x", "dimensions": 3}, "dimensions"),
        ({"input": ["x"] * 2049}, "input"),
    ],
)
def test_embeddings_that_cannot_be(server: Server, given: dict[str, Any], param: str) -> None:
    answer = server.client.post("/v1/embeddings", json={"model": "chat", **given})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_body_that_is_no_object(server: Server) -> None:
    for content in (b"[]", b"{", b""):
        answer = server.client.post("/v1/chat/completions", content=content)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_stream_that_fails_tells_so(client: openai.OpenAI) -> None:
    parts = iter(ask(client, "one half", stream=True))
    assert [next(parts).choices[0].delta.content for _ in range(2)] == ["", "one "]
    with pytest.raises(openai.APIError, match="the script failed on this request"):
        next(parts)


def test_a_cancelled_stream_ends_the_script(client: openai.OpenAI) -> None:
    before = int(ask(client, "closed").choices[0].message.content)
    stream = ask(client, "endless", stream=True)
    assert next(iter(stream)).choices[0].delta.role == "assistant"
    stream.close()
    wait_until(lambda: int(ask(client, "closed").choices[0].message.content) > before)


def test_a_client_that_leaves_ends_an_answer_in_one_piece_too(server: Server, client: openai.OpenAI) -> None:
    before = int(ask(client, "closed").choices[0].message.content)

    def has_left() -> bool:
        with pytest.raises(httpx.ReadTimeout):
            server.client.post("/v1/chat/completions", json={"messages": said("endless")}, timeout=0.5)
        return int(ask(client, "closed").choices[0].message.content) > before

    # On a busy machine a client may leave before the script has its request.
    wait_until(has_left)


def test_functions_that_are_awaited(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(ASYNC)
    with serving(tmp_path, env={"PANGLOT_TOKEN": TOKEN}, ready=False) as server, client_of(server, TOKEN) as client:
        server.wait_log("is ready on")
        name = tmp_path.name
        answer = client.chat.completions.create(model=name, messages=said("one two three"), max_tokens=2, stop="three")
        assert (answer.choices[0].message.content, answer.usage and answer.usage.completion_tokens) == ("one two ", 8)
        parts = client.chat.completions.create(model=name, messages=said("one two"), stream=True)
        assert "".join(part.choices[0].delta.content or "" for part in parts) == "one two "
        assert client.embeddings.create(model=name, input=["a", "bc"]).data[1].embedding == [2.0]
        with pytest.raises(openai.AuthenticationError):
            client_of(server, "wrong").models.list()
        with pytest.raises(openai.AuthenticationError):
            client_of(server, "wrong").embeddings.create(model=name, input="a")


def test_they_are_beside_predict_and_documented(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def predict(item):\n    return item\n\ndef chat(messages):\n    return 'Hello.'\n\ndef embed(x):\n    pass\n"
    )
    shown = panglot("inspect", str(tmp_path)).stdout
    assert "defines chat, which OpenAI's clients can call" in shown
    assert "/v1/embeddings" not in shown
    with serving(tmp_path) as server:
        assert server.predict(1).json() == 1
        paths = server.client.get("/openapi.json").json()["paths"]
        body = paths["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"]
        assert server.client.post("/v1/chat/completions", json=body["example"]).json()["choices"][0]["message"] == {
            "role": "assistant", "content": "Hello.", "refusal": None,
        }  # fmt: skip


def test_one_of_several_models() -> None:
    with serving("function", f"parrot={PACKAGES / 'chat'}") as server:
        base = f"{server.url}/models/parrot/v1"
        with openai.OpenAI(base_url=base, api_key="none", max_retries=0) as client:
            assert [model.id for model in client.models.list()] == ["parrot"]
            answer = client.chat.completions.create(model="parrot", messages=said("one"))
            assert (answer.choices[0].message.content, answer.model) == ("one ", "parrot")
            with pytest.raises(openai.NotFoundError):
                client.chat.completions.create(model="chat", messages=said("one"))
        # Of the models that have them, the root's routes lead to the one that is named, or the only one.
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            assert [model.id for model in client.models.list()] == ["parrot"]
            assert client.models.retrieve("parrot").owned_by == "panglot"
        assert server.client.post("/v1/chat/completions", json={"messages": said("one")}).json()["model"] == "parrot"


@pytest.mark.parametrize("default", [True, False])
def test_at_the_root_the_field_model_chooses_of_several(tmp_path: Path, default: bool) -> None:
    for name, package in (("first", "chat"), ("second", "chat"), ("function", "function")):
        shutil.copytree(PACKAGES / package, tmp_path / name)
    options = ("--default", "first") if default else ()
    with (
        serving(Path(f"--models={tmp_path}"), *options) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
    ):
        assert {model.id for model in client.models.list()} == {"first", "second"}
        for name in ("first", "second"):
            assert client.models.retrieve(name).id == name
            answer = client.chat.completions.create(model=name, messages=said("one"))
            assert (answer.model, answer.choices[0].message.content) == (name, "one ")
            parts = client.chat.completions.create(model=name, messages=said("one two"), stream=True)
            assert {part.model for part in parts} == {name}
            assert client.embeddings.create(model=name, input="abc").model == name
        for name in ("function", "nobody"):
            with pytest.raises(openai.NotFoundError) as refused:
                client.chat.completions.create(model=name, messages=said("one"))
            assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
            with pytest.raises(openai.NotFoundError):
                client.models.retrieve(name)
        unnamed = server.client.post("/v1/chat/completions", json={"messages": said("one")})
        assert (unnamed.status_code, unnamed.json().get("model")) == ((200, "first") if default else (404, None))
        assert client.with_options(base_url=f"{server.url}/models/second/v1").models.list().data[0].id == "second"
