"""The playground at `/`, in a real browser: forms, answers by their kind, streams, failures, code, links, history."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from support.browser import Browser
from support.playground import DONE, choose_route, press, put, run, run_as_pasted, status, visit
from support.server import ROOT, Server, serving

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", "--dev") as server:
        yield server


@pytest.fixture(scope="module")
def shaping() -> Iterator[Server]:
    with serving("pages_shapes") as server:
        yield server


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture with a name that no picture should have."""
    path = tmp_path_factory.mktemp("picture") / "<img src=x onerror='window.harmed=1'>.png"
    Image.new("RGB", (40, 30), (90, 120, 200)).save(path)
    return path


# Every dialect

DIALECTS = {
    "plain": ("digits", "seven.png", "three.png", "digit", "3"),
    "evals": ("evals", "seven.png", "three.png", "", "three"),
    "modelarts": ("modelarts/model", "seven.png", "three.png", "digits", "3"),
    "megflow": ("megflow/digits", "seven.png", "three.png", "digit", "3"),
    "tiinfer": ("tiinfer", "", "../modelarts/model/three.png", "digits", "3"),
    "bare": ("bare", "seven.png", "three.png", "", "probabilities"),
    "paddle": ("paddle", "demo.png", "../modelarts/model/seven.png", "", "7"),
    "triton": ("triton", "", "../bare/three.png", "DIGIT", "3"),
    "hfendpoint": ("hfendpoint", "seven.png", "three.png", "", "3"),
    "paieas": ("paieas", "", "three.png", "digit", "3"),
}
"""Folder of the example, the file it begins with, another to drop, and a name and a value of its answer then."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_example_of_a_dialect(dialect: str, browser: Browser) -> None:
    """It opens filled and runs as it is; another file is dropped, and the right answer is seen; the code runs too."""
    folder, first, other, name, value = DIALECTS[dialect]
    with serving(EXAMPLES / folder) as server:
        visit(browser, server.url)
        browser.wait("!!document.querySelector('.request .file img')")
        assert first in browser.run("document.querySelector('.request .drop').innerText")
        run(browser)
        assert status(browser) == "200"
        browser.drop(".request .drop", (EXAMPLES / folder / other).resolve(), "image/png")
        shown = run(browser)
        assert status(browser) == "200"
        assert re.search(rf"{name}.*{value}" if name else value, shown, re.DOTALL), shown
        browser.wait("document.querySelectorAll('.timeline .bar i').length > 1")
        assert browser.run("document.querySelectorAll('.tries li img').length") == 2
        run_as_pasted(browser, (EXAMPLES / folder / other).resolve().parent, value)
        assert browser.complaints == []
        assert all(url.startswith((server.url, "data:", "blob:", "about:")) for url in browser.requested[-5:])


# Forms


def test_fields_come_from_the_hints(server: Server, browser: Browser) -> None:
    visit(browser, server.url)
    labels = browser.run("[...document.querySelectorAll('.request .body .label')].map((one) => one.innerText)")
    assert labels == ["text", "labels", "options"]
    assert browser.run("document.querySelector('.request textarea').value") == "a quick brown fox"
    put(browser, ".request textarea", "fox fox")
    shown = run(browser)
    assert browser.run("document.querySelector('.result [role=tab]').innerText") == "Labels"
    assert "fox" in shown
    assert browser.complaints == []


SCHEMA = {
    "type": "object",
    "required": ["strength", "mode"],
    "properties": {
        "strength": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "description": "<b>how</b> much"},
        "mode": {"type": "string", "enum": ["fast", "good"]},
        "loud": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 1},
        "picture": {"type": "string", "format": "byte", "contentMediaType": "image/png"},
        "more": {"type": "array", "items": {"type": "number"}},
    },
}


def test_a_field_for_each_kind_of_schema(server: Server, browser: Browser, picture: Path) -> None:
    """Whatever schema a document holds: sliders, choices, switches, numbers, files as base64, JSON for the rest."""
    visit(browser, server.url)
    browser.run(
        f"""import("/pages/body.js").then(({{ editor, encoded }}) => {{
          const way = {{ kind: "json", schema: {json.dumps(SCHEMA)}, document: {{}}, value: {{}} }};
          const made = editor(way, () => {{}});
          document.querySelector(".request .body").replaceChildren(made.element);
          window.made = made;
          window.sent = async () => (await encoded(made.read())).body;
        }})"""
    )
    kinds = browser.run(
        "[...document.querySelectorAll('.body input, .body select, .body textarea')].map((one) => one.type)"
    )
    assert kinds == ["range", "number", "select-one", "checkbox", "number", "file", "textarea"]
    assert "<b>how</b> much" in browser.run("document.querySelector('.request .body').innerText")
    browser.run("document.querySelector('[type=range]').value = 0.8")
    browser.run("document.querySelector('[type=range]').dispatchEvent(new Event('input'))")
    browser.drop(".body .drop", picture, "image/png")
    put(browser, ".body textarea", "[1, 2.5]")
    sent = json.loads(browser.run("sent()"))
    assert sent["picture"].startswith("iVBORw0KGgo")
    assert {name: sent[name] for name in ("strength", "mode", "loud", "more")} == {
        "strength": 0.8, "mode": "fast", "loud": False, "more": [1, 2.5],
    }  # fmt: skip
    assert "count" not in sent
    put(browser, ".body textarea", "[1, 2.5")
    assert "is not JSON" in browser.run("(() => { try { made.read(); } catch (error) { return error.message; } })()")


def test_several_files_and_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    with serving("uploads") as server:
        visit(browser, server.url)
        press(browser, ".segments button", "Form")
        file = tmp_path / "a.bin"
        file.write_bytes(b"12345")
        browser.choose_file(".request input[type=file]", file)
        browser.wait("document.querySelectorAll('.request .file').length === 1")
        before = browser.run(DONE)
        browser.press("Enter", control=True)
        browser.wait(f"{DONE} > {before}")
        assert status(browser) == "422"
        assert "a field 'image' is needed" in browser.run("document.querySelector('.failure .message').innerText")


# Answers


SHAPES = {
    "named sides": ("rect", 1, "cat"),
    "corners": ("rect", 2, "<img src=x>"),
    "modelarts": ("rect", 2, "dog"),
    "evals": ("polygon", 1, "cat"),
    "paddle": ("rect", 2, "0"),
    "shares": ("rect", 1, "cat"),
    "points": ("circle", 2, "points"),
    "mask": ("image", 1, "sky"),
}


def test_shapes_are_drawn_over_the_picture(shaping: Server, browser: Browser, picture: Path) -> None:
    visit(browser, shaping.url)
    browser.drop(".request .drop", picture, "image/png")
    browser.wait(f"document.querySelector('.request .file')?.innerText.includes({json.dumps(picture.name)})")
    for kind, (shape, count, words) in SHAPES.items():
        put(browser, ".request input[type=text]", kind)
        run(browser)
        browser.wait(f"document.querySelectorAll('.stage svg {shape}').length === {count}")
        assert words in browser.run("document.querySelector('.found').innerText")
    put(browser, ".request input[type=text]", "shares")
    run(browser)
    browser.wait("!!document.querySelector('.stage rect')")
    assert browser.run("document.querySelector('.stage rect').getAttribute('width')") == "16"
    browser.resize(360, 740, phone=True)
    browser.wait("document.querySelector('.stage').getBoundingClientRect().right < 360")
    browser.resize(1280, 900)
    for kind, shown in (("labels", ".bars li"), ("table", ".result table tbody tr")):
        put(browser, ".request input[type=text]", kind)
        run(browser)
        browser.wait(f"document.querySelectorAll('{shown}').length === 2")
    assert browser.run("window.harmed === undefined && !document.querySelector('img[src=x]')")
    assert browser.complaints == []


def test_a_stream_grows_and_stops(browser: Browser) -> None:
    with serving("pages_stream") as server:
        visit(browser, server.url)
        browser.click("form.request .primary")
        browser.wait("document.querySelector('.result').innerText.includes('word3 ')")
        assert browser.run("!!document.querySelector('.result').innerText.match(/word0 word1 word2/)")
        press(browser, ".runbar button", "Stop")
        browser.wait("document.querySelector('.result').innerText.includes('Stopped.')")
        seen = browser.run("document.querySelector('.result .plain').innerText")
        assert "word0 " in seen
        assert "word1999" not in seen
        assert "curl -N" in browser.run("document.querySelector('.snippet').innerText")
        assert "stopped" in browser.run("document.querySelector('.tries').innerText")
        browser.wait("!document.querySelector('form.request .primary').disabled")


def test_failures_say_what_to_do(server: Server, browser: Browser) -> None:
    visit(browser, server.url)
    put(browser, ".request textarea", "fail")
    shown = run(browser)
    assert status(browser) == "500"
    assert "RuntimeError: <b>asked</b> to fail" in shown
    assert "traceback" in shown
    put(browser, ".request textarea.code", "null")
    assert "labels must be a list" in run(browser)
    put(browser, ".request textarea.code", "[")
    browser.click("form.request .primary")
    browser.wait("document.querySelector('.request').innerText.includes('is not JSON')")


def test_a_server_that_is_gone(browser: Browser) -> None:
    with serving("documented_json") as server:
        visit(browser, server.url)
        server.stop()
        assert "cannot be reached" in run(browser)


def test_markup_of_a_script_does_nothing(browser: Browser) -> None:
    with serving("documented_hostile", "--dev") as server:
        visit(browser, server.url)
        shown = run(browser)
        assert "<script>window.harmed = true</script>" in shown
        browser.open(server.url + "/status")
        browser.wait("document.querySelectorAll('tr[data-id]').length === 1")
        browser.click("tr[data-id] button")
        browser.wait("!!document.querySelector('.traceback')")
        assert "<script>window.harmed = true</script>" in browser.text()
        assert browser.run("window.harmed === undefined && document.scripts.length === 1")
        assert browser.run("document.querySelectorAll('main img').length") == 0


KINDS = {"image/png": "img", "audio/wav": "audio", "video/mp4": "video", "application/zip": "a[download]"}


def test_answers_that_are_files(browser: Browser, tmp_path: Path, picture: Path) -> None:
    script = (
        f"PICTURE = {picture.read_bytes()!r}\n\n\n"
        "def predict(request):\n    return PICTURE, request['type']\n\n\n"
        "def example():\n    return {'type': 'image/png'}\n"
    )
    (tmp_path / "model.py").write_text(script)
    with serving(tmp_path) as server:
        visit(browser, server.url)
        for kind, element in KINDS.items():
            put(browser, ".request textarea", {"type": kind})
            run(browser)
            assert browser.run(f"!!document.querySelector('.result {element}')"), kind
        assert "application/zip" in browser.run("document.querySelector('.result').innerText")


def test_a_picture_is_pasted(shaping: Server, browser: Browser, picture: Path) -> None:
    """One from the clipboard, as after copying it anywhere, wherever the cursor is; text goes where the cursor is."""
    visit(browser, shaping.url)
    browser.paste_picture(picture)
    browser.wait("document.querySelector('.request .file')?.innerText.includes('image.png')")
    run(browser)
    assert status(browser) == "200"
    browser.run("document.querySelector('.request input[type=text]').value = ''")
    browser.run("document.querySelector('.request input[type=text]').focus()")
    browser.paste_text("corners")
    assert browser.run("document.querySelector('.request input[type=text]').value") == "corners"
    assert browser.run("document.querySelectorAll('.request .file').length") == 1


def test_a_picture_from_the_camera(shaping: Server, browser: Browser) -> None:
    visit(browser, shaping.url)
    press(browser, ".request .drop button", "Camera")
    browser.wait("document.querySelector('dialog video')?.videoWidth > 0")
    press(browser, "dialog button", "Take photo")
    browser.wait("document.querySelector('.request .file')?.innerText.includes('camera.jpg')")
    run(browser)
    assert status(browser) == "200"


def test_tensors_begin_with_the_inputs_of_the_model(browser: Browser) -> None:
    with serving(EXAMPLES / "bare") as server:
        visit(browser, server.url)
        choose_route(browser, "/infer")
        browser.wait("document.querySelector('.request textarea')?.value.includes('FP32')")
        assert "probabilities" in run(browser)
        assert status(browser) == "200"


# Coming back


def test_a_link_carries_the_request(server: Server, browser: Browser) -> None:
    visit(browser, server.url)
    put(browser, ".request textarea", "carried by a link, as ≤ 4 kB of text")
    link = browser.run(
        """(async () => {
          let copied = "";
          Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { copied = text; } } });
          [...document.querySelectorAll(".runbar button")].find((one) => one.innerText === "Copy link").click();
          await new Promise((resolve) => setTimeout(resolve, 50));
          return copied;
        })()"""
    )
    assert link.startswith(server.url + "/#try=")
    visit(browser, link)
    assert browser.run("document.querySelector('.request textarea').value") == "carried by a link, as ≤ 4 kB of text"
    visit(browser, server.url + "/#try=nonsense")
    assert browser.run("document.querySelector('.request textarea').value") == "a quick brown fox"


def test_the_last_tries_come_back(server: Server, browser: Browser) -> None:
    visit(browser, server.url)
    for text in ("first", "second"):
        put(browser, ".request textarea", text)
        run(browser)
    assert browser.run("document.querySelectorAll('.tries li').length") == 2
    browser.run("document.querySelector('.tries li:last-child button').click()")
    browser.wait("document.querySelector('.request textarea').value === 'first'")


def test_a_try_without_a_body_is_known_by_its_route(browser: Browser) -> None:
    with serving("own_routes") as server:
        visit(browser, server.url)
        choose_route(browser, "GET /labels")
        run(browser)
        assert browser.run("document.querySelector('.tries .excerpt').innerText") == "GET /labels"


def test_a_model_that_is_loading_is_waited_for(browser: Browser, tmp_path: Path) -> None:
    script = "import time\n\ndef load():\n    time.sleep(3)\n\ndef predict(request):\n    return request\n"
    (tmp_path / "model.py").write_text(script)
    with serving(tmp_path, ready=False) as server, contextlib.suppress(AssertionError):
        browser.open(server.url)
        browser.wait("document.body.innerText.includes('The model is loading')")
        browser.wait("!!document.querySelector('form.request')", 30)
        server.wait_ready()
    assert browser.run("!!document.querySelector('form.request')")
