"""OpenAI's client asks a truss with OpenAI methods; clients of the hosted platform send their token as Api-Key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from support.server import Server, serving

TOKEN = "a-key-of-the-tests"
QUESTION = [{"role": "user", "content": "one two three"}]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("truss_openai", env={"PANGLOT_TOKEN": TOKEN}) as running:
        yield running


@pytest.fixture(
    params=["/v1", "/production/sync/v1", "/environments/production/sync/v1", "/deployment/abc/sync/v1"],
)
def client(server: Server, request: pytest.FixtureRequest) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url + request.param, api_key=TOKEN, max_retries=0) as made:
        yield made


@pytest.mark.document("truss.28", "truss.30")
def test_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="m", messages=QUESTION)  # type: ignore[arg-type]
    assert answer.choices[0].message.content == "three two one"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 6


@pytest.mark.document("truss.28", "truss.30", "truss.22")
def test_chat_in_parts(client: openai.OpenAI) -> None:
    parts = client.chat.completions.create(model="m", messages=QUESTION, stream=True)  # type: ignore[arg-type]
    assert [part.choices[0].delta.content for part in parts] == ["three ", "two ", "one "]


@pytest.mark.document("truss.28", "truss.30")
def test_completions_and_embeddings(client: openai.OpenAI) -> None:
    assert client.completions.create(model="m", prompt="abc").choices[0].text == "cba"
    found = client.embeddings.create(model="m", input=["a", "abc"], encoding_format="float")
    assert [entry.embedding for entry in found.data] == [[1.0], [3.0]]


def test_errors_are_those_of_the_client(server: Server) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=TOKEN, max_retries=0) as client:
        with pytest.raises(openai.InternalServerError) as failed:
            client.chat.completions.create(model="m", messages=[])
        assert failed.value.response.json() == {"error": "Internal Server Error (in model/chainlet)."}
        with pytest.raises(openai.NotFoundError) as missing:
            client.responses.create(model="m", input="x")
        assert missing.value.response.json() == {"error": "`responses` must only be called if model has it."}
    wrong = openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0)
    with wrong as client, pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model="m", messages=QUESTION)  # type: ignore[arg-type]


@pytest.mark.document("truss.29")
@pytest.mark.parametrize("path", ["/production/predict", "/development/predict", "/environments/staging/predict"])
def test_the_token_of_the_hosted_platform(server: Server, path: str) -> None:
    def status(given: str) -> int:
        return httpx.post(server.url + path, json={"a": 1}, headers={"Authorization": given}).status_code

    assert [status(given) for given in (f"Api-Key {TOKEN}", f"Bearer {TOKEN}")] == [200, 200]
    assert [status(given) for given in ("Api-Key wrong", "Api-Key", TOKEN, "")] == [401, 401, 401, 401]


RESPONDS = """
class Model:
    def load(self):
        pass

    def predict(self, request):
        return request

    def responses(self, request):
        text = {"type": "output_text", "text": request["input"].upper(), "annotations": []}
        said = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
        return {"id": "r1", "object": "response", "model": request["model"], "output": [said]}
"""


@pytest.mark.document("truss.43", "truss.30")
@pytest.mark.parametrize("base", ["/v1", "/environments/staging/sync/v1"])
def test_responses(tmp_path: Path, base: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("model_name: responds\n")
    (tmp_path / "model" / "model.py").write_text(RESPONDS)
    with (
        serving(tmp_path, env={"PANGLOT_TOKEN": TOKEN}) as server,
        openai.OpenAI(base_url=server.url + base, api_key=TOKEN, max_retries=0) as client,
    ):
        assert client.responses.create(model="m", input="hello").output_text == "HELLO"


@pytest.mark.document("truss.42")
def test_the_request_id_of_the_platform_comes_back(server: Server) -> None:
    headers = {"Authorization": f"Api-Key {TOKEN}", "X-Baseten-Request-Id": "abc-1"}
    answer = httpx.post(f"{server.url}/predict", json={}, headers=headers)
    assert answer.headers["x-baseten-request-id"] == answer.headers["x-request-id"] == "abc-1"
