"""Every path that a platform and Panglot both have, and who answers there: whoever adds a route sees what it covers.

Panglot has the neutral routes, and at the root of a server with plain scripts that chat or embed those of OpenAI.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from panglot import dialects
from panglot.dialects.plain import openai
from panglot.serving import planning
from panglot.web.app import ROUTES
from panglot.web.path_template import is_template, template
from support.server import PACKAGES, ROOT, serving

EXAMPLES = {"plain": "digits", "megflow": "megflow/digits"}
"""The folders of examples that are not called like their dialect."""
BY_ACCEPT = {("GET", "/")}
"""The platform answers its clients, and Panglot the browsers, which accept HTML."""
OURS = {("POST", "/login"), ("POST", "/logout"), ("POST", "/reload")}
"""Panglot answers: a route that is free from its first segment on gives way to a fixed path."""
OVERLAPS = {
    "azureml": BY_ACCEPT,
    # The platform's own document, which its tools read.
    "cog": BY_ACCEPT | {("GET", "/openapi.json")},
    "hfendpoint": BY_ACCEPT,
    "paieas": OURS,
    "tiinfer": BY_ACCEPT,
    "truss": BY_ACCEPT,
}
OPENAI = (
    *(("POST", path) for path in (*openai.CHAT, *openai.EMBED)),
    *(("GET", path) for path in (openai.LIST, openai.OF_MODEL)),
)
WITH_OPENAI = {
    "tiinfer": {("GET", "/v1/models")},
    "truss": {
        *(("POST", f"/v1/{name}") for name in ("chat/completions", "completions", "embeddings")),
        ("GET", "/v1/models/any"),
    },
}
"""The default model's dialect answers, except where a truss has no such method: see below."""


def test_every_overlap_is_known() -> None:
    assert overlaps_with([(method, page.path) for page in ROUTES for method in page.methods]) == OVERLAPS


def test_every_overlap_with_the_routes_of_openai_is_known() -> None:
    assert overlaps_with(OPENAI) == WITH_OPENAI


CHAT, WORDS = "/v1/chat/completions", {"messages": [{"role": "user", "content": "one two"}]}
TRUSS, PLAIN = "two one", "one two "
ANSWERS = {
    ("truss_openai", "truss_openai"): (TRUSS, {}, None),
    ("truss_openai", "chat"): (PLAIN, None, "chat"),
    ("truss_echo", "truss_echo"): (PLAIN, {}, None),
    ("truss_health", "truss_health"): (PLAIN, {}, None),
    ("truss_echo", "chat"): (PLAIN, None, "chat"),
}
"""By the truss and the default of a server that has a plain chat too: who chats, and what is said of a model."""


@pytest.mark.parametrize(("truss", "default"), ANSWERS)
def test_of_a_truss_and_a_plain_chat_the_default_answers(truss: str, default: str) -> None:
    said, about, named = ANSWERS[truss, default]
    with serving(truss, str(PACKAGES / "chat"), "--default", default) as server:
        answer = server.client.post(CHAT, json={"model": "chat", **WORDS})
        assert answer.json()["choices"][0]["message"]["content"] == said
        shown = server.client.get("/v1/models/chat")
        assert shown.status_code == 200
        if about is not None:
            assert shown.json() == about
        assert shown.json().get("id") == named
        assert [model["id"] for model in server.client.get("/v1/models").json()["data"]] == ["chat"]
        if (truss, default) == ("truss_echo", "chat"):
            refused = server.client.post(CHAT, json={"model": truss, **WORDS})
            assert refused.status_code == 404
            assert "model 'truss_echo' does not answer at this path" in refused.text
        for name, content in (("chat", PLAIN), *([(truss, TRUSS)] if truss == "truss_openai" else [])):
            answer = server.client.post(f"/models/{name}{CHAT}", json={"model": name, **WORDS})
            assert answer.json()["choices"][0]["message"]["content"] == content


def overlaps_with(neutral: Iterable[tuple[str, str]]) -> dict[str, set[tuple[str, str]]]:
    """The routes that a dialect has too, by dialect; free segments are filled."""
    filled = [(method, path_of(path)) for method, path in neutral]
    overlaps = {}
    for name in dialects.known():
        native = native_routes(name)
        shared = {
            (method, path)
            for method, path in filled
            if any(method == own and covers(route, path) for own, route in native)
        }
        if shared:
            overlaps[name] = shared
    return overlaps


def native_routes(dialect: str) -> set[tuple[str, str]]:
    package, resolved = planning.package_at(ROOT / "examples" / EXAMPLES.get(dialect, dialect), {}, {})
    contract = dialects.contract(package, resolved.settings)
    return {(method, route.path) for route in (*contract.routes, *contract.pages) for method in route.methods}


def path_of(route: str) -> str:
    """A path that a route of Panglot has."""
    return template(route).fill() if is_template(route) else route


def covers(route: str, path: str) -> bool:
    return template(route).match(path.encode()) is not None if is_template(route) else route == path
