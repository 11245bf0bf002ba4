"""What a request may leave out, and the paths of Paddle Serving's clients."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.dialects.paddle.pipeline import operations
from support.server import PACKAGES, Server, serving

STEPS = PACKAGES / "paddle_steps"
PNG = b"\x89PNG\r\n\x1a\n"
CONFIG = """\
# how many workers
worker_num: 1
http_port: 18080
dag:
    is_thread_op: False
op:
    # the model
    imagenet:
        concurrency: 1
        local_service_conf:
            model_config: serving_server
    "second.op": {concurrency: 2}
tracer: {interval_s: 1}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    picture = tmp_path_factory.mktemp("pictures") / "given.png"
    picture.write_bytes(PNG + b"12345")
    with serving(STEPS, "--", "--img-path", str(picture)) as server:
        yield server


def test_an_empty_request_runs_on_what_was_given(server: Server) -> None:
    for sent in ({"content": b""}, {"content": b"{}", "headers": {"content-type": "application/json"}}):
        assert server.predict(**sent).json() == {"ending": "png", "size": 13}
    assert server.predict(content=PNG).json() == {"ending": "png", "size": 8}, "a request's own comes first"
    assert server.predict(content=b"").json() == {"ending": "png", "size": 13}, "and is not kept"
    found = server.client.post("/any/prediction", json={"key": [], "value": []}).json()
    assert (found["err_no"], found["value"]) == (0, ["png", "13"])


def test_a_folder_that_was_given(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    text = (STEPS / "infer.py").read_text().replace("img-path", "data-dir").replace("img_path", "data_dir")
    text = text.replace('open(data_dir, "rb")', 'open(sorted(__import__("glob").glob(data_dir + "/*"))[-1], "rb")')
    (folder / "infer.py").write_text(text)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.bin").write_bytes(b"12345678901")
    with serving(folder, "--", "--data-dir", str(tmp_path / "data")) as server:
        assert server.predict(content=b"").json()["size"] == 11
        assert server.predict(content=PNG).json()["size"] == 8


def test_a_default_is_not_given() -> None:
    with serving(STEPS) as server:
        answer = server.predict(content=b"")
        assert answer.status_code == 400
        assert "empty" in answer.text


def test_any_name_is_answered_where_nothing_names_it(server: Server) -> None:
    body = {"key": ["image"], "value": [base64.b64encode(PNG).decode()]}
    for name in ("imagenet", "paddle_steps", "a.b-c"):
        found = server.client.post(f"/{name}/prediction", json=body)
        assert found.json()["value"] == ["png", "8"], found.text
    for path in ("/prediction", "/a/b/prediction", "/a/prediction/", "/a/prediction2"):
        assert server.client.post(path, json=body).status_code == 404, path
    assert server.client.get("/imagenet/prediction").status_code == 405
    document = server.client.get("/openapi.json").json()
    assert document["paths"]["/{name}/prediction"]["post"]["operationId"] == "prediction"


def test_the_name_is_that_of_the_operation_in_config_yml(tmp_path: Path) -> None:
    shutil.copytree(STEPS, tmp_path / "package")
    (tmp_path / "package" / "config.yml").write_text(CONFIG)
    body = {"key": ["image"], "value": [base64.b64encode(PNG).decode()]}
    with serving(tmp_path / "package") as server:
        for name in ("imagenet", "second.op"):
            assert server.client.post(f"/{name}/prediction", json=body).json()["err_no"] == 0
        assert server.client.post("/other/prediction", json=body).status_code == 404
        assert "/imagenet/prediction" in server.client.get("/openapi.json").json()["paths"]


def test_where_config_yml_is_looked_for(tmp_path: Path) -> None:
    script = tmp_path / "deploy" / "inference_python" / "infer.py"
    assert operations(script, tmp_path) == ()
    (tmp_path / "config.yml").write_text("model: {op: 1}\nlr: 0.1\n")
    assert operations(script, tmp_path) == (), "a config.yml of something else"
    (tmp_path / "deploy" / "serving_python").mkdir(parents=True)
    (tmp_path / "deploy" / "serving_python" / "config.yml").write_text(CONFIG)
    assert operations(script, tmp_path) == ("imagenet", "second.op")
    (tmp_path / "config.yml").write_bytes(b"op:\n  \xff: 1\n")
    assert operations(script, tmp_path) == ("imagenet", "second.op")
