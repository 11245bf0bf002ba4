"""Section 4 of the platform's specification: edge cases a compatible server must reproduce, rows 1 to 19."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.modelarts import MR_0105, NODE, PT, config, grey, package
from support.server import Server, serving, wait_until


@pytest.mark.document("modelarts.17")
def test_multipart_data_is_one_dict(tmp_path: Path) -> None:
    script = """
        from model_service.model_service import SingleNodeService

        class Service(SingleNodeService):
            def _preprocess(self, data):
                return [[key, name] for key, files in data.items() for name, file in files.items()]
    """
    with serving(package(tmp_path, script)) as server:
        answer = server.client.post("/", files={"image1": ("cat.jpg", b"1"), "images2": ("horse.jpg", b"2")})
        assert answer.json() == [["image1", "cat.jpg"], ["images2", "horse.jpg"]]


@pytest.mark.document("modelarts.21")
def test_values_are_real_bytes_io(tmp_path: Path) -> None:
    script = """
        import io

        import numpy
        from model_service.model_service import SingleNodeService
        from PIL import Image

        class Service(SingleNodeService):
            def _preprocess(self, data):
                file = data["f"]["x.png"]
                assert type(file) is io.BytesIO
                whole = file.getvalue()
                return {
                    "buffer": len(file.getbuffer()), "value": len(whole), "read": len(file.read()),
                    "size": Image.open(file).size, "again": file.seek(0),
                    "array": numpy.load(data["n"]["x.npy"]).tolist(),
                }
    """
    array = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }".ljust(117)
        + b"\n\x01\x02\x03"
    )
    with serving(package(tmp_path, script)) as server:
        picture = grey(9)
        answer = server.client.post("/", files={"f": ("x.png", picture), "n": ("x.npy", array)})
        size = len(picture)
        assert answer.json() == {
            "buffer": size, "value": size, "read": size, "size": [8, 8], "again": 0, "array": [1, 2, 3],
        }  # fmt: skip


def test_text_beside_files_and_the_query_over_all(tmp_path: Path) -> None:
    script = """
        from model_service.model_service import SingleNodeService

        class Service(SingleNodeService):
            def _preprocess(self, data):
                return [float(data["min_score"]), list(data["image"])]
    """
    with serving(package(tmp_path, script)) as server:
        form = {"files": {"image": ("a.png", b"1")}, "data": {"min_score": "0.25"}}
        assert server.client.post("/", **form).json() == [0.25, ["a.png"]]
        assert server.client.post("/?min_score=0.75", **form).json() == [0.75, ["a.png"]]


@pytest.mark.document("modelarts.04", "modelarts.12", "modelarts.13")
def test_constructors_and_own_inference(tmp_path: Path) -> None:
    """6 default _inference of PyTorch, 7 one level skipped, 8 no parent constructor, 9 own `inference`."""
    scripts = {
        "six": PT + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        super().__init__(model_name, model_path)
        assert self.model is None and self.model_name == "serve" and self.model_path.endswith("w.pth")
        self.model = lambda value: value * 2
""",
        "seven": PT + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        super(PTServingBaseService, self).__init__(model_name, model_path)
        self.model = lambda value: value * 2
""",
        "eight": PT + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        self.net = lambda value: value * 2

    def _inference(self, batch):
        return {key: self.net(value) for key, value in batch.items()}
""",
        "nine": PT + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        pass

    def inference(self, request):
        return self._inference(self._preprocess(request, 2), request)

    def _preprocess(self, request, factor):
        return factor

    def _inference(self, factor, request):
        return {key: value * factor for key, value in request.items()}
""",
    }  # fmt: skip
    for name, script in scripts.items():
        with serving(package(tmp_path / name, script, config("PyTorch"), w__pth=b"")) as server:
            assert server.client.post("/", json={"a": 3, "b": "x"}).content == b'{"a": 6, "b": "xx"}', name


def test_errors_are_covered_by_the_table_of_requests(echo: Server) -> None:
    assert [echo.client.post("/", json={"raise": kind}).status_code for kind in ("TypeError", "ValueError")] == [
        400,
        500,
    ]


@pytest.mark.document("modelarts.32")
def test_numpy_is_encoded_and_with_the_strict_switch_an_error(echo: Server) -> None:
    assert echo.client.post("/", json={"return": "numpy"}).content == b'{"label": 7, "scores": [[0.5, 0.25]]}'
    assert echo.client.post("/", json={"return": "numpy_key"}).content == b'{"3": 1}'
    with serving("modelarts_echo", "--strict-results") as strict:
        for kind in ("numpy", "numpy_key"):
            answer = strict.client.post("/", json={"return": kind})
            assert (answer.status_code, answer.content) == (400, MR_0105)
        assert strict.client.post("/", json={"return": "chinese"}).status_code == 200


@pytest.mark.document("modelarts.40")
def test_a_json_string_is_encoded_again(echo: Server) -> None:
    assert echo.client.post("/", json={"return": "text"}).content == rb'"{\"already\": \"json\"}"'


def test_nan_is_null_with_a_warning_or_as_the_platform_wrote_it(echo: Server) -> None:
    answer = echo.client.post("/", json={"return": "nan"})
    assert answer.content == b'{"score": null, "inner": [null, 1.0, null]}'
    assert answer.headers["x-panglot-warning"] == "nan: 3 values replaced by null"
    with serving("modelarts_echo", "--nan", "platform") as server:
        assert (
            server.client.post("/", json={"return": "nan"}).content == b'{"score": NaN, "inner": [Infinity, 1.0, NaN]}'
        )
    with serving("modelarts_echo", "--nan", "error") as server:
        assert server.client.post("/", json={"return": "nan"}).status_code == 500


def test_blanks_after_colons_and_commas(echo: Server) -> None:
    assert b'"list": [1, 2]' in echo.client.post("/", json={"return": "chinese"}).content


def test_text_that_cannot_be_sent_is_the_scripts_failure(echo: Server) -> None:
    answer = echo.client.post("/", json={"return": "surrogate"})
    assert (answer.status_code, answer.content) == (500, MR_0105)
    assert echo.client.post("/", json={"return": "none"}).content == b"null"


# 15 and 16: see test_loading.py


ENDING = """
import threading

HELD = []


class Session:
    def close(self):
        print("the session is closed", flush=True)


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        self.sess = Session()
        {held}

    {method}

    def __del__(self):
        self.sess.close()
"""
STEPS = "def _inference(self, data):\n        return data"
WHOLE = "def inference(self, data):\n        return data"


@pytest.mark.document("modelarts.33")
@pytest.mark.parametrize(
    ("method", "held"),
    [
        (STEPS, "pass"),
        (WHOLE, "pass"),
        (STEPS, "HELD.append(self)"),
        (STEPS, "self.own = self"),
        (STEPS, "threading.Timer(600, self.inference).start()"),
    ],
    ids=["steps", "whole", "held by the script", "in a ring", "held by a thread"],
)
def test_del_runs_once_when_the_service_ends(tmp_path: Path, method: str, held: str) -> None:
    """Also where something else still holds the service."""
    settings = ("--no-await-threads",) if "Timer" in held else ()
    with serving(package(tmp_path, NODE + ENDING.format(method=method, held=held)), *settings) as server:
        assert server.client.post("/", json={"a": 1}).json() == {"a": 1}
        assert server.client.post("/", files={"k": b"file"}).status_code in (400, 500)
        assert "the session is closed" not in server.log
        assert server.stop() == 0
        assert server.log.count("the session is closed") == 1


@pytest.mark.document("modelarts.33")
@pytest.mark.parametrize("held", ["pass", "HELD.append(self)"])
def test_an_error_in_del_harms_nothing_and_shows(tmp_path: Path, held: str) -> None:
    script = NODE + ENDING.format(method=STEPS, held=held).replace("self.sess = Session()", "pass")
    with serving(package(tmp_path, script)) as server:
        assert server.client.post("/", json={"a": 1}).status_code == 200
        assert server.stop() == 0
        assert "AttributeError: 'Service' object has no attribute 'sess'" in server.log


def test_state_in_self_and_a_fixed_file_belong_to_one_request_at_a_time(tmp_path: Path) -> None:
    script = """
        import time

        from model_service.pytorch_model_service import PTServingBaseService
        from PIL import Image

        class Service(PTServingBaseService):
            def __init__(self, model_name, model_path):
                self.capture = "test.png"
                self.seen = []

            def _preprocess(self, data):
                for key, files in data.items():
                    for name, file in files.items():
                        self.file_name = name
                        with open(self.capture, "wb") as target:
                            target.write(file.getvalue())
                return data

            def _inference(self, data):
                time.sleep(0.002)
                self.value = Image.open(self.capture).getpixel((3, 3))
                return data

            def _postprocess(self, data):
                self.seen.append(self.file_name)
                return {"name": self.file_name, "value": self.value}
    """
    package(tmp_path, script)
    before = {path.name for path in tmp_path.iterdir()} | {"__pycache__"}
    for flags in ([], ["--workers", "2"]):
        with serving(tmp_path, *flags) as server:

            def ask(number: int) -> None:
                with httpx.Client(base_url=server.url, timeout=30) as client:
                    for turn in range(12):
                        value = (number * 12 + turn) % 256
                        name = f"{number}-{turn}.png"
                        answer = client.post("/", files={"images": (name, grey(value), "image/png")})
                        assert answer.json() == {"name": name, "value": value}

            with ThreadPoolExecutor(16) as pool:
                list(pool.map(ask, range(16)))
    assert {path.name for path in tmp_path.iterdir()} <= before, "the script wrote into its private folder"


def test_the_working_directory_is_writable_and_holds_model_1(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import os

with open("model/1/labels.txt") as file:
    LABELS = file.read().split()


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        self.model_path = model_path

    def _inference(self, data):
        with open("scratch.txt", "a") as file:
            file.write("x")
        with open("model/labels.txt") as file:
            assert file.read().split() == LABELS
        with open(os.path.join(self.model_path, "written.txt"), "w") as file:
            file.write("x")
        return {"labels": LABELS, "here": os.getcwd(), "written": os.path.exists("model/1/written.txt"),
                "size": os.path.getsize("scratch.txt"), "library_path": os.environ["LD_LIBRARY_PATH"],
                "device": os.environ["DEVICE_ID"]}
"""
    )
    package(tmp_path / "p" / "model", script, config("MindSpore"), labels__txt="cat dog")
    with serving(tmp_path / "p", "--workers", "2") as server:
        server.wait_log("worker 1 ready")
        with ThreadPoolExecutor(4) as pool:
            told = list(pool.map(lambda _: httpx.post(server.url, json={"a": 1}, timeout=60).json(), range(24)))
        assert {(*answer["labels"], answer["written"], answer["device"]) for answer in told} == {
            ("cat", "dog", True, "0")
        }
        folders = {answer["here"] for answer in told}
        assert all(Path(folder).is_dir() for folder in folders)
        assert str(tmp_path) not in "".join(folders)
        for folder in folders:
            sizes = [answer["size"] for answer in told if answer["here"] == folder]
            assert max(sizes) == len(sizes), "nobody else writes there"
        [worker, _] = server.workers()
        worker.kill()
        wait_until(lambda: sum(Path(folder).exists() for folder in folders) < 2, 10, lambda: "its folder goes with it")
    assert not any(Path(folder).exists() for folder in folders)
    assert not Path(folders.pop()).parent.exists()
    assert (tmp_path / "p" / "model" / "written.txt").exists()
