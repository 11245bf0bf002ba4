"""How far a request is, on the playground: a bar while the script reports it, whatever kind of script it is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.browser import Browser
from support.playground import DONE, press, visit
from support.server import serving, wait_until

SCRIPTS = {
    "function": """
import time
from panglot import progress

def predict(steps: int = 8):
    for step in range(steps):
        progress(step / steps, f"step {step + 1}")
        time.sleep(0.4)
    return {"steps": steps}
""",
    "awaited": """
import asyncio
from panglot import progress

async def predict(steps: int = 8):
    for step in range(steps):
        progress(step / steps, f"step {step + 1}")
        await asyncio.sleep(0.4)
    return {"steps": steps}
""",
    "batches": """
import time
from panglot import progress

def predict_batch(bodies):
    for step in range(8):
        progress(step / 8, f"step {step + 1}")
        time.sleep(0.4)
    return [{"steps": 8} for _ in bodies]

def example():
    return {"steps": 8}
""",
    "stream": """
import time
from panglot import progress

def predict(steps: int = 8):
    for step in range(steps):
        progress(step / steps, f"step {step + 1}")
        time.sleep(0.4)
    yield f"steps {steps}"
""",
    "words alone": """
import time
from panglot import progress

def predict(steps: int = 8):
    for step in range(steps):
        progress(text=f"step {step + 1}")
        time.sleep(0.4)
    return {"steps": steps}
""",
}
REPORTED = "document.querySelector('.result .reported')"


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_bar_while_it_runs(kind: str, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPTS[kind])
    with serving(tmp_path) as server:
        visit(browser, server.url)
        browser.click("form.request .primary")
        browser.wait(f"{REPORTED}?.innerText.includes('step')")
        if kind != "words alone":
            first = browser.wait(f"{REPORTED}.querySelector('progress').value")
            browser.wait(f"({REPORTED}?.querySelector('progress').value ?? 1) > {first}")
        browser.wait(f"{DONE} > 0", 30)
        assert "steps" in browser.run("document.querySelector('.result').innerText")
        assert browser.run(f"!{REPORTED}"), "the answer is in the place of the bar"
        assert browser.complaints == []


def test_a_stop_ends_it(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPTS["function"])
    with serving(tmp_path, "--on-leave", "interrupt") as server:
        visit(browser, server.url)
        browser.click("form.request .primary")
        browser.wait(f"!!{REPORTED}")
        press(browser, ".runbar button", "Stop")
        browser.wait(f"{DONE} > 0")
        assert "Stopped." in browser.run("document.querySelector('.result').innerText")
        assert browser.complaints == []


@pytest.mark.parametrize("fronts", ["1", "2"])
def test_progress_over_http(fronts: str, tmp_path: Path) -> None:
    """It is null for a request that nobody knows; any front tells that of another."""
    (tmp_path / "model.py").write_text(SCRIPTS["function"])
    with serving(tmp_path, "--workers", fronts, "--fronts", fronts) as server:
        for number in range(4):
            client = server.new_client()
            assert client.get("/progress/unknown").json() == {"progress": None, "text": ""}
            client.post("/predict", json={"steps": 1}, headers={"x-request-id": f"one-{number}"})
            for _ in range(3):
                other = server.new_client()
                # A front leaves out what another one takes half a second to tell.
                wait_until(lambda other=other, number=number: progress(other, number) == (0.0, "step 1"))


def progress(client: httpx.Client, number: int) -> tuple[float | None, str]:
    told = client.get(f"/progress/one-{number}").json()
    return told["progress"], told["text"]
