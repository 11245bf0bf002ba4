"""What a processor of PAI-EAS gets and what its clients get, by the platform's document and public scripts."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PIL import Image

from support.server import PACKAGES, Server, panglot, serving, wait_until

JSON, OCTETS = "application/json", "application/octet-stream"
SERVICE = "/api/predict/any_name"


@pytest.fixture(scope="module")
def echo() -> Iterator[Server]:
    with serving("paieas_echo") as server:
        yield server


def result(server: Server, name: str) -> httpx.Response:
    return server.client.post(SERVICE, json={"return": name})


# What a processor gets


@pytest.mark.document("paieas.06", "paieas.07", "paieas.09", "paieas.12", "paieas.13", "paieas.14")
def test_a_script_runs_as_main_until_run_and_is_initialized_once(echo: Server) -> None:
    world = echo.client.post(SERVICE, json={"world": 1}).json()
    folder = world["model_path"]
    assert folder.endswith("/paieas_echo")
    assert world == {
        "argv": [], "name": "__main__", "cwd": folder, "initialized": 1, "model_path": folder, "keepalive": "20000",
        "unknown": None, "threads": 3,
    }  # fmt: skip


@pytest.mark.document("paieas.08", "paieas.16")
@pytest.mark.parametrize("kind", [OCTETS, JSON, "text/plain", "application/x-www-form-urlencoded", "image/png", ""])
def test_the_body_is_given_as_bytes_whatever_its_type(echo: Server, kind: str) -> None:
    answer = echo.client.post(SERVICE, content=b"\xff10 20", headers={"content-type": kind} if kind else {})
    assert answer.json() == {"type": "bytes", "size": 6, "head": "ff3130203230"}


@pytest.mark.document("paieas.15", "paieas.17", "paieas.18")
@pytest.mark.parametrize("path", ["/api/predict/x", "/api/predict/an.other/v1/more?q=1", "/test", "/"])
def test_any_service_name_and_path_reach_the_processor(echo: Server, path: str) -> None:
    assert echo.client.post(path, content=b"hi").json()["size"] == 2


@pytest.mark.document("paieas.19")
def test_get_reaches_the_processor_with_no_bytes(echo: Server) -> None:
    assert echo.client.get(SERVICE).json()["size"] == 0


def test_pages_of_the_server_are_not_hidden(echo: Server) -> None:
    assert "panglot" in echo.client.get("/metrics").text
    assert echo.client.get("/", headers={"accept": "text/html"}).headers["content-type"].startswith("text/html")
    assert echo.client.get("/v2/health/ready").status_code == 200


# What a client gets


@pytest.mark.document("paieas.10", "paieas.11", "paieas.20")
@pytest.mark.parametrize(
    ("name", "status", "kind", "body"),
    [
        ("text", 200, OCTETS, b"text"),
        ("zero", 200, OCTETS, b"fine"),
        ("float", 200, JSON, b"0.5"),
        ("json", 200, JSON, b'{"a": 1}'),
        ("dict", 200, JSON, b'{"a":1}'),
        ("number", 200, JSON, b"12"),
        ("word", 200, OCTETS, b"nobody"),
        ("none", 200, OCTETS, b""),
        ("alone", 200, OCTETS, b"alone"),
        ("binary", 200, OCTETS, bytes(range(256))),
        ("not found", 404, OCTETS, b"none"),
        ("odd", 500, OCTETS, b"odd"),
        ("negative", 500, OCTETS, b"x"),
    ],
)
def test_what_process_returns_is_the_answer(echo: Server, name: str, status: int, kind: str, body: bytes) -> None:
    answer = result(echo, name)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (status, kind, body)


@pytest.mark.document("paieas.21")
@pytest.mark.parametrize("order", [{"raise": 1}, {"return": "status"}, {"return": "object"}])
def test_a_failure_is_500_in_plain_text_and_tells_no_secret(echo: Server, order: dict[str, object]) -> None:
    answer = echo.client.post(SERVICE, json=order)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "text/plain; charset=utf-8")
    assert "log says why" in answer.text
    assert "secret" not in answer.text


@pytest.mark.document("paieas.30")
def test_a_body_that_is_not_the_one_of_its_md5_is_refused(echo: Server) -> None:
    answer = echo.client.post(SERVICE, content=b"a", headers={"content-md5": "0" * 32})
    assert (answer.status_code, "Content-MD5" in answer.text) == (400, True)
    right = {"content-md5": "0cc175b9c0f1b6a831c399e269772661"}
    assert echo.client.post(SERVICE, content=b"a", headers=right).status_code == 200


# Packages in the manner of public ones


@pytest.mark.document("paieas.05")
def test_the_platforms_own_sample_runs_as_printed() -> None:
    with serving("paieas_sum") as server:
        yes, no = (server.client.post("/api/predict/sum", content=text) for text in (b"2 104", b"2 105"))
        assert (yes.status_code, yes.content) == (200, b"True")
        assert (no.status_code, no.content) == (400, b"False")
        wrong = server.client.post("/api/predict/sum", content=b"2")
        assert wrong.status_code == 500
        server.wait_log("ValueError: not enough values to unpack")


@pytest.mark.document("paieas.02", "paieas.03", "paieas.04")
def test_a_service_with_app_json_has_its_name_entry_model_and_limits() -> None:
    with serving("paieas_service") as server:
        answer = server.client.post("/api/predict/heart_predict", content=b'{"data": [1, 2]}')
        assert answer.json() == {"name": "heart", "scores": [3, 6]}
        # It is ready with its first worker, and the other may not have been started then.
        wait_until(lambda: len(server.workers()) == 2)
        api = server.client.get("/v2/models/heart_predict")
        assert api.status_code == 200
    shown = json.loads(panglot("inspect", "tests/packages/paieas_service", "--json").stdout)["settings"]
    assert (shown["timeout"]["value"], shown["queue"]["value"]) == (60.0, 100)


@pytest.mark.document("paieas.27")
def test_a_constructor_that_never_calls_its_base_works() -> None:
    with serving("paieas_threads") as server:
        assert server.client.post("/api/predict/mean", content=struct.pack("<3f", 1, 2, 6)).content == b"3.0"


def test_images_come_as_the_bytes_of_their_file() -> None:
    with serving("paieas_image") as server:
        for shade, label in ((250, "bright"), (5, "dark")):
            file = io.BytesIO()
            Image.new("RGB", (40, 30), (shade, shade, shade)).save(file, "PNG")
            answer = server.client.post("/api/predict/image", content=file.getvalue())
            assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)
            assert answer.json() == {"label": label, "score": round(shade / 255, 3)}
        refused = server.client.post("/api/predict/image", content=b"no image")
        assert (refused.status_code, refused.headers["content-type"]) == (400, OCTETS)
        assert refused.text.startswith("cannot identify image file")


def test_a_script_that_forgets_to_run_its_processor_is_told_so() -> None:
    done = panglot("serve", "tests/packages/paieas_forgotten", "--port", "0", seconds=60)
    assert done.returncode == 3
    assert "app.py: the script ends without calling run() of a processor" in done.stderr


@pytest.mark.document("paieas.28")
def test_arguments_at_the_bottom_have_their_defaults_or_those_of_the_command_line(tmp_path: Path) -> None:
    with serving("paieas_arguments") as server:
        assert server.client.post("/api/predict/x", content=b"2").content == b"4.0"
        server.wait_log("scale 2.0")
    with serving("paieas_arguments", "--", "--scale", "3") as server:
        assert server.client.post("/api/predict/x", content=b"2").content == b"6.0"


@pytest.mark.document("paieas.22")
@pytest.mark.skipif(os.getuid() != 0 or os.path.lexists("/eas"), reason="makes /eas, as root")
def test_the_platforms_path_of_the_model_leads_to_the_package() -> None:
    with serving("paieas_model", "--link-paths") as server:
        assert server.client.post("/api/predict/x", content=b"1").content == b"dog"
    assert not os.path.lexists("/eas")


@pytest.mark.skipif(os.getuid() != 0 or os.path.lexists("/eas"), reason="makes /eas, as root")
def test_a_second_model_with_the_same_fixed_path_is_refused_and_names_the_first(tmp_path: Path) -> None:
    models = [shutil.copytree(PACKAGES / "paieas_model", tmp_path / name) for name in ("first", "second")]
    done = panglot("serve", *map(str, models), "--port", "0", "--link-paths", seconds=60)
    assert done.returncode == 3
    assert "/eas/workspace/model leads to the model first already" in done.stderr
    assert not os.path.lexists("/eas")


def test_tensors_are_taken_as_bodies() -> None:
    with serving("paieas_sum") as server:
        body = {"inputs": [{"name": "body", "datatype": "BYTES", "shape": [1], "data": ["2 104"]}]}
        answer = server.client.post("/v2/models/paieas_sum/infer", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["outputs"][0]["data"] == ["True"]


def test_run_sends_texts_and_files_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "input.txt"
    text.write_text("2 104")
    done = panglot("run", "tests/packages/paieas_sum", str(text))
    assert (done.returncode, "4 bytes of application/octet-stream" in done.stdout) == (0, True), (
        done.stdout + done.stderr
    )
