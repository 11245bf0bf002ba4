"""The status page in a real browser: live, shared between tabs, closed by tabs that nobody sees."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.browser import Browser, browsing
from support.playground import press, run, visit
from support.ports import free_port
from support.server import Server, serving, wait_until

ROWS = "document.querySelectorAll('tr[data-id]').length"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", "--dev", "--workers", "2") as server:
        yield server


@pytest.fixture
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        browser.resize(1280, 900)
        yield browser


def good(server: Server, name: str = "") -> None:
    headers = {"x-request-id": name} if name else {}
    assert server.predict({"text": "a fox", "labels": ["fox"], "options": None}, headers=headers).status_code == 200


def watching(server: Server) -> int:
    return int(server.client.get("/status.json").json()["watching"])


def see(browser: Browser, visible: bool) -> None:
    """Show or hide the tab, as far as its page can tell."""
    state = "visible" if visible else "hidden"
    browser.run(f"Object.defineProperty(document, 'visibilityState', {{ value: '{state}', configurable: true }})")
    browser.run("document.dispatchEvent(new Event('visibilitychange'))")


def test_what_happens_is_shown_while_it_happens(server: Server, browser: Browser) -> None:
    browser.open(server.url + "/status")
    browser.wait("document.querySelectorAll('.workers tbody tr').length === 2")
    wait_until(lambda: watching(server) == 1)
    good(server, "the-good-one")
    server.predict({"text": "fail", "labels": [], "options": None}, headers={"x-request-id": "the-bad-one"})
    server.predict({"labels": None}, headers={"x-request-id": "the-refused-one"})
    browser.wait(f"{ROWS} === 3")
    ids = browser.run("[...document.querySelectorAll('tr[data-id]')].map((one) => one.dataset.id)")
    assert ids == ["the-refused-one", "the-bad-one", "the-good-one"]
    browser.open(server.url + "/status")
    for _ in range(2):
        browser.wait(f"{ROWS} > 0")
        uptime = browser.run("document.querySelector('.figures dd').innerText")
        browser.wait(f"document.querySelector('.figures dd').innerText !== '{uptime}'")
    assert browser.run(ROWS) == 3, "none comes twice"
    browser.wait("document.querySelector('.errors').innerText.includes('RuntimeError')")
    places = "document.querySelector('.errors').compareDocumentPosition(document.querySelector('.requests'))"
    assert browser.run(f"({places} & Node.DOCUMENT_POSITION_FOLLOWING) > 0"), "errors above requests"
    browser.wait("document.querySelector('.chart path').getAttribute('d').startsWith('M')")
    browser.run("document.querySelector('tr[data-id=the-bad-one] button').click()")
    browser.wait("!!document.querySelector('.detail:not([hidden]) .traceback')")
    shown = browser.run("document.querySelector('.detail:not([hidden])').innerText")
    assert "inference" in shown
    assert "the-bad-one" in shown
    assert "RuntimeError: <b>asked</b> to fail" in shown
    assert browser.complaints == []


def test_a_failure_is_shown_once_and_a_stop_is_none(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import time\n\ndef predict(kind: str = 'endless'):\n    if kind == 'raise':\n        raise ValueError('no')\n"
        "    return endless()\n\ndef endless():\n    while True:\n        time.sleep(0.05)\n        yield 'more'\n"
    )
    with serving(tmp_path) as server:
        visit(browser, server.url)
        browser.click("form.request .primary")
        browser.wait("document.querySelector('.result').innerText.includes('moremore')")
        press(browser, ".runbar button", "Stop")
        browser.wait("document.querySelector('.tries .verdict')?.innerText === 'stopped'")
        server.predict({"kind": "raise"})
        browser.open(server.url + "/status")
        browser.wait("document.querySelectorAll('.errors tbody tr').length > 0")
        rows = browser.run("[...document.querySelectorAll('.errors tbody tr')].map((one) => one.innerText)")
        assert len(rows) == 1
        assert "the script failed" in rows[0]
        assert browser.run("document.querySelectorAll('.figures dd')[3].innerText") == "1"


def test_a_request_of_the_playground_leads_to_its_log_lines(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def predict(name: str = 'fox'):\n    print('looked at', name)\n    return name\n"
    )
    with serving(tmp_path) as server:
        visit(browser, server.url)
        run(browser)
        browser.click(".facts a")
        browser.wait("!!document.querySelector('.detail:not([hidden]) .log')", 30)
        assert "looked at fox" in browser.run("document.querySelector('.detail:not([hidden])').innerText")
        assert browser.run("document.activeElement.closest('tr').dataset.id === location.hash.slice(1)")


SMI = """#!/bin/sh
for process in $(pgrep python); do echo "$process, 1234"; done
"""


COLUMNS = (
    "[...document.querySelectorAll('.workers {}')].filter((one) => one.checkVisibility()).map((one) => one.innerText)"
)


def test_several_fronts_and_gpu_memory(browser: Browser, tmp_path: Path) -> None:
    """Each front has its row and each group of failures one; any request is opened, whichever front answered it."""
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with serving("documented_json", "--dev", "--workers", "2", "--fronts", "2", env=env) as server:
        for number in range(6):
            body = {"text": "fail", "labels": [], "options": None}
            server.new_client().post("/predict", json=body, headers={"x-request-id": f"bad-{number}"})
        browser.open(server.url + "/status")
        browser.wait(f"{ROWS} === 6", 30)
        # A front that takes half a second to tell of itself is left out for a second.
        browser.wait("document.querySelectorAll('.fronts tbody tr').length === 2", 30)
        browser.wait("document.querySelector('.workers').innerText.includes('1.3 GB')", 30)
        place = browser.run(COLUMNS.format("th")).index("GPU")
        cells = [browser.run(COLUMNS.format(f"tbody tr:nth-child({row}) td"))[place] for row in (1, 2)]
        assert cells == ["1.3 GB", "1.3 GB"]
        browser.wait("document.querySelectorAll('.errors tbody tr').length === 1")
        browser.wait("document.querySelector('.errors td.number').innerText === '6'")
        for number in range(6):
            browser.click(f"tr[data-id=bad-{number}] button")
        browser.wait("document.querySelectorAll('.detail:not([hidden]) .traceback').length === 6")


def test_bars_of_all_rows_are_on_one_scale(server: Server, browser: Browser) -> None:
    browser.open(server.url + "/status")
    for number in range(5):
        good(server, f"scaled-{number}")
    browser.wait("!!document.querySelector('tr[data-id=scaled-4] .bar i')")
    widths = "[...row.querySelectorAll('.bar i')].reduce((sum, piece) => sum + parseFloat(piece.style.width), 0)"
    found = browser.run(
        f"[...document.querySelectorAll('tr[data-id]')].map((row) => [row.children[4].innerText, {widths}])"
    )
    longest = max(width for _, width in found)
    assert 95 <= longest <= 100.5
    assert min(width for _, width in found) < longest


def test_a_death_is_told_with_its_obituary(browser: Browser) -> None:
    with serving("documented_json") as server:
        browser.open(server.url + "/status")
        browser.wait("document.querySelectorAll('.workers tbody tr').length === 1")
        assert "GPU" not in browser.run(COLUMNS.format("th")), "where there is none"
        worker = server.workers()[0]
        worker.send_signal(signal.SIGKILL)
        browser.wait("document.querySelector('.restarts').innerText.includes('SIGKILL')", 20)
        browser.wait("document.querySelectorAll('.workers tbody .ready').length === 1", 20)
        assert str(worker.pid) not in browser.run("document.querySelector('.workers').innerText")


def test_numbers_that_change_move_nothing(server: Server, browser: Browser) -> None:
    browser.open(server.url + "/status")
    browser.wait("document.querySelectorAll('.workers tbody tr').length === 2")
    browser.run(
        "window.moved = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) "
        "if (!entry.sources.every((one) => one.node?.closest?.('.requests, .errors, .two'))) "
        "window.moved += entry.value; }).observe({ type: 'layout-shift' })"
    )
    before = browser.run("document.querySelector('.figures').innerText")
    for _ in range(30):
        good(server)
    browser.wait(f"document.querySelector('.figures').innerText !== {before!r}")
    assert browser.run("window.moved") < 0.001, "a share of what can be seen; less than a pixel is rounding"


def test_ten_tabs_share_a_stream_and_leave_room_to_run(server: Server, browser: Browser) -> None:
    """Browsers open six connections to a host."""
    wait_until(lambda: watching(server) == 0, 20)
    browser.open(server.url + "/status")
    browser.wait("document.querySelectorAll('.workers tbody tr').length === 2")
    for _ in range(9):
        with browser.tab():
            browser.open(server.url + "/status")
            browser.wait("document.querySelectorAll('.workers tbody tr').length === 2", 30)
            see(browser, True)
    wait_until(lambda: watching(server) == 1)
    with browser.tab():
        browser.open(server.url)
        browser.wait("!!document.querySelector('form.request')", 30)
        browser.click("form.request .primary")
        browser.wait("!!document.querySelector('.facts')", 30)
        assert "200" in browser.run("document.querySelector('.facts').innerText")


def test_a_tab_that_nobody_sees_has_no_connection(server: Server, browser: Browser) -> None:
    wait_until(lambda: watching(server) == 0, 20)
    browser.open(server.url + "/status")
    browser.wait("document.querySelectorAll('.workers tbody tr').length === 2")
    wait_until(lambda: watching(server) == 1)
    see(browser, False)
    wait_until(lambda: watching(server) == 0)
    good(server, "while-hidden")
    see(browser, True)
    browser.wait("!!document.querySelector('tr[data-id=while-hidden]')")


def test_a_server_that_comes_back_is_heard_again(browser: Browser) -> None:
    # Not a port of the kernel's choice: while nobody listens, the browser that tries again could be given it.
    port = ("--port", str(free_port()))
    with serving("documented_json", *port) as server:
        browser.open(server.url + "/status")
        browser.wait("document.querySelectorAll('.workers tbody tr').length === 1")
    browser.wait("document.body.innerText.includes('The server cannot be heard')", 20)
    with serving("documented_json", *port):
        browser.wait("!document.body.classList.contains('stale')", 30)


def test_the_model_is_loaded_anew(server: Server, browser: Browser) -> None:
    before = {worker.pid for worker in server.workers()}
    browser.open(server.url + "/status")
    browser.click(".headline button")
    browser.wait("document.querySelector('.headline button').innerText.includes('Loading anew')")
    wait_until(lambda: len(server.workers()) == 2 and not before & {worker.pid for worker in server.workers()}, 30)


@pytest.mark.quiet
def test_fifty_who_look_cost_next_to_nothing(server: Server) -> None:
    """Each second is put together and written down once. The bound is three times what is promised."""
    clients = [server.new_client() for _ in range(50)]
    streams = [client.send(client.build_request("GET", "/status/events"), stream=True) for client in clients]
    readers = [stream.iter_raw() for stream in streams]
    for reader in readers:
        next(reader)
    process = psutil.Process(server.process.pid)
    before = sum(process.cpu_times()[:2])
    for _ in range(5):
        for reader in readers:
            next(reader)
    used = sum(process.cpu_times()[:2]) - before
    for stream, client in zip(streams, clients, strict=True):
        stream.close()
        client.close()
    assert used / 5 < 0.09


def test_latency_has_a_gap_where_nothing_was_answered(server: Server, browser: Browser) -> None:
    browser.open(server.url + "/status")
    drawn = "[...document.querySelectorAll('.chart')][1].querySelector('path.line').getAttribute('d')"
    good(server)
    browser.wait(f"!!{drawn}")
    for _ in range(2):
        uptime = browser.run("document.querySelector('.figures dd').innerText")
        browser.wait(f"document.querySelector('.figures dd').innerText !== '{uptime}'")
    # The lowest line of the chart is 0 ms: no line leads there.
    assert " 119.0" not in browser.run(drawn)
    assert browser.complaints == []
