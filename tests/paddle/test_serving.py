"""A classic script, unmodified, on a real net: what clients may send, and what they get."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.paddle import ALEXNET, close, predicted
from support.server import Server, serving

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server(alexnet: Path) -> Iterator[Server]:
    with serving(ALEXNET, "--", "--model-dir", str(alexnet)) as server:
        yield server


@pytest.fixture(scope="module")
def expected(pictures: list[Path]) -> list[dict[str, Any]]:
    return predicted(*pictures)


def in_base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.document("paddle.16", "paddle.19")
def test_answers_are_those_of_the_training_engine(
    server: Server, pictures: list[Path], expected: list[dict[str, Any]]
) -> None:
    """Whole body, form, JSON with both names, a data URL, and the contract of Paddle Serving."""
    for path, wanted in zip(pictures, expected, strict=True):
        content = path.read_bytes()
        kind = {"content-type": "image/png" if path.suffix == ".png" else "image/jpeg"}
        answers = [
            server.predict(content=content, headers=kind),
            server.predict(content=content),
            server.predict(content=content, headers={"content-type": "application/x-www-form-urlencoded"}),
            server.predict(files={"image": (path.name, content)}),
            server.predict({"image": in_base64(path)}),
            server.predict({"img_path": f"data:image/png;base64,{in_base64(path)}"}),
        ]
        for answer in answers:
            assert answer.status_code == 200, answer.text
            assert list(answer.json()) == ["class_id", "prob"]
            assert close(answer.json(), wanted), (answer.json(), wanted)
    assert len({answer["class_id"] for answer in expected}) > 1, "the net tells the pictures apart"


def test_the_contract_of_paddle_serving(server: Server, pictures: list[Path], expected: list[dict[str, Any]]) -> None:
    body = {"key": ["image"], "value": [in_base64(pictures[0])], "logid": 7}
    answer = server.client.post("/paddle_alexnet/prediction", json=body)
    assert answer.status_code == 200
    found = answer.json()
    assert found["err_no"] == 0
    assert found["err_msg"] == ""
    assert found["tensors"] == []
    assert found["key"] == ["class_id", "prob"]
    assert all(isinstance(value, str) for value in found["value"])
    assert close(dict(zip(found["key"], map(json.loads, found["value"]), strict=True)), expected[0])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "lists of the same length"),
        ({"key": ["image"], "value": []}, "lists of the same length"),
        ({"key": ["image"], "value": ["not base64!"]}, "base64"),
        ({"key": ["other"], "value": ["aGVsbG8="]}, "no input 'other'"),
        ({"key": [1], "value": ["aGVsbG8="]}, "text"),
        ([], "JSON object"),
    ],
)
def test_bad_input_in_paddle_serving_is_an_error_number(server: Server, body: Any, words: str) -> None:
    answer = server.client.post("/paddle_alexnet/prediction", json=body)
    assert answer.status_code == 200
    assert answer.json()["err_no"] == 5000
    assert words in answer.json()["err_msg"]
    assert answer.json()["key"] == answer.json()["value"] == []


def test_bad_input_is_told_in_words_and_harms_nobody(
    server: Server, pictures: list[Path], expected: list[dict[str, Any]]
) -> None:
    cut_off = pictures[1].read_bytes()[:200]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"content": b"just a text", "headers": {"content-type": "text/plain"}}, "not an image"),
        ({"content": b""}, "empty"),
        ({"files": {"image": ("a.jpg", b"")}}, "empty"),
        ({"content": cut_off, "headers": {"content-type": "image/png"}}, "cannot be read as an image"),
        ({"files": {"a": ("a.jpg", cut_off), "b": ("b.jpg", cut_off)}}, "no input 'a'"),
        ({"content": b'{"image": 5}', "headers": JSON}, "must be a file"),
        ({"content": b'{"image": "%%%"}', "headers": JSON}, "not valid base64"),
        ({"content": b'{"model_dir": "/tmp", "image": ""}', "headers": JSON}, "no input 'model_dir'"),
        ({"content": b"{}", "headers": JSON}, "img_path is missing"),
        ({"content": b"{", "headers": JSON}, "JSON"),
    ]
    began = len(server.lines)
    for sent, words in cases:
        answer = server.predict(**sent)
        assert answer.status_code == 400, (sent, answer.text)
        assert words in answer.json()["error"]["message"], answer.text
    assert "Traceback" not in server.log_after(began), "a client's fault is not the script's"
    assert close(server.predict(content=pictures[0].read_bytes()).json(), expected[0])


def test_no_file_is_left_behind(server: Server, pictures: list[Path]) -> None:
    worker = server.workers()[0].pid
    opened = []
    for fd in os.listdir(f"/proc/{worker}/fd"):
        # One of the last request's may be closed between the two looks.
        with contextlib.suppress(FileNotFoundError):
            opened.append(os.readlink(f"/proc/{worker}/fd/{fd}"))
    folders = [Path(name) for name in opened if "panglot-input-" in name]
    assert len(folders) == 1, "one private folder, held by its lock"
    assert server.predict(content=pictures[0].read_bytes()).status_code == 200
    server.predict(content=pictures[1].read_bytes()[:200])
    assert list(folders[0].iterdir()) == []


@pytest.mark.document("paddle.22")
def test_stages_are_timed(server: Server, pictures: list[Path]) -> None:
    timing = server.predict(content=pictures[0].read_bytes()).headers["server-timing"]
    for stage in ("decode", "preprocess", "inference", "postprocess", "encode"):
        assert f"{stage};dur=" in timing


def test_eight_threads_get_the_answers_of_one(server: Server, pictures: list[Path]) -> None:
    """500 requests with different pictures: none gets another's answer."""
    from support.paddle import picture

    folder = pictures[0].parent
    many = [picture(folder / f"many-{seed}.png", 1000 + seed, (48, 48)).read_bytes() for seed in range(500)]
    alone = [server.predict(content=content).json() for content in many]
    assert len({answer["prob"] for answer in alone}) > 450
    wrong: list[Any] = []

    def client(first: int) -> None:
        with server.new_client() as own:
            for at in range(first, 500, 8):
                answer = own.post("/predict", content=many[at])
                if answer.status_code != 200 or not close(answer.json(), alone[at]):
                    wrong.append((at, answer.text, alone[at]))

    threads = [threading.Thread(target=client, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert server.metric("panglot_batch_size_sum") > server.metric("panglot_batch_size_count"), "some shared a run"
