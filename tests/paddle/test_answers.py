"""Results of scripts as answers: names, pictures, texts."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy
import pytest
from PIL import Image

from panglot_worker.bodies.codec import Limits
from panglot_worker.dialects.paddle import answers

NAMED = [
    ((numpy.int64(3), numpy.float32(0.5)), ["class_id", "prob"], {"class_id": 3, "prob": 0.5}),
    ((1, 2, 3), ["class_id", "prob"], [1, 2, 3]),
    ((1, 2), [], [1, 2]),
    (numpy.array([4.0]), ["score"], {"score": [4.0]}),
    (numpy.array([4.0, 5.0]), ["psnr", "ssim"], {"psnr": 4.0, "ssim": 5.0}),
    ({"own": 1}, ["a", "b"], {"own": 1}),
    ([[[1, 2], [3, 4]]], ["polygons"], {"polygons": [[[1, 2], [3, 4]]]}),
    ("text", [], "text"),
    (None, [], None),
    (
        ("cat", 0.5, numpy.zeros((1, 2))),
        ["label", "score", "rest"],
        {"label": "cat", "score": 0.5, "rest": [[0.0, 0.0]]},
    ),
]


def encode(value: Any, accept: str = "*/*", bgr: bool = False) -> Any:
    return answers.encode(value, accept, Limits(), "null", bgr)


@pytest.mark.parametrize(("result", "names", "expected"), NAMED, ids=range(len(NAMED)))
def test_names(result: Any, names: list[str], expected: Any) -> None:
    assert json.loads(encode(answers.named(result, names)).body) == expected


def test_images_inside_json_are_base64() -> None:
    found = json.loads(
        encode({"mask": Image.new("L", (3, 2), 7), "raw": b"abc", "deep": [Image.new("1", (2, 2))]}).body
    )
    assert Image.open(io.BytesIO(base64.b64decode(found["mask"]))).size == (3, 2)
    assert base64.b64decode(found["raw"]) == b"abc"
    assert Image.open(io.BytesIO(base64.b64decode(found["deep"][0]))).size == (2, 2)


@pytest.mark.parametrize(
    ("shape", "mode"),
    [((4, 5), "L"), ((4, 5, 1), "L"), ((4, 5, 3), "RGB"), ((4, 5, 4), "RGBA"), ((1, 4, 5, 3), "RGB"), ((3, 4, 5), "")],
)
def test_arrays_of_bytes_as_pictures(shape: tuple[int, ...], mode: str) -> None:
    array = numpy.zeros(shape, "uint8")
    answer = encode({"heat": array, "score": 1}, "image/png")
    if not mode:
        assert answer.content_type == "application/json"
        return
    assert answer.content_type == "image/png"
    image = Image.open(io.BytesIO(answer.body))
    assert (image.size, image.mode) == ((5, 4), mode)


def test_scripts_with_opencv_have_blue_first() -> None:
    array = numpy.zeros((2, 2, 3), "uint8")
    array[..., 0] = 200
    for bgr, expected in ((False, (200, 0, 0)), (True, (0, 0, 200))):
        assert Image.open(io.BytesIO(encode(array, "image/png", bgr).body)).getpixel((0, 0)) == expected


def test_two_pictures_are_no_one_picture() -> None:
    array = numpy.zeros((2, 2, 3), "uint8")
    assert encode([array, array], "image/png").content_type == "application/json"
    assert encode({"floats": numpy.zeros((2, 2, 3))}, "image/png").content_type == "application/json"


def test_paddle_serving_takes_text_alone() -> None:
    def pairs(value: Any) -> dict[str, str]:
        found = json.loads(answers.serving(value, Limits(), "null").body)
        assert found["err_no"] == 0
        return dict(zip(found["key"], found["value"], strict=True))

    assert pairs({"a": numpy.array([1.5, 2.0]), "b": "text", "c": None}) == {
        "a": "[1.5, 2.0]",
        "b": "text",
        "c": "None",
    }
    assert pairs([1, True]) == {"output_0": "1", "output_1": "True"}
    assert pairs(numpy.float32(0.5)) == {"result": "0.5"}
