"""Corpus 4k: what strangers write, and scripts repeat, does no harm in the log, on the page or in headers."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser import browsing
from support.raw import post
from support.server import PACKAGES, Server, panglot, serving, wait_until
from support.wire import Wire

WAYS = ("raise", "refuse", "print", "type", "class", "return")
WORDS = {
    "HTML": "<img src=x onerror='window.harmed=1'>\"><script>window.harmed=1</script><svg/onload=window.harmed=1>",
    "CSS": "</style><style>body{display:none}</style>",
    "an ANSI escape": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\x9b31m",
    "right-to-left marks": "a\u202egnp.exe\u2066\u2069\u200f\u061c",
    "line ends": "one\r\n12:00:00 forged line\r\nSet-Cookie: a=b\u2028x\u2029y\x85z",
    "backspaces": "abc\b\b\b\x7f\x00",
    "nothing to see": "\u200b\u2060\ufeff\u00ad",
    "percent signs": "%s %d %(name)s {} {0.__class__}",
    "a lone surrogate": "\ud800",
}
HARMLESS = "\n\t"


@pytest.fixture(scope="module", params=["human", "json"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    flags = ("--dev", "--log-format", request.param, "--access-log", "1", "--restart-delay", "0.1")
    with serving("edge_words", *flags) as running:
        last_words = " ".join(list(WORDS.values())[:-1])
        assert say(running, last_words, "die") == 500
        running.wait_ready()
        for words in WORDS.values():
            for way in WAYS:
                assert say(running, words, way) in (200, 400, 422, 500), (words, way)
        assert running.predict(files={"words": ("a\u202e<b>.png", b"x")}, data={"how": "raise"}).status_code == 500
        yield running


def say(server: Server, words: str, way: str) -> int:
    body = json.dumps({"words": words, "how": way}).encode()
    return server.predict(content=body, headers={"content-type": "application/json"}).status_code


def unseen(text: str) -> list[str]:
    """Characters that show as nothing, or change how others show."""
    found = (character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    return sorted({f"U+{ord(character):04X}" for character in found if character not in HARMLESS})


def test_the_log_shows_every_character(server: Server) -> None:
    """Nothing moves the cursor, changes colours or hides: it is spelt out instead, and can still be found."""
    server.wait_log(r"gnp\.exe")
    assert unseen(server.log) == []
    assert "Logging error" not in server.log
    said = "\n".join(messages(server))
    assert unseen(said) == []
    assert "\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07" in said
    assert "\\u202egnp.exe" in said


def messages(server: Server) -> list[str]:
    """What the log says; of a log in JSON every line must be an object."""
    if not server.lines[0].startswith("{"):
        return server.lines
    lines = [json.loads(line) for line in server.lines]
    return [text for line in lines for text in (line["message"], line.get("traceback", ""))]


def test_a_load_that_fails_shows_every_character(tmp_path: Path) -> None:
    words = "".join(list(WORDS.values())[:-1])
    script = f"def load():\n    raise RuntimeError({words!r})\n\n\ndef predict(request):\n    return 1\n"
    (tmp_path / "model.py").write_text(script)
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert unseen(done.stderr) == []
    assert "\\x1b[31mred" in done.stderr


def test_the_page_is_harmless(server: Server) -> None:
    """Pages hold nothing of it; the figures they ask for hold it as text in which everything shows."""
    for path in ("/", "/status"):
        assert not re.search(r"<(img|svg|b>)|<script(?! type=\"module\" src=\"pages/)", server.client.get(path).text)
    wait_until(lambda: "RuntimeError" in server.client.get("/status.json").text)
    figures = server.client.get("/status.json")
    told = json.dumps(figures.json(), ensure_ascii=False)
    assert "Odd" in told or "RuntimeError" in told
    assert unseen(told) == []
    for entry in figures.json()["recent"][-5:]:
        assert unseen(server.client.get(f"/status/{entry['id']}").text) == []


def test_headers_cannot_be_broken_out_of(server: Server) -> None:
    """In development a header tells the last line of a traceback; a script may name its content type."""
    for words in WORDS.values():
        for way in ("raise", "type", "class"):
            with Wire(server) as client:
                client.send(post(json.dumps({"words": words, "how": way}).encode()))
                reply = client.reply()
            assert "set-cookie" not in reply.headers
            assert all(text.isprintable() and text.isascii() for text in reply.headers.values())


def test_request_ids_on_every_route(server: Server) -> None:
    for path in ("/predict", "/nowhere", "/metrics", "/v2/health/live"):
        for given, kept in (
            ("good-1", True),
            ("<script>", False),
            ("x" * 200, False),
            ("a b", False),
            ("a\x1bb", False),
        ):
            with Wire(server) as client:
                client.send(post(b"{}", f"X-Request-Id: {given}", path=path))
                reply = client.reply()
            assert (reply.headers["x-request-id"] == given) == kept
            assert "<script>" not in reply.body.decode()


def test_forwarded_headers_of_a_stranger_change_nothing(server: Server) -> None:
    forwarded = {
        "x-forwarded-host": "evil.example",
        "x-forwarded-proto": "gopher",
        "x-forwarded-for": "<script>",
        "x-forwarded-prefix": "//evil",
    }
    for path in ("/", "/docs", "/openapi.json"):
        assert "evil" not in server.client.get(path, headers=forwarded).text


@pytest.fixture(scope="module")
def oddly_named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A package whose folder is called what no folder should be called."""
    folder = tmp_path_factory.mktemp("odd") / "<img src=x onerror='window.harmed=1'>\u202e\x1b[31m&amp;\"'"
    shutil.copytree(PACKAGES / "function", folder)
    with serving(Path(folder)) as running:
        yield running


def test_a_hostile_name_of_a_package(oddly_named: Server) -> None:
    assert unseen(oddly_named.log) == []
    for path in ("/", "/docs"):
        text = oddly_named.client.get(path).text
        assert unseen(text) == []
        assert "<img" not in text
    assert oddly_named.client.get("/openapi.json").json()["info"]["title"]
    assert oddly_named.predict(1).json() == {"got": 1}


@pytest.mark.rest("a browser")
def test_in_a_browser(server: Server, oddly_named: Server) -> None:
    """Nothing of it runs, on the page or in the documents."""
    with browsing() as browser:
        for running in (server, oddly_named):
            browser.open(running.url)
            browser.wait("!!document.querySelector('form.request')")
            assert browser.run("window.harmed === undefined && document.scripts.length === 1")
            browser.open(running.url + "/status")
            browser.wait("document.querySelectorAll('.workers td').length > 0")
            assert browser.run(
                "window.harmed === undefined && document.querySelectorAll('main img, main svg svg').length === 0"
            )
            browser.open(running.url + "/docs")
            browser.wait("document.querySelectorAll('.opblock').length > 0")
            assert browser.run("window.harmed === undefined")
