"""The playground of a typed script: a field for every parameter, made of the hints."""

from __future__ import annotations

from pathlib import Path

from support.browser import browsing
from support.server import serving

SCRIPT = """
from dataclasses import dataclass
from typing import Literal, Optional

@dataclass
class Box:
    x: int = 1

def predict(text: str, times: int = 2, mode: Literal["fast", "good"] = "good", box: Optional[Box] = None) -> list:
    return [text * times, mode, box and box.x]
"""
UPLOADS = """
from typing import Literal
from panglot import File

def predict(file: File, boxes: list[list[int]] = [], size: Literal[1, 2] = 2, loud: bool = True) -> list:
    return [file.name, boxes, size, loud]
"""
NAMES = (
    "[...document.querySelectorAll('form.request .field .label')].map(one => one.textContent.trim().split(/\\W/)[0])"
)
DONE = "Number(document.querySelector('.result').dataset.done ?? 0)"


def test_every_parameter_has_a_field_and_the_example_runs(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path) as server, browsing() as browser:
        browser.open(server.url)
        browser.wait("!!document.querySelector('form.request')", 30)
        assert browser.run(NAMES) == ["text", "times", "mode", "box"]
        before = browser.run(DONE)
        browser.run("document.querySelector('form.request').requestSubmit()")
        browser.wait(f"{DONE} > {before}", 30)
        assert "texttext" in browser.run("document.querySelector('.result').textContent")
        assert browser.complaints == []


def test_a_form_begins_with_values_of_every_kind(tmp_path: Path) -> None:
    """Lists, choices and switches are texts in a form, and no texts in its fields; any file may be given."""
    (tmp_path / "model.py").write_text(UPLOADS)
    (tmp_path / "some.bin").write_bytes(b"12345")
    with serving(tmp_path) as server, browsing() as browser:
        browser.open(server.url)
        browser.wait("!!document.querySelector('form.request')", 30)
        assert browser.run("document.querySelector('.request .json textarea').value") == "[]"
        assert browser.run("document.querySelector('.request input[type=file]').accept") == ""
        assert "Camera" in browser.run("document.querySelector('.request .drop').innerText")
        browser.choose_file(".request input[type=file]", tmp_path / "some.bin")
        browser.wait("document.querySelectorAll('.request .file').length === 1")
        browser.click("form.request .primary")
        browser.wait("!!document.querySelector('.facts')", 30)
        shown = browser.run("document.querySelector('.result').textContent")
        assert '"some.bin", [], 2, true' in shown or '"some.bin"[]2true' in shown, shown
