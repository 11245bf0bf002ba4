"""Scripts that are not the classic: drivers that do more, text, files of numbers, pictures as results."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from PIL import Image

from support.server import PACKAGES, Server, panglot, serving

NPZ = """
import argparse
import numpy as np

class InferenceEngine:
    def __init__(self, args):
        self.args = args
    def preprocess(self, data_path):
        return np.load(data_path, allow_pickle=True)
    def run(self, x):
        return {name: x[name] for name in x.files} if hasattr(x, "files") else x
    def postprocess(self, x):
        return x

def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-path", default="sample.npz")
    return parser.parse_args()

if __name__ == "__main__":
    args = get_args()
    print(InferenceEngine(args))
"""


CRASH = """
import argparse, ctypes
import paddle

class InferenceEngine:
    def __init__(self, args):
        self.args = args
    def preprocess(self, text):
        return text
    def run(self, x):
        return ctypes.string_at(0) if x == "crash" else x.upper()
    def postprocess(self, x):
        return x

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", default="")
    args = parser.parse_args()
"""


def png(value: int, size: tuple[int, int] = (6, 4)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, (value, 10, 0)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def driver() -> Iterator[Server]:
    with serving("paddle_driver") as server:
        yield server


def compare(server: Server, one: bytes, other: bytes, **headers: str):  # type: ignore[no-untyped-def]
    files = {"clean_path": ("../../a.jpg", one), "noisy_path": ("b", other)}
    return server.predict(files=files, headers=headers)


def test_a_driver_is_called_with_one_engine_for_all(driver: Server) -> None:
    """Its asserts, its changes of the arguments and its own use of super() all work, time after time."""
    for value in (10, 20, 30):
        answer = compare(driver, png(value), png(5))
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert list(found) == ["heat_map", "mean", "built", "suffixes"]
        assert found["built"] == 1
        assert found["suffixes"] == [".png", ".png"], "by content, whatever the client calls them"
        assert found["mean"] == pytest.approx((value - 5) / 3)
        assert numpy.array(found["heat_map"]).shape == (4, 6, 3)
    assert "server-timing" in answer.headers
    assert "preprocess;" not in answer.headers["server-timing"]


@pytest.mark.parametrize(("accept", "form"), [("image/png", "PNG"), ("image/jpeg, image/png;q=0.5", "JPEG")])
def test_a_picture_by_accept(driver: Server, accept: str, form: str) -> None:
    answer = compare(driver, png(110), png(10), accept=accept)
    assert answer.headers["content-type"] == f"image/{form.lower()}"
    image = Image.open(io.BytesIO(answer.content))
    assert (image.format, image.size) == (form, (6, 4))
    assert abs(image.convert("RGB").getpixel((2, 2))[0] - 200) < 9  # type: ignore[index]


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, image/png;q=0.9", "image/png;q=0"])
def test_json_otherwise(driver: Server, accept: str) -> None:
    assert compare(driver, png(1), png(2), accept=accept).headers["content-type"] == "application/json"


def test_two_inputs_as_json_and_in_paddle_serving(driver: Server) -> None:
    names = ("clean_path", "noisy_path")
    texts = [base64.b64encode(png(value)).decode() for value in (9, 3)]
    answer = driver.predict(dict(zip(names, texts, strict=True)))
    assert answer.json()["mean"] == 2.0
    found = driver.client.post("/paddle_driver/prediction", json={"key": names, "value": texts}).json()
    assert found["err_no"] == 0
    assert found["key"] == ["heat_map", "mean", "built", "suffixes"]
    assert found["value"][1:] == ["2.0", "1", "['.png', '.png']"], "lists as Python writes them"


def test_what_is_missing_is_named(driver: Server) -> None:
    answer = driver.predict(files={"clean_path": ("a", png(1))})
    assert answer.status_code == 400
    assert "noisy_path is missing" in answer.text
    assert "send a form, or JSON, with clean_path and noisy_path" in driver.predict(content=png(1)).text


def test_a_script_that_fails_is_500_and_goes_on(driver: Server) -> None:
    answer = compare(driver, png(1), png(1, (3, 3)))
    assert answer.status_code == 500
    assert "different sizes" not in answer.text
    driver.wait_log("ValueError: the pictures have different sizes")
    body = {"key": ["clean_path", "noisy_path"], "value": [base64.b64encode(png(1, (n, 3))).decode() for n in (2, 3)]}
    found = driver.client.post("/paddle_driver/prediction", json=body)
    assert (found.status_code, found.json()["err_no"]) == (200, 10000)
    assert compare(driver, png(7), png(7)).json()["built"] == 1


def test_text_and_the_arguments_of_the_script() -> None:
    with serving("paddle_text", "--", "--separator", ",") as server:
        for answer in (
            server.predict({"text": "a,b c"}),
            server.predict("a,b c"),
            server.predict(content=b"a,b c", headers={"content-type": "text/plain"}),
            server.predict(data={"text": "a,b c"}),
        ):
            assert answer.json() == {"words": ["a", "b c"], "count": 2}
        assert server.predict({"text": 5}).status_code == 400
        assert server.predict({"separator": " ", "text": "a"}).status_code == 400
        assert server.predict(content=b"\xff\xfe", headers={"content-type": "text/plain"}).status_code == 400
        body = {"key": ["text"], "value": ["a,b"]}
        assert server.client.post("/paddle_text/prediction", json=body).json()["value"] == ["['a', 'b']", "2"]
        server.wait_log(r'\{"text": ?"one two"\}')


def test_arguments_that_the_script_refuses() -> None:
    done = panglot("serve", str(PACKAGES / "paddle_text"), "--port", "0", "--", "--separator", ";")
    assert done.returncode == 3
    assert (
        "the script's parser refuses its arguments --separator ;: argument --separator: invalid choice" in done.stderr
    )
    done = panglot("serve", str(PACKAGES / "paddle_text"), "--port", "0", "--", "--seperator", ";")
    assert done.returncode == 3
    assert "the script has no argument --seperator (fix: did you mean --separator?)" in done.stderr


def test_arrays_of_numbers_and_never_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "infer.py").write_text(NPZ)
    with serving(tmp_path) as server:
        buffer = io.BytesIO()
        numpy.savez(buffer, a=numpy.arange(3), b=numpy.ones((1, 2)))
        for sent in ({"content": buffer.getvalue()}, {"files": {"data_path": ("x.npz", buffer.getvalue())}}):
            answer = server.predict(**sent)
            assert answer.json() == {"a": [0, 1, 2], "b": [[1.0, 1.0]]}, answer.text
        plain = io.BytesIO()
        numpy.save(plain, numpy.arange(4))
        assert server.predict(content=plain.getvalue()).json() == [0, 1, 2, 3]
        for store in (numpy.save, numpy.savez):
            harmful = io.BytesIO()
            store(harmful, numpy.array([{"a": 1}], dtype=object), allow_pickle=True)
            answer = server.predict(content=harmful.getvalue())
            assert answer.status_code == 400
            assert "--allow-pickle" in answer.text
        broken = server.predict(files={"data_path": ("x.npz", buffer.getvalue()[:99])})
        assert broken.status_code == 400
        assert "no .npy file" in broken.text or "no archive" in broken.text


def test_a_crash_shows_where_the_script_was(tmp_path: Path) -> None:
    """Paddle's own signal handlers would show its C++ frames instead, and print them for every stopped worker."""
    (tmp_path / "infer.py").write_text(CRASH)
    with serving(tmp_path, "--no-rerun") as server:
        assert server.predict({"text": "a"}).json() == "A"
        assert server.predict({"text": "crash"}).status_code == 500
        server.wait_log("Fatal Python error: Segmentation fault")
        server.wait_log(r'infer.py", line \d+ in run')
        assert server.predict({"text": "b"}).json() == "B"
        assert "C++ Traceback" not in server.log
