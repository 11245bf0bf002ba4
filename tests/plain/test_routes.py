"""Functions of a script with routes of their own: one worker, one queue, batches of one route each."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.server import Server, panglot, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("routes") as started:
        yield started


def test_every_route_reaches_its_own_function(server: Server) -> None:
    assert server.predict("a").json()["predicted"] == "a"
    assert server.client.post("/embed", json="abc").json()[1] == 3
    assert server.client.post("/labels", json={}).json() == ["cat", "dog"]
    assert server.client.post("/words", json="one two").text == 'data: "one"\n\ndata: "two"\n\n'
    assert server.client.post("/other", json=1).status_code == 404


def test_all_routes_share_one_worker(server: Server) -> None:
    assert server.predict("a").json()["pid"] == server.client.post("/embed", json="abc").json()[2]


def test_a_batch_holds_one_route_and_at_most_what_the_route_takes(server: Server) -> None:
    def ask(number: int) -> tuple[bool, httpx.Response]:
        embeds = number % 3 != 0
        return embeds, server.client.post("/embed" if embeds else "/predict", json="x" * (number % 7))

    with ThreadPoolExecutor(24) as many:
        answers = list(many.map(ask, range(60)))
    sizes = [answer.json()[0] for embeds, answer in answers if embeds]
    assert all(answer.status_code == 200 for _, answer in answers)
    assert max(sizes) > 1
    assert max(sizes) <= 4
    assert all("predicted" in answer.json() for embeds, answer in answers if not embeds)


def test_a_death_in_one_route_costs_the_other_nothing(server: Server) -> None:
    def ask(number: int) -> httpx.Response:
        return server.client.post("/embed", json="kill") if number == 7 else server.predict(number)

    with ThreadPoolExecutor(8) as many:
        answers = list(many.map(ask, range(16)))
    assert [answer.status_code for answer in answers] == [500 if number == 7 else 200 for number in range(16)]


def test_every_route_is_documented(server: Server) -> None:
    paths = server.client.get("/openapi.json").json()["paths"]
    embed = paths["/embed"]["post"]
    assert embed["summary"] == "Numbers for a text."
    named, bare = embed["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert named["properties"] == {"texts": {"type": "string"}}
    assert bare == {"type": "string"}
    assert "text/event-stream" in paths["/words"]["post"]["responses"]["200"]["content"]
    assert {"/predict", "/labels"} <= set(paths)


def test_requests_are_counted_by_route(server: Server) -> None:
    assert server.client.post("/labels", json={}).status_code == 200
    wait_until(lambda: server.metric("panglot_requests_total", route="/labels", status="200") >= 1)


def test_inspect_lists_them() -> None:
    shown = panglot("inspect", "tests/packages/routes").stdout
    assert all(f"POST {path}" in shown for path in ("/predict", "/embed", "/words", "/labels"))
    assert "gives embed the route /embed" in shown


def test_a_script_of_routes_alone_needs_no_predict(tmp_path: Path) -> None:
    (tmp_path / "tags.py").write_text(
        'import panglot\n\n@panglot.route("/tags")\nasync def tags(request):\n    return [request]\n\n'
        '@panglot.route("/count")\ndef count(request):\n    yield from range(request)\n'
    )
    with serving(tmp_path) as server:
        assert server.client.post("/tags", json=3).json() == [3]
        assert server.client.post("/count", json=2).text == "data: 0\n\ndata: 1\n\n"
        assert server.predict(1).status_code == 404


@pytest.mark.parametrize(
    ("script", "toml", "said"),
    [
        ('@route("/a")\ndef f(r): ...\n@route("/a")\ndef g(r): ...\n', "", "/a is the route of f already"),
        ('@route("no")\ndef f(r): ...\n', "", "'no' cannot be a route"),
        ('@route("/metrics")\ndef f(r): ...\n', "", "/metrics is a route of every package"),
        ("@route(PATH)\ndef f(r): ...\n", "", 'write @route("/f")'),
        ('@route("/f", batch=0)\ndef f(r): ...\n', "", "batch = 0"),
        ("def f(r): ...\n", '[routes]\n"/f" = 3\n', "panglot.toml:2: routes./f: expected the name of a function"),
        ("def f(r): ...\n", '[routes]\n"/f" = "h"\n', "the route /f leads to h, and there is no such function"),
        ('def predict(r): ...\n@route("/predict")\ndef f(r): ...\n', "", "/predict is the route of predict"),
        ('@route("/f")\ndef f(a, b): ...\n', "", "must take exactly one argument"),
        ('if True:\n    @route("/f")\n    def f(r): ...\ndef predict(r): ...\n', "", "was not seen when the script"),
    ],
)
def test_a_route_that_cannot_be_stops_the_start(script: str, toml: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("from panglot import route\nPATH = '/p'\n" + script)
    if toml:
        (tmp_path / "panglot.toml").write_text(toml)
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert said in done.stderr


def test_the_only_route_has_its_own_batch_size_too(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import time\nfrom panglot import route\n\n@route('/sizes', batch=3)\ndef sizes(items):\n"
        "    time.sleep(0.2)\n    return [len(items)] * len(items)\n"
    )
    with serving(tmp_path) as server, ThreadPoolExecutor(12) as many:
        sizes = list(many.map(lambda number: server.client.post("/sizes", json=number).json(), range(24)))
    assert max(sizes) == 3


def test_routes_go_through_a_row_of_pools(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from panglot import Response, request, requests, route\n\n"
        "def preprocess(item):\n    return [item, request().headers['x-a']]\n\n"
        "def predict(item):\n    return item\n\n"
        "def postprocess(item):\n    return Response([*item, request().id], status=201)\n\n"
        "@route('/heads', batch=4)\ndef heads(items):\n    return [one.headers['x-a'] for one in requests()]\n\n"
        "def embed(texts):\n    return [[float(len(text))] for text in texts]\n"
    )
    with serving(tmp_path, "--pools", "preprocess=1,postprocess=1") as server:
        answer = server.predict(1, headers={"x-a": "5", "x-request-id": "i"})
        assert (answer.status_code, answer.json()) == (201, [1, "5", "i"])
        assert server.client.post("/heads", json=1, headers={"x-a": "6"}).json() == "6"
        vectors = server.client.post("/v1/embeddings", json={"input": ["a", "bc"]}).json()["data"]
        assert [entry["embedding"] for entry in vectors] == [[1.0], [2.0]]
