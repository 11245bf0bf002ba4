"""What a handler gets for a request, row by row of the platform's table, and what is refused before the handler."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.hfendpoint import picture, sound
from support.server import Server, serving

JSON = "application/json"


@pytest.fixture(scope="module")
def echo() -> Iterator[Server]:
    with serving("hfendpoint_echo") as server:
        yield server


def post(server: Server, content: bytes, kind: str | None = JSON, path: str = "/") -> httpx.Response:
    return server.client.post(path, content=content, headers={"content-type": kind} if kind is not None else {})


def refused(answer: httpx.Response, status: int = 400) -> str:
    assert (answer.status_code, answer.headers["content-type"]) == (status, JSON)
    body = answer.json()
    assert list(body) == ["error"]
    return str(body["error"])


# The script's world


@pytest.mark.document("hfendpoint.03", "hfendpoint.08")
def test_the_handler_is_made_with_the_folder_and_finds_the_platforms_names(echo: Server) -> None:
    world = echo.client.post("/", json={"inputs": "world"}).json()
    folder = world["path"]
    assert folder.endswith("/hfendpoint_echo")
    assert world == {
        "path": folder, "cwd": folder, "first": folder, "model_dir": folder,
        "module": "handler.EndpointHandler", "registered": True, "task": None,
    }  # fmt: skip


# Routes


@pytest.mark.document("hfendpoint.41")
@pytest.mark.parametrize("path", ["/", "/predict"])
def test_both_routes_reach_the_handler(echo: Server, path: str) -> None:
    answer = echo.client.post(path, json={"inputs": "hi"})
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b'{"inputs":"hi"}', JSON)


@pytest.mark.document("hfendpoint.42")
@pytest.mark.parametrize("path", ["/", "/health"])
def test_health_says_ok_in_plain_text(echo: Server, path: str) -> None:
    answer = echo.client.get(path)
    assert (answer.status_code, answer.text) == (200, "Ok")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_browser_gets_the_page_instead(echo: Server) -> None:
    assert echo.client.get("/", headers={"accept": "text/html"}).headers["content-type"].startswith("text/html")


@pytest.mark.document("hfendpoint.43")
def test_the_platforms_gauges_are_among_the_metrics(echo: Server) -> None:
    lines = echo.client.get("/metrics").text.splitlines()
    assert {"inf_batch_current_size 0", "inf_queue_size 0"} <= set(lines)


@pytest.mark.document("hfendpoint.44")
def test_an_unknown_path_and_a_wrong_method_are_answered_in_plain_text(echo: Server) -> None:
    unknown, wrong = echo.client.get("/nope"), echo.client.put("/predict")
    assert (unknown.status_code, unknown.text, wrong.status_code, wrong.text) == (
        404, "Not Found", 405, "Method Not Allowed",
    )  # fmt: skip


# JSON


@pytest.mark.document("hfendpoint.14")
@pytest.mark.parametrize("kind", [JSON, f"{JSON}; charset=UTF-8", f"{JSON}; charset=utf-8", "Application/JSON"])
def test_json_is_read_whatever_its_parameters_and_case(echo: Server, kind: str) -> None:
    assert post(echo, b'{"inputs": "hi"}', kind).json() == {"inputs": "hi"}


def test_other_keys_reach_the_handler_too(echo: Server) -> None:
    body = {"inputs": [1, "a", None], "parameters": {"top_k": 2}, "date": "2022-07-04"}
    assert echo.client.post("/", json=body).json() == body


@pytest.mark.document("hfendpoint.21")
def test_instances_are_as_good_as_inputs(echo: Server) -> None:
    assert echo.client.post("/", json={"instances": [1]}).json()["inputs"] == {"instances": [1]}


@pytest.mark.document("hfendpoint.19")
@pytest.mark.parametrize("value", [{"text": "hi"}, [1], {}, "text"])
def test_a_body_without_inputs_is_refused_and_shown(echo: Server, value: Any) -> None:
    shown = json.dumps(value, separators=(",", ":")).encode()
    assert refused(echo.client.post("/", json=value)) == f"Body needs to provide a inputs key, received: {shown!r}"


@pytest.mark.document("hfendpoint.20")
@pytest.mark.parametrize("value", [["inputs"], "inputs"])
def test_what_only_looks_as_if_it_had_inputs_reaches_the_handler_and_fails_there(echo: Server, value: Any) -> None:
    assert "pop" in refused(echo.client.post("/", json=value))


@pytest.mark.document("hfendpoint.22")
@pytest.mark.parametrize("body", [b"", b"{bad", b'{"inputs": 1,}', b"\xff\xff", b"5", b"null", b'{"inputs": NaN}'])
def test_what_is_no_json_object_is_refused(echo: Server, body: bytes) -> None:
    assert refused(post(echo, body))


@pytest.mark.document("hfendpoint.23")
def test_integers_beyond_64_bits_become_floats(echo: Server) -> None:
    answer = post(echo, b'{"inputs": [123456789012345678901234567890, 18446744073709551615, -1]}')
    assert answer.json() == {"inputs": [1.2345678901234568e29, 18446744073709551615, -1]}


def test_json_beyond_a_limit_has_the_limits_status(echo: Server) -> None:
    refused(post(echo, b'{"inputs": ' + b"[" * 100 + b"]" * 100 + b"}"))
    with serving("hfendpoint_echo", "--max-json", "100") as small:
        assert "max_json" in refused(post(small, b'{"inputs": "' + b"x" * 100 + b'"}'), 413)


# The query


@pytest.mark.document("hfendpoint.25")
def test_the_query_becomes_parameters_with_numbers_and_truth_values(echo: Server) -> None:
    answer = echo.client.post("/?top_k=2&flag=true&off=false&x=0.5&n=-1&F=False", json={"inputs": 1})
    expected = {"top_k": 2, "flag": True, "off": False, "x": "0.5", "n": "-1", "F": "False"}
    assert answer.json() == {"inputs": 1, "parameters": expected}


@pytest.mark.document("hfendpoint.26")
def test_the_query_is_ignored_where_the_body_has_parameters(echo: Server) -> None:
    answer = echo.client.post("/?top_k=2", json={"inputs": 1, "parameters": {"a": 1}})
    assert answer.json()["parameters"] == {"a": 1}


def test_a_query_beside_a_list_fails_as_python_does(echo: Server) -> None:
    assert refused(echo.client.post("/?a=1", json=["inputs"])) == "list indices must be integers or slices, not str"


# Pictures and sounds


@pytest.mark.document("hfendpoint.15")
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_a_picture_is_given_in_three_colours(echo: Server, mode: str) -> None:
    answer = post(echo, picture(mode), "image/png")
    assert answer.json() == {"inputs": {"type": "PIL", "mode": "RGB", "size": [4, 2]}}


@pytest.mark.document("hfendpoint.15")
@pytest.mark.parametrize(("kind", "form"), [("image/jpg", "JPEG"), ("image/webp", "WEBP"), ("IMAGE/GIF", "GIF")])
def test_every_type_of_picture_is_read(echo: Server, kind: str, form: str) -> None:
    assert post(echo, picture(form=form), kind).json()["inputs"]["mode"] == "RGB"


@pytest.mark.document("hfendpoint.27")
def test_a_broken_picture_is_refused(echo: Server) -> None:
    assert refused(post(echo, b"no picture", "image/png")) == "cannot identify image file"


@pytest.mark.document("hfendpoint.16")
@pytest.mark.parametrize("kind", ["audio/wav", "audio/x-flac", "audio/webm;codecs=opus", "audio/AMR-WB+", "audio/m4a"])
def test_a_sound_is_given_as_bytes(echo: Server, kind: str) -> None:
    assert post(echo, b"RIFF....", kind).json() == {"inputs": {"type": "bytes", "size": 8, "head": "52494646"}}


@pytest.mark.document("hfendpoint.18")
@pytest.mark.parametrize("kind", [None, "application/octet-stream"])
def test_a_body_that_nobody_named_is_known_by_its_first_bytes(echo: Server, kind: str | None) -> None:
    assert post(echo, b'{"inputs": "hi"}', kind).json() == {"inputs": "hi"}
    assert post(echo, picture(), kind).json()["inputs"]["type"] == "PIL"
    assert post(echo, sound(), kind).json()["inputs"]["type"] == "bytes"
    assert refused(post(echo, b"\x01\x02", kind)).startswith(f'Content type "{kind}" not supported.')


@pytest.mark.document("hfendpoint.17")
@pytest.mark.parametrize("kind", ["text/plain", "text/csv", "application/x-www-form-urlencoded", "video/mp4"])
def test_other_types_are_refused_with_those_that_are_not(echo: Server, kind: str) -> None:
    said = refused(post(echo, b'{"inputs": "hi"}', kind))
    assert said.startswith(f'Content type "{kind}" not supported. Supported content types are: application/json, ')


# Tasks


@pytest.mark.document("hfendpoint.24")
def test_sounds_in_base64_are_decoded_for_tasks_of_speech() -> None:
    with serving("hfendpoint_sound", env={"HF_TASK": "automatic-speech-recognition"}) as server:
        body = {"inputs": base64.b64encode(sound()).decode(), "parameters": {"language": "de"}}
        assert server.client.post("/", json=body).json() == {"text": "0.5 s", "parameters": {"language": "de"}}
        assert refused(server.client.post("/", json={**body, "inputs": "no base64!"}))
        answer = server.client.post("/?beam=3", content=sound(), headers={"content-type": "audio/wav"})
        assert answer.json() == {"text": "0.5 s", "parameters": {"beam": 3}}
