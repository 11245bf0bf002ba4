"""What a client gets for what a handler returned or raised, row by row of the platform's table."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from support import originals
from support.server import Server, serving

JSON = "application/json"


@pytest.fixture(scope="module")
def echo() -> Iterator[Server]:
    with serving("hfendpoint_echo") as server:
        yield server


def result(server: Server, name: str, accept: str = "*/*") -> httpx.Response:
    return server.client.post("/", json={"inputs": {"return": name}}, headers={"accept": accept})


def opened(content: bytes) -> Any:
    return Image.open(io.BytesIO(content))


SENT = {
    "scalars": b'{"a":0.5,"b":[0,1,2],"c":0.1,"d":0.1}',
    "halves": b"[0.099975586]",
    "wide": b"[[0.1,0.1],[0.1,0.1]]",
    "nan": b"[null,1.0]",
    "tuple": b'[1,"b",null]',
    "point": b'{"x":1}',
    "date": b'"2020-01-02"',
    "uuid": b'"00000000-0000-0000-0000-000000000001"',
    "none": b"null",
    "text": '"käse"'.encode(),
    "error": b'{"error":"said by the script itself"}',
}


@pytest.mark.document("hfendpoint.28", "hfendpoint.29")
@pytest.mark.parametrize("name", SENT)
def test_results_are_compact_json_as_orjson_writes_it(echo: Server, name: str) -> None:
    answer = result(echo, name)
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, SENT[name], JSON)


@pytest.mark.document("hfendpoint.29")
def test_results_are_the_same_without_orjson(tmp_path: Path) -> None:
    (tmp_path / "orjson.py").write_text("raise ImportError('not here')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with serving("hfendpoint_echo", "--python", str(python)) as server:
        for name, expected in SENT.items():
            assert result(server, name).content == expected, name
        assert result(server, "int_keys").json() == {"error": "Dict key must be str"}
        body = b'{"inputs": 123456789012345678901234567890}'
        answer = server.client.post("/", content=body, headers={"content-type": JSON})
        assert answer.json() == {"inputs": 123456789012345678901234567890.0}


@pytest.mark.document("hfendpoint.30")
def test_pictures_in_json_are_png_in_base64(echo: Server) -> None:
    alone, listed = result(echo, "image").json(), result(echo, "images").json()
    assert opened(base64.b64decode(alone)).size == (4, 2)
    assert opened(base64.b64decode(listed[0])).format == "PNG"


@pytest.mark.document("hfendpoint.31")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bytes", "Type is not JSON serializable: bytes"),
        ("int_keys", "Dict key must be str"),
        ("decimal", "Type is not JSON serializable: Decimal"),
        ("set", "Type is not JSON serializable: set"),
    ],
)
def test_results_that_json_cannot_hold_are_400(echo: Server, name: str, said: str) -> None:
    answer = result(echo, name)
    assert (answer.status_code, answer.json()) == (400, {"error": said})


@pytest.mark.document("hfendpoint.33")
def test_a_generator_is_sent_in_parts(echo: Server) -> None:
    events = echo.client.post("/", json={"inputs": "parts"})
    assert events.headers["content-type"] == "text/event-stream"
    assert events.text == "".join(f'data: {{"part":{number}}}\n\n' for number in range(3))
    lines = echo.client.post("/", json={"inputs": "parts"}, headers={"accept": "application/x-ndjson"})
    assert lines.text == "".join(f'{{"part":{number}}}\n' for number in range(3))


# Accept


@pytest.mark.document("hfendpoint.34")
@pytest.mark.parametrize("accept", ["image/png", "image/jpeg", "image/jpg", "image/webp", "image/png, image/jpeg"])
def test_a_picture_is_sent_as_the_type_that_is_accepted(echo: Server, accept: str) -> None:
    answer = result(echo, "image", accept)
    first = accept.partition(",")[0]
    assert (answer.status_code, answer.headers["content-type"]) == (200, first)
    assert opened(answer.content).format == first.partition("/")[2].upper().replace("JPG", "JPEG")


def test_a_type_of_pictures_that_pillow_knows_by_another_name(echo: Server) -> None:
    """The platform gives Pillow the second half of the type as the name of a form."""
    originals.differs("hfendpoint", "`Accept: image/jpg`")
    with pytest.raises(KeyError, match="JPG"):
        Image.new("RGB", (1, 1)).save(io.BytesIO(), format="JPG")
    assert opened(result(echo, "image", "image/jpg").content).format == "JPEG"


@pytest.mark.document("hfendpoint.37")
@pytest.mark.parametrize(
    "accept", ["application/json, text/plain, */*", "text/html", "application/xml", f"{JSON}; charset=utf-8", "image/*"]
)
def test_all_else_that_is_accepted_gets_json(echo: Server, accept: str) -> None:
    answer = result(echo, "tuple", accept)
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)


@pytest.mark.document("hfendpoint.38")
def test_json_in_capitals_has_its_own_content_type(echo: Server) -> None:
    accept = f"{JSON}; charset=UTF-8"
    assert result(echo, "tuple", accept).headers["content-type"] == accept


@pytest.mark.document("hfendpoint.35")
def test_a_picture_cannot_be_made_of_anything_else(echo: Server) -> None:
    answer = result(echo, "tuple", "image/png")
    said = "Can only serialize PIL.Image.Image, got <class 'tuple'>"
    assert (answer.status_code, answer.json()) == (400, {"error": said})


@pytest.mark.document("hfendpoint.36")
@pytest.mark.parametrize("accept", ["text/csv", "text/plain", "audio/wav"])
def test_types_that_the_platform_cannot_write_are_400(echo: Server, accept: str) -> None:
    answer = result(echo, "tuple", accept)
    assert (answer.status_code, accept in answer.json()["error"]) == (400, True)


# Failures


@pytest.mark.document("hfendpoint.39")
@pytest.mark.parametrize(
    ("kind", "said"), [("ValueError", "no"), ("KeyError", "'no'"), ("HTTPException", "400: detail")]
)
def test_a_scripts_exception_is_400_with_its_text_and_its_traceback_in_the_log(
    echo: Server, kind: str, said: str
) -> None:
    headers = {"x-request-id": f"mine-{kind}"}
    answer = echo.client.post("/", json={"inputs": {"raise": kind}}, headers=headers)
    assert (answer.status_code, answer.headers["content-type"], answer.json()) == (400, JSON, {"error": said})
    echo.wait_log(rf"request mine-{kind}: \S*{kind}")
    assert "Traceback" not in answer.text


def test_a_request_that_the_platform_refuses_does_not_fill_the_log(echo: Server) -> None:
    mark = len(echo.lines)
    echo.client.post("/", json={"text": 1}, headers={"x-request-id": "refused-one"})
    echo.client.post("/", json={"inputs": {"raise": "ValueError"}}, headers={"x-request-id": "failed-one"})
    echo.wait_log("failed-one", after=mark)
    assert "refused-one: " not in echo.log_after(mark)
