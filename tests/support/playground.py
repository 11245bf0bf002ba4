"""What a person does on the playground, in a browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.browser import Browser

DONE = "Number(document.querySelector('.result').dataset.done ?? 0)"
LANGUAGES = ("curl", "Python", "panglot.Client", "JavaScript")


def visit(browser: Browser, url: str) -> None:
    browser.complaints.clear()
    browser.open("about:blank")
    browser.open(url)
    browser.wait("!!document.querySelector('form.request')", 30)


def run(browser: Browser) -> str:
    """Run, and what is shown then."""
    before = browser.run(DONE)
    browser.click("form.request .primary")
    browser.wait(f"{DONE} > {before}", 30)
    return str(browser.run("document.querySelector('.result').innerText"))


def status(browser: Browser) -> str:
    return str(browser.run("document.querySelector('.facts .verdict').innerText"))


def put(browser: Browser, selector: str, value: object) -> None:
    """Write a value into a field in place of the one it has."""
    where, text = json.dumps(selector), json.dumps(value if isinstance(value, str) else json.dumps(value))
    browser.run(f"(() => {{ const one = document.querySelector({where}); one.value = ''; one.focus(); }})()")
    browser.call("Input.insertText", text=json.loads(text))


def press(browser: Browser, selector: str, words: str) -> None:
    """Click the one of these elements that says so."""
    browser.run(f"[...document.querySelectorAll('{selector}')].find((one) => one.textContent === '{words}').click()")


def choose_route(browser: Browser, ending: str) -> None:
    """Choose the route whose path ends so."""
    browser.run(
        "(() => { const routes = document.querySelector('.chooser select');"
        f"routes.value = [...routes.options].find((option) => option.text.endsWith('{ending}')).value;"
        "routes.dispatchEvent(new Event('change')); })()"
    )


def code(browser: Browser, language: str) -> str:
    """The code of the last request."""
    press(browser, ".code-of [role=tab]", language)
    return str(browser.run("document.querySelector('.snippet pre').textContent"))


def languages(browser: Browser) -> list[str]:
    """In which languages the code of the last request is."""
    found: list[str] = browser.run(
        "[...document.querySelectorAll('.code-of [role=tab]')].map((one) => one.textContent)"
    )
    return found


def run_as_pasted(
    browser: Browser, folder: Path, expected: object, only: tuple[str, ...] = LANGUAGES,
    python: str = sys.executable, token: str = "",
) -> None:  # fmt: skip
    """Run the code of the last request in each language, as it stands, beside the files it names.

    What is expected is a text in what it prints, or a value, in the writing of JSON or of Python; or the name of a file
    that it writes, with its bytes.
    """
    shown = [name for name in languages(browser) if name in only]
    assert shown, "there is some code"
    for language in shown:
        text = code(browser, language)
        programs = {"curl": ["bash", "-c"], "JavaScript": ["node", "--input-type=module", "-e"]}
        program = programs.get(language, [python, "-c"])
        if shutil.which(program[0]) is None:
            continue
        done = subprocess.run(
            [*program, text], cwd=folder, env={**os.environ, "PANGLOT_TOKEN": token},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if isinstance(expected, Path):
            assert done.returncode == 0, (language, text, done.stderr)
            written = folder / expected.name
            assert written.read_bytes() == expected.read_bytes(), (language, text)
            written.unlink()
            continue
        forms = (
            [expected] if isinstance(expected, str) else [json.dumps(expected, separators=(",", ":")), repr(expected)]
        )
        assert any(form in done.stdout for form in forms), (language, text, done.stdout, done.stderr)
