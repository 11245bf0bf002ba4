"""Routes of a script's own by every method, with parameters in the path and the query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from support.browser import browsing
from support.server import PACKAGES, Server, panglot, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("own_routes") as started:
        yield started


@pytest.mark.parametrize(
    ("method", "path", "body", "answer"),
    [
        ("POST", "/predict", {"text": "a"}, "a"),
        ("GET", "/labels", None, ["cat", "dog"]),
        ("POST", "/reset", None, 1),
        ("POST", "/reset", {"what": "ever"}, 1),
        ("GET", "/notes", None, {"least": 0, "order": "newest", "tag": []}),
        (
            "GET", "/notes?least=2&order=oldest&tag=a&tag=b", None,
            {"least": 2, "order": "oldest", "tag": ["a", "b"]},
        ),
        ("GET", "/notes/1", None, {"text": "first", "stars": 3}),
        ("PUT", "/notes/2?loud=true", {"note": {"text": "two"}}, {"text": "TWO", "stars": 0}),
        ("DELETE", "/notes/2", None, None),
        ("PUT", "/echo/a%20b", {"any": ["thing"]}, ["a b", {"any": ["thing"]}]),
        ("POST", "/echo/x", 5, ["x", 5]),
    ],
)  # fmt: skip
def test_every_method_reaches_its_function(server: Server, method: str, path: str, body: Any, answer: Any) -> None:
    came = server.client.request(method, path, **({} if body is None else {"json": body}))
    assert (came.status_code, came.json()) == (200, answer)


def test_files_and_streams_are_answers_to_any_method(server: Server) -> None:
    came = server.client.get("/raw/a/b.txt")
    assert (came.text, came.headers["content-type"].partition(";")[0]) == ("a/b.txt", "text/plain")
    assert "path.txt" in came.headers["content-disposition"]
    assert server.client.get("/count/3").text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/notes/one", 422, "number must be an integer"),
        ("GET", "/notes/9", 404, "there is no such note"),
        ("GET", "/notes?leest=1", 422, "did you mean least?"),
        ("GET", "/notes?order=none", 422, "order must be"),
        ("PUT", "/notes/1", 422, "note is missing"),
        ("POST", "/notes/1", 405, "takes"),
        ("POST", "/labels", 405, "takes GET"),
        ("GET", "/nothing", 404, "there is no such path"),
    ],
)
def test_what_does_not_fit_is_said(server: Server, method: str, path: str, status: int, words: str) -> None:
    came = server.client.request(method, path)
    assert came.status_code == status
    assert words in came.json()["error"]["message"]


def test_they_are_documented(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    validate(document)
    paths = document["paths"]
    assert set(paths["/notes/{number}"]) - {"parameters"} == {"get", "put", "delete"}
    show = {one["name"]: one for one in paths["/notes/{number}"]["get"]["parameters"] if "name" in one}
    assert (show["number"]["in"], show["number"]["schema"]["type"]) == ("path", "integer")
    query = {one["name"]: one for one in paths["/notes"]["get"]["parameters"] if "name" in one}
    assert (query["least"]["schema"]["default"], query["least"]["required"]) == (0, False)
    assert query["order"]["schema"]["enum"] == ["newest", "oldest"]
    assert paths["/notes"]["get"]["summary"] == "The notes with at least so many stars."
    assert "requestBody" not in paths["/reset"]["post"]
    assert "requestBody" in paths["/notes/{number}"]["put"]


def test_they_can_be_tried(server: Server) -> None:
    with browsing() as browser:
        browser.resize(1280, 900)
        browser.open(server.url)
        browser.wait("!!document.querySelector('.chooser select')")
        browser.run("document.querySelector('details.advanced').open = true")
        routes = browser.run("[...document.querySelector('.chooser select').options].map((one) => one.textContent)")
        assert {"GET /labels", "GET /notes", "PUT /notes/{number}", "DELETE /notes/{number}"} <= set(routes)
        place = routes.index("GET /notes")
        browser.run(f"document.querySelector('.chooser select').value = {place}")
        browser.run("document.querySelector('.chooser select').dispatchEvent(new Event('change'))")
        browser.wait("document.querySelectorAll('form.request .field').length === 3")
        browser.run("document.querySelector('form.request input[type=number]').value = '4'")
        browser.click("form.request .primary")
        browser.wait("!!document.querySelector('.facts')")
        assert "4" in browser.run("document.querySelector('.result').innerText")
        assert browser.complaints == []


def test_inspect_lists_them() -> None:
    shown = panglot("inspect", str(PACKAGES / "own_routes")).stdout
    assert all(words in shown for words in ("GET /labels", "DELETE /notes/{number}", "POST /predict"))


@pytest.mark.parametrize(
    ("script", "toml", "said"),
    [
        ('@route("/a", method="GET")\ndef f(): ...\n', "", "no argument 'method' (fix: did you mean methods?"),
        ('@route("/a", methods=["FETCH"])\ndef f(): ...\n', "", "there are GET, POST, PUT, PATCH, DELETE"),
        ('@route("/a", methods=M)\ndef f(): ...\n', "", 'with methods=["GET"] for another method'),
        ('@route("/items/<int:id>")\ndef f(id): ...\n', "", 'write "/items/{id}"'),
        ('@route("/items/:id")\ndef f(id): ...\n', "", 'write "/items/{id}"'),
        ('@route("items")\ndef f(r): ...\n', "", 'write "/items"'),
        ('@route("/a/{b}/{b}")\ndef f(b): ...\n', "", "two free segments have one name"),
        ('@route("/jobs/{b}")\ndef f(b): ...\n', "", "is a route of every package"),
        ('@route("/a/{b}")\ndef f(c: int): ...\n', "", "its path has {b}, and it has no parameter of that name"),
        ('@route("/a/{b}")\ndef f(b): ...\n@route("/a/{c}")\ndef g(c): ...\n', "", "is the route of f already"),
        ("def f(r): ...\n", '[routes]\n"/f" = {function = "f", methods = 3}\n', "there are function, batch"),
    ],
)
def test_a_decorator_that_cannot_be_names_the_fix(script: str, toml: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("from panglot import route\nM = 'GET'\n" + script)
    if toml:
        (tmp_path / "panglot.toml").write_text(toml)
    done = panglot("inspect", str(tmp_path)) if "no parameter" not in said else panglot("run", str(tmp_path), "1")
    assert done.returncode == 3
    assert said in done.stderr
