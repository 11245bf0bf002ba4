"""The code that the playground shows of a request runs as it is pasted, whatever the request is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import environments
from support.browser import Browser
from support.playground import choose_route, code, languages, press, put, run, run_as_pasted, status, visit
from support.server import PACKAGES, ROOT, Server, serving

TOKEN = "a secret of mine"
AWKWARD = 'it\'s "50 %" \\ done; $HOME `id`'
SCRIPT = f"""
def predict(text: str, count: int = 2, numbers: list[int] = []):
    return {{"said": [text] * count, "numbers": numbers}}


def example():
    return {{"text": {AWKWARD!r}, "count": 1, "numbers": [1]}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Two models behind a token."""
    models = f"digits={ROOT / 'examples' / 'bare'}", f"words={PACKAGES / 'documented_json'}"
    with serving(Path(models[0]), models[1], env={"PANGLOT_TOKEN": TOKEN}, ready=False) as server:
        server.client.headers["authorization"] = f"Bearer {TOKEN}"
        server.wait_ready()
        yield server


def enter(browser: Browser, address: str) -> None:
    browser.open(address)
    browser.wait("!!document.querySelector('#token, form.request')")
    if browser.run("!!document.querySelector('#token')"):
        browser.type("#token", TOKEN)
        browser.run("document.querySelector('#token').form.requestSubmit()")
        browser.wait("!!document.querySelector('form.request')", 30)


def test_one_of_several_models_with_a_token(server: Server, browser: Browser) -> None:
    enter(browser, f"{server.url}/?model=words")
    run(browser)
    assert languages(browser) == ["curl", "Python", "panglot.Client", "JavaScript"]
    run_as_pasted(browser, ROOT, "fox", token=TOKEN)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("model", "expected"), [("digits", "probabilities"), ("words", "fox")])
def test_tritonclient_with_a_token(model: str, expected: str, server: Server, browser: Browser) -> None:
    """Numbers for one model, texts for the other; the answers are printed, and not only their names."""
    enter(browser, f"{server.url}/?model={model}")
    choose_route(browser, f"/v2/models/{model}/infer")
    browser.wait("document.querySelector('.request textarea')?.value.includes('datatype')")
    assert expected in run(browser)
    assert status(browser) == "200"
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    run_as_pasted(browser, ROOT, expected, ("tritonclient",), python, TOKEN)
    run_as_pasted(browser, ROOT, expected, token=TOKEN)
    assert TOKEN not in "".join(code(browser, name) for name in ("curl", "Python", "JavaScript", "tritonclient"))


def test_awkward_texts_and_large_numbers(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path) as server:
        visit(browser, server.url)
        put(browser, ".request .json textarea", "[12345678901234567, 2]")
        assert "HOME" in run(browser)
        assert "12345678901234567" in browser.run("document.querySelector('.result').textContent")
        run_as_pasted(browser, tmp_path, [AWKWARD])
        assert "panglot.Client" in languages(browser)
        run_as_pasted(browser, tmp_path, "12345678901234567")


def test_several_files_with_awkward_names(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from panglot import File\n\ndef predict(files: list[File], title: str = 'a b'):\n"
        "    return [[file.name, len(file.bytes)] for file in files] + [title]\n"
    )
    names = ['a "quoted" name.txt', "it's; type=evil.txt"]
    with serving(tmp_path) as server:
        visit(browser, server.url)
        press(browser, ".segments button", "Form")
        put(browser, ".request input[type=text]", AWKWARD)
        for name in names:
            (tmp_path / name).write_text("12345")
            browser.drop(".request .drop", tmp_path / name, "text/plain")
        browser.wait("document.querySelectorAll('.request .file').length === 2")
        assert "evil" in run(browser)
        assert status(browser) == "200"
        run_as_pasted(browser, tmp_path, ["it's; type=evil.txt", 5])
        run_as_pasted(browser, tmp_path, [[names[0].replace('"', "%22"), 5], [names[1], 5], AWKWARD])


SOUND = """
import io
import wave

from panglot import Response


def predict(seconds: float = 0.1):
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1), wav.setsampwidth(2), wav.setframerate(8000)
        wav.writeframes(bytes(range(256)) * int(seconds * 62.5))
    return Response(file.getvalue(), content_type="audio/wav")
"""


def test_a_binary_answer_is_written_to_a_file(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOUND)
    here = tmp_path / "here"
    here.mkdir()
    with serving(tmp_path) as server:
        visit(browser, server.url)
        run(browser)
        assert browser.run("!!document.querySelector('.result audio')")
        (tmp_path / "answer.wav").write_bytes(server.predict({"seconds": 0.1}).content)
        assert languages(browser) == ["curl", "Python", "panglot.Client", "JavaScript"]
        run_as_pasted(browser, here, tmp_path / "answer.wav")


def test_a_stream(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def predict(n: int = 3):\n    for number in range(n):\n        yield f'part {number}'\n"
    )
    with serving(tmp_path) as server:
        visit(browser, server.url)
        assert "part 2" in run(browser)
        run_as_pasted(browser, tmp_path, "part 2")
