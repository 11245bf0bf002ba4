"""The page of jobs, and a job on the playground, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import Browser, browsing
from support.playground import put, run, status, visit
from support.server import Server, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("job_steps", "--workers", "1", "--on-leave", "interrupt") as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        browser.resize(1280, 900)
        yield browser


def submit(server: Server, body: dict[str, Any]) -> str:
    return str(server.predict(body, headers={"prefer": "respond-async"}).json()["id"])


def state(server: Server, job: str) -> str:
    return str(server.client.get(f"/jobs/{job}").json()["state"])


def row(job: str) -> str:
    return f"document.querySelector('tr[data-id=\"{job}\"]')"


def test_a_job_that_runs_shows_its_progress_and_is_cancelled(server: Server, browser: Browser) -> None:
    job = submit(server, {"steps": 300, "pause": 0.1})
    browser.open(server.url + "/jobs")
    browser.wait(f"!!{row(job)}?.querySelector('progress')", 30)
    assert "step" in browser.run(f"{row(job)}.innerText")
    browser.run(f"{row(job)}.querySelector('button').click()")
    wait_until(lambda: state(server, job) == "cancelled")
    browser.wait(f"{row(job)}.innerText.includes('cancelled')")
    assert browser.run(f"!{row(job)}.querySelector('button')"), "there is nothing to do with it"


def test_a_failed_job_is_found_by_its_state_and_runs_once_more(server: Server, browser: Browser) -> None:
    done = submit(server, {"a": 1})
    job = submit(server, {"raise": "<b>no</b>"})
    wait_until(lambda: state(server, job) == "failed")
    browser.open(server.url + "/jobs?state=failed")
    browser.wait(f"!!{row(job)}")
    assert browser.run(f"!{row(done)}")
    browser.run(f"{row(job)}.querySelector('button').click()")
    wait_until(lambda: server.client.get(f"/jobs/{job}").json()["ended"] is not None)
    browser.run("[...document.querySelectorAll('.segments button')].find((one) => one.innerText === 'all').click()")
    browser.wait(f"!!{row(done)}")
    assert not browser.complaints


def test_a_request_of_the_playground_runs_as_a_job_with_a_bar(server: Server, browser: Browser) -> None:
    visit(browser, server.url + "/")
    put(browser, "form.request textarea", json.dumps({"steps": 20, "pause": 0.1}))
    browser.run("document.querySelector('.as-job input').click()")
    browser.click("form.request .primary")
    browser.wait("!!document.querySelector('.result progress')", 30)
    browser.wait("!document.querySelector('form.request .primary').disabled", 30)
    assert "20" in browser.run("document.querySelector('.result').innerText")
    assert not browser.run("!!document.querySelector('.timeline')"), (
        "its result was only fetched: these are other times"
    )
    assert browser.run("document.querySelector('.facts a').getAttribute('href')").startswith("jobs/")
    put(browser, "form.request textarea", json.dumps({"b": 2}))
    assert "2" in run(browser)
    assert status(browser) == "200"
    assert not browser.complaints
