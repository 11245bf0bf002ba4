"""The page at `/`: what it shows, and that nothing shown there can do harm."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from panglot.asking.base import About
from panglot.asking.try_line import try_line
from panglot.engine.engine import Trouble
from panglot.text import visible
from panglot.web import status_page
from panglot.web.base_url import base_url
from support.browser import browsing
from support.server import Server, serving
from support.still import StillEngine, still_front, still_model

HOSTILE = "<script>alert(1)</script>\"'&\u202e\x1b[31m\x00\ud800"
BASE = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", "--dev", "--workers", "2") as server:
        server.predict({"text": "a fox", "labels": ["fox"]}, headers={"x-request-id": "good-one"})
        server.predict({"text": "fail", "labels": []}, headers={"x-request-id": "bad-one"})
        server.predict({"labels": None}, headers={"x-request-id": "refused-one"})
        yield server


def words(text: str) -> str:
    """The page as a person reads it."""
    body = text.partition("</style>")[2]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)))


def test_shows_the_server(server: Server) -> None:
    answer = server.client.get("/")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    shown = words(answer.text)
    assert "documented_json plain dialect · served by Panglot" in shown
    assert f"{server.url}/predict" in shown
    assert """curl -H 'Content-Type: application/json' -d '{"text":"a quick brown fox\"""" in shown
    for worker in server.workers():
        assert str(worker.pid) in shown
    for link in ("docs", "openapi.json", "metrics"):
        assert f'href="{link}"' in answer.text
        assert server.client.get(f"/{link}").status_code == 200


def test_shows_recent_requests_latest_first(server: Server) -> None:
    text = server.client.get("/").text.partition("Recent requests")[2].partition("Last errors")[0]
    assert re.findall(r'class="id code" title="([^"]+)"', text) == ["refused-one", "bad-one", "good-one"]
    assert re.findall(r'class="number (\w*)">(\d{3})<', text) == [("refused", "422"), ("failed", "500"), ("", "200")]
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", text)]
    assert widths
    assert sum(widths) <= 300
    assert re.search(r'aria-label="queue [\d.]+ ms, decode [\d.]+ ms, inference [\d.]+ ms', text)


def test_shows_tracebacks_only_in_development(server: Server) -> None:
    text = server.client.get("/").text
    assert "<details>" in text
    assert "RuntimeError: &lt;b&gt;asked&lt;/b&gt; to fail" in text
    assert "model.py" in text
    with serving("documented_json") as quiet:
        quiet.predict({"text": "fail", "labels": []}, headers={"x-request-id": "bad-one"})
        text = quiet.client.get("/").text
        assert "RuntimeError" not in text
        assert "bad-one" in text
        assert "Start with --dev to see tracebacks here" in text


def test_needs_the_token(tmp_path: Path) -> None:
    with serving("documented_json", env={"PANGLOT_TOKEN": "secret"}) as server:
        assert server.client.get("/").status_code == 401
        text = server.client.get("/", headers={"authorization": "Bearer secret"}).text
        assert 'curl -H "Authorization: Bearer $PANGLOT_TOKEN"' in html.unescape(text)
        assert "secret" not in text


def test_a_strange_host_is_not_repeated() -> None:
    with serving("documented_json", "--host", "0.0.0.0", "--no-auth") as server:
        text = httpx.get(server.url, headers={"host": 'evil"><script>'}).text
        assert "evil" not in text
        assert f"{server.url}/predict" in text


def test_everything_inserted_is_harmless() -> None:
    front = still_front({"example": {"kind": "json", "value": {HOSTILE[:-1]: HOSTILE[:-1]}}}, name=HOSTILE, dev=True)
    engine = still_model(front).engine
    assert isinstance(engine, StillEngine)
    engine.troubles = [Trouble(0.0, HOSTILE, HOSTILE, f"Traceback:\n\t{HOSTILE}\n{HOSTILE}")]
    row = dict.fromkeys(("pool", "index", "pid", "served", "in_flight", "seconds"), 1)
    engine.rows = [{**row, "state": HOSTILE, "step": HOSTILE}]
    front.recent.append((0.0, HOSTILE.encode("latin-1", "replace"), HOSTILE, 200, 10, 1, (1, 2, 3, 4, 5)))
    for dev in (True, False):
        text = rendered(still_with(front, dev))
        text.encode()
        assert "<script" not in text
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;\\u202e\\x1b[31m\\x00\\ud800" in text


def still_with(front: status_page.Front, dev: bool) -> status_page.Front:
    other = still_front(still_model(front).description["api"], name=HOSTILE, dev=dev)
    still_model(other).engine, other.recent = still_model(front).engine, front.recent
    return other


def rendered(front: status_page.Front) -> str:
    return status_page.render(front, still_model(front), BASE)


@pytest.mark.parametrize("state", ["loading", "draining", "back-off"])
def test_follows_a_server_that_is_not_ready(state: str) -> None:
    text = rendered(still_front(state=state))
    assert f'<p class="state {state}">{state}</p>' in text
    assert 'http-equiv="refresh"' in text
    assert 'http-equiv="refresh"' not in rendered(still_front())


def test_a_very_long_traceback_keeps_its_end() -> None:
    front = still_front(dev=True)
    still_model(front).engine.trouble("id", "message", "Traceback\n" + "x" * 100_000 + "\nValueError: the end")
    text = rendered(front)
    assert len(text) < 60_000
    assert text.count("ValueError: the end") == 2


def test_is_right_on_a_phone_and_in_the_dark(server: Server, tmp_path: Path) -> None:
    grounds = set()
    with browsing() as browser:
        for width, phone, dark in ((1100, False, False), (1100, False, True), (390, True, False), (320, True, True)):
            browser.resize(width, 844, phone=phone, dark=dark)
            browser.open(server.url)
            assert browser.run("document.documentElement.scrollWidth") <= width
            grounds.add(browser.run("getComputedStyle(document.body).backgroundColor"))
            browser.screenshot(tmp_path / f"page-{width}-{dark}.png")
        assert len(grounds) == 2
        assert browser.complaints == []
        assert all(url.startswith((server.url, "data:")) for url in browser.requested)


def test_markup_of_a_script_does_nothing() -> None:
    with serving("documented_hostile", "--dev") as server, browsing() as browser:
        server.predict({"a": "</pre><script>window.harmed = true</script>"})
        browser.open(server.url)
        assert "ValueError: </pre><script>window.harmed = true</script>" in browser.text()
        assert browser.run("window.harmed === undefined && document.scripts.length === 0")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59.9, "59 s"), (200, "3 min 20 s"), (18_121, "5 h 2 min"), (1_051_200, "12 d 4 h")],
)
def test_durations_have_two_units(seconds: float, expected: str) -> None:
    assert status_page.duration(seconds) == expected


def test_a_bar_is_never_wider_than_its_cell() -> None:
    assert "width:100.00%" in status_page.bar(10, (0, 0, 0, 1_000_000, 0, 0))
    assert "no stage was reached" in status_page.bar(0, (0, 0, 0, 0, 0, 0))


def test_what_cannot_be_seen_is_spelt_out() -> None:
    assert visible("plain äöü 数字 🙂") == "plain äöü 数字 🙂"
    assert visible("a\u202eb\x07c\ud800d\ne", keep="\n") == "a\\u202eb\\x07c\\ud800d\ne"
    assert visible("\U000e0001") == "\\U000e0001"


def line_for(api: dict[str, Any], folder: Path) -> str:
    return try_line(BASE, About("plain", "/predict", {}, api), folder)


def test_the_line_to_copy(tmp_path: Path) -> None:
    form = {
        "example": {"kind": "form", "files": {"image": "image/png"}, "names": {"image": "b.png"}, "fields": ["top k"]}
    }
    assert line_for(form, tmp_path) == "", "a file that is not there cannot be sent"
    for name in ("a.png", "b.png"):
        (tmp_path / name).touch()
    assert "top k" not in line_for(form, tmp_path), "a field whose value nobody knows"
    form["example"]["values"] = {"top k": "3"}
    assert "b.png -F 'top k=3'" in line_for(form, tmp_path)
    sound = {"example": {"kind": "file", "type": "audio/x-wav", "name": ""}}
    (tmp_path / "sound.wav").touch()
    line = line_for(sound, tmp_path)
    assert line.startswith("curl -H 'Content-Type: audio/x-wav' --data-binary @")
    assert line.endswith(f"sound.wav {BASE}/predict")
    quoted = {"example": {"kind": "json", "value": "it's"}}
    assert """-d '"it'"'"'s"'""" in line_for(quoted, tmp_path)


def test_no_line_is_better_than_one_that_does_not_work(tmp_path: Path) -> None:
    long = {"example": {"kind": "json", "value": "x" * 999}}
    assert line_for(long, tmp_path) == ""
    (tmp_path / "request.json").write_text('"' + "x" * 999 + '"')
    assert "request.json" in line_for(long, tmp_path)
    assert line_for({}, tmp_path / "gone") == ""
    hints = {
        "type": "object",
        "properties": {"words": {"type": "array", "items": {"type": "string"}}, "top": {"default": 3}},
    }
    line = line_for({"request_schema": hints}, tmp_path / "gone")
    assert """-d '{"words":["text"],"top":3}'""" in line


def test_where_the_reader_came_from() -> None:
    socket = ("127.0.0.1", 8080)
    assert base_url("http", "model.example:8443", socket) == "http://model.example:8443"
    assert base_url("https", "[::1]:80", socket) == "https://[::1]:80"
    assert base_url("http", "a b", socket) == BASE
    assert base_url("http", "", ("::1", 1)) == "http://[::1]:1"


def test_keeps_the_last_fifty_requests(server: Server) -> None:
    for number in range(60):
        server.predict({"text": str(number), "labels": ["x"]})
    assert server.client.get("/").text.count('<td class="stages">') == 50
