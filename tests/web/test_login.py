"""Logging in: the token is shown once, and a cookie is worth it afterwards, for pages of this server alone."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator

import httpx
import pytest

from panglot.web.access.sessions import LIFE, Sessions
from support.browser import browsing
from support.server import Server, serving, wait_until

TOKEN = "a secret of many letters"
RIGHT = {"authorization": f"Bearer {TOKEN}"}
BROWSER = {"accept": "text/html,*/*"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", env={"PANGLOT_TOKEN": TOKEN}) as server:
        yield server


def cookie_of(server: Server) -> str:
    answer = server.new_client().post("/login", headers=RIGHT)
    assert answer.status_code == 204
    return answer.headers["set-cookie"]


def ask(server: Server, method: str, path: str, **headers: str) -> int:
    own = {
        "cookie": cookie_of(server).partition(";")[0],
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    body = {"text": "a fox", "labels": ["fox"], "options": None} if method == "POST" else None
    return httpx.request(method, server.url + path, json=body, headers=own, timeout=30).status_code


def test_a_browser_is_shown_a_form_and_a_program_is_not(server: Server) -> None:
    shown = server.client.get("/status", headers=BROWSER)
    assert (shown.status_code, shown.headers["www-authenticate"]) == (401, "Bearer")
    assert "pages/login.js" in shown.text
    assert "documented_json" not in shown.text
    told = server.client.get("/status", headers={"accept": "application/json"})
    assert told.json()["error"]["code"] == "unauthorized"


def test_there_is_no_form_where_there_is_no_token_to_give() -> None:
    """A token for /metrics alone opens no pages: they are open already."""
    with serving("function", env={"PANGLOT_METRICS_TOKEN": "for-scraping"}) as server:
        assert server.client.get("/status", headers=BROWSER).status_code == 200
        refused = server.client.get("/metrics", headers=BROWSER)
        assert (refused.status_code, refused.headers["content-type"]) == (401, "application/json")


def test_the_cookie_is_for_this_site_and_no_script(server: Server) -> None:
    cookie = cookie_of(server)
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert f"Max-Age={LIFE}" in cookie
    assert TOKEN not in cookie
    assert server.client.post("/login", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert server.client.post("/login").status_code == 401


def test_it_opens_pages_and_lets_try(server: Server) -> None:
    for path in ("/", "/status", "/status.json", "/openapi.json", "/docs"):
        assert ask(server, "GET", path) == 200
    assert ask(server, "POST", "/predict", origin=server.url) == 200
    before = set(server.workers())
    assert ask(server, "POST", "/reload", origin=server.url) == 202
    # Another test compares the workers before and after it does something.
    wait_until(lambda: server.workers() and not before & set(server.workers()))


def test_no_page_of_another_origin_can_use_it(server: Server) -> None:
    """Another port of the same host is the same site to browsers, and another origin to us."""
    for origin in ("http://127.0.0.1:1", "http://evil.example", "null", server.url.replace("127.0.0.1", "localhost")):
        for path in ("/predict", "/reload"):
            assert ask(server, "POST", path, origin=origin) == 401, (origin, path)
    assert ask(server, "POST", "/predict") == 401, "browsers name the origin of what they post"
    for site in ("same-site", "cross-site"):
        assert ask(server, "POST", "/predict", origin=server.url, sec_fetch_site=site) in (401, 403)
        assert ask(server, "GET", "/status.json", sec_fetch_site=site) in (401, 403)


def test_a_cookie_cannot_be_made_up_or_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(b"token")
    good = sessions.begin(False).partition(";")[0].encode()

    def admits(cookie: bytes) -> bool:
        return sessions.find("GET", [(b"host", b"x"), (b"cookie", cookie)]) is not None

    assert admits(good)
    assert admits(b"a=b; " + good + b"; c=d")
    later = re.sub(rb"=(\d+)", lambda found: b"=%d" % (int(found[1]) + 9), good)
    for bad in (b"", good[:-1], later, good.replace(b".", b""), sessions.name.encode() + b"=", b"x" + good):
        assert not admits(bad), bad
    assert Sessions(b"another").find("GET", [(b"cookie", good)]) is None
    assert Sessions(b"").find("GET", [(b"cookie", good)]) is None
    monkeypatch.setattr("panglot.web.access.sessions.time.time", lambda: 4e9)
    assert not admits(good)
    assert sessions.name != Sessions(b"another").name
    assert "Secure" in sessions.begin(True)


EVIL = """<!doctype html><title>evil</title><script>
const body = JSON.stringify({ text: "a fox", labels: ["fox"], options: null });
const post = { method: "POST", credentials: "include" };
const wanted = [
  fetch("URL/predict", { ...post, mode: "no-cors", body }),
  fetch("URL/predict", { ...post, headers: { "content-type": "application/json" }, body }),
  fetch("URL/reload", { ...post, mode: "no-cors" }),
  fetch("URL/status.json", { credentials: "include" }),
];
Promise.allSettled(wanted).then((all) => { window.told = all.map((one) => one.value?.type ?? "refused"); });
</script>"""


class EvilPage(http.server.BaseHTTPRequestHandler):
    """A page of another port, which is another origin of the same site."""

    url = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(EVIL.replace("URL", self.url).encode())

    def log_message(self, *words: object) -> None:
        pass


@pytest.mark.rest("a browser")
def test_a_page_of_another_origin_in_a_browser_that_has_logged_in(server: Server) -> None:
    """Its requests are sent with the cookie, since it is the same site; none of them does or tells anything."""
    page = type("Page", (EvilPage,), {"url": server.url})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), page) as evil, browsing() as browser:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        browser.open(server.url)
        browser.wait("!!document.querySelector('#token')")
        browser.type("#token", TOKEN)
        browser.click(".login .primary")
        browser.wait("!!document.querySelector('form.request')")
        known = {"headers": RIGHT}
        before = server.client.get("/status.json", **known).json()
        browser.open(f"http://127.0.0.1:{evil.server_port}/")
        told = browser.wait("window.told")
        evil.shutdown()
        after = server.client.get("/status.json", **known).json()
    assert [kind for kind in told if kind not in ("opaque", "refused")] == []
    assert [entry["id"] for entry in after["recent"]] == [entry["id"] for entry in before["recent"]]
    assert [worker["pid"] for worker in after["workers"]] == [worker["pid"] for worker in before["workers"]]


@pytest.mark.rest("a browser")
def test_logging_in_with_a_browser(server: Server) -> None:
    """Once, on whichever page comes first; then everything works, and the token is in no address and no storage."""
    with browsing() as browser:
        browser.open(server.url + "/status")
        browser.wait("!!document.querySelector('#token')")
        browser.type("#token", "wrong")
        browser.click(".login .primary")
        browser.wait("document.body.innerText.includes('That is not the token')")
        browser.run("document.querySelector('#token').value = ''")
        browser.type("#token", TOKEN)
        browser.click(".login .primary")
        browser.wait("document.querySelectorAll('.workers td').length > 0")
        assert browser.run("document.cookie") == ""
        browser.open(server.url + "/")
        browser.wait("!!document.querySelector('form.request')")
        browser.click("form.request .primary")
        browser.wait("!!document.querySelector('.result').dataset.done")
        assert "200" in browser.run("document.querySelector('.foot').innerText")
        assert "$PANGLOT_TOKEN" in browser.run("document.querySelector('.snippet').innerText")
        assert not [url for url in browser.requested if "secret" in url]
        browser.open(server.url + "/docs")
        browser.wait("document.querySelectorAll('.opblock').length > 0")
