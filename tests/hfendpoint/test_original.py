"""Hugging Face's own emulator beside Panglot: the same packages, the same requests, good and bad."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import originals
from support.hfendpoint import picture
from support.originals import Case
from support.server import PACKAGES, Server, serving

pytestmark = [pytest.mark.rest("installs Hugging Face's emulator"), pytest.mark.timeout(900)]

JSON = {"Content-Type": "application/json"}
PACKAGES_OF_ORIGINAL = (
    "hf_endpoints_emulator==0.1.1", "starlette<1", "uvicorn<0.30", "typer<0.16", "click<8.2", "pillow", "numpy",
)  # fmt: skip


def post(content: bytes | str, kind: str = "application/json", path: str = "/", differs: str = "") -> Case:
    return Case("POST", path, content, {"Content-Type": kind} if kind else {}, differs=differs)


CASES = {
    "GET /": Case("GET", "/"),
    "GET /health": Case("GET", "/health"),
    "an unknown path": Case("GET", "/nope"),
    "a wrong method": Case("PUT", "/predict"),
    "text": post('{"inputs": "hi"}'),
    "the other route": post('{"inputs": "hi"}', path="/predict"),
    "a list": post('{"inputs": ["a", "b"], "parameters": {"top_k": 1}}'),
    "numbers": post('{"inputs": [1, 2.5, true, null, -1e3]}'),
    "other letters": post('{"inputs": "käse 猫"}'),
    "a tuple": post('{"inputs": {"return": "tuple"}}'),
    "null": post('{"inputs": {"return": "none"}}'),
    "an error that the script returns": post('{"inputs": {"return": "error"}}'),
    "an exception": post('{"inputs": {"raise": "ValueError"}}'),
    "a KeyError": post('{"inputs": {"raise": "KeyError"}}'),
    "an HTTPException": post('{"inputs": {"raise": "HTTPException"}}'),
    "a list with the word": post('["inputs"]'),
    "a text with the word": post('"inputs"'),
    "a number": post("5"),
    "a picture": post(picture("RGBA"), "image/png"),
    "a sound": post(b"RIFF....WAVE", "audio/wav"),
    # What the emulator does otherwise than the toolkit, which we follow.
    "no inputs": post('{"text": 1}', differs="words of refusals"),
    "no JSON": post("{bad", differs="words of refusals"),
    "a broken picture": post(b"no picture", "image/png", differs="words of refusals"),
    "an unknown type": post("x", "text/plain", differs="words of refusals"),
    "no type": post('{"inputs": "hi"}', "", differs="bodies without a type"),
    "a type with a charset": post(
        '{"inputs": "hi"}', "application/json; charset=utf-8", differs="types in other words"
    ),
    "a set": post('{"inputs": {"return": "set"}}', differs="words of refusals"),
    "a generator": post('{"inputs": "parts"}', differs="generators"),
}


@pytest.fixture(scope="module")
def original() -> Iterator[originals.Original]:
    python = originals.interpreter("hf-emulator", *PACKAGES_OF_ORIGINAL)
    program = originals.program(python, "hf-endpoints-emulator")
    folder = PACKAGES / "hfendpoint_echo"
    command = [program, "--handler", str(folder / "handler.py"), "--port", originals.PORT]
    with originals.running(command, folder, ready="/health") as running:
        yield running


@pytest.fixture(scope="module")
def ours() -> Iterator[Server]:
    with serving("hfendpoint_echo") as server:
        yield server


@pytest.mark.document("hfendpoint.47")
@pytest.mark.parametrize("name", CASES)
def test_the_same_request_has_the_same_answer(original: originals.Original, ours: Server, name: str) -> None:
    case = CASES[name]
    theirs, own = originals.ask(original.url, case), originals.ask(ours.url, case)
    if not case.differs:
        assert own == theirs
        return
    originals.differs("hfendpoint", case.differs)
    assert own != theirs
    if case.differs == "words of refusals":
        assert (own.status, list(own.body)) == (theirs.status, list(theirs.body)) == (400, ["error"])
    else:
        assert (own.status, theirs.status) == (200, 400)
