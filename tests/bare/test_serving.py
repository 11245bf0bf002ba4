"""A model file as a server: requests in every form, company for them, and tools that ask it."""

from __future__ import annotations

import base64
import io
import json
import random
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

from support import model_files
from support.server import ROOT, Server, panglot, serving
from support.traffic import times

IRIS = [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def dynamic(folder: Path) -> Iterator[Server]:
    with serving(model_files.dynamic(folder / "dynamic.onnx"), "--workers", "2") as server:
        yield server


def npy(array: Any, pickled: bool = False) -> bytes:
    written = io.BytesIO()
    numpy.save(written, array, allow_pickle=pickled)
    return written.getvalue()


def test_requests_in_every_form_give_the_same(dynamic: Server) -> None:
    row = [1.0, 2.0, 3.0, 4.0]
    expected = model_files.expected([row]).tolist()
    floats = numpy.array([row], "float32")
    for options in (
        {"json": {"x": [row]}}, {"json": [row]}, {"json": row}, {"content": json.dumps({"x": [row]})},
        {"content": floats.tobytes(), "headers": {"content-type": "application/octet-stream"}},
        {"content": npy(floats)}, {"files": {"x": ("x.npy", npy(floats))}},
        {"content": npy(numpy.array([row]))},
    ):  # fmt: skip
        answer = dynamic.client.post("/predict", **options)
        assert answer.status_code == 200, answer.text
        assert numpy.allclose(answer.json()["y"], expected, rtol=1e-5)
    assert dynamic.predict({"x": []}).json() == {"y": []}


BAD = {
    "not whole": (b"{", "JSON"),
    "another name": ({"z": [[1, 2, 3, 4]]}, "no input 'z': send a JSON object with x FP32 [N, 4]"),
    "nothing": ({}, "x is missing"),
    "text": ({"x": [["a", "b", "c", "d"]]}, "x takes numbers (FP32), not text"),
    "null": ({"x": [[1, 2, 3, None]]}, "x takes numbers (FP32), not null"),
    "true": ({"x": [[True, True, True, True]]}, "not true or false"),
    "ragged": ({"x": [[1, 2], [3]]}, "its lists have different lengths"),
    "a wrong shape": ({"x": [[1, 2, 3]]}, "x has the shape [1, 3], and the model takes [N, 4]"),
    "too large": ({"x": [[1e39, 0, 0, 0]]}, "x holds a number beyond FP32"),
    "half an array": (b"\x93NUMPY\x01", "no whole .npy file"),
    "an array that promises too much": (
        b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 4), }".ljust(118),
        "its size is not that of its shape",
    ),
    "an array of objects": (npy(numpy.array([[1, 2, 3, "a"]], object), pickled=True), "no whole .npy file"),
    "an array of text": (npy(numpy.array([["a", "b", "c", "d"]])), "it holds no numbers"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_the_model_cannot_take_is_said_in_a_sentence(dynamic: Server, what: str) -> None:
    body, said = BAD[what]
    answer = dynamic.predict(content=body) if isinstance(body, bytes) else dynamic.predict(body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_no_neighbour_changes_an_answer(dynamic: Server) -> None:
    """Requests of 0 to 40 rows beside bad ones, many at once: each answer is that of its rows alone, within 1e-5."""
    bad = [json.dumps(body) if not isinstance(body, bytes) else body for body, _ in BAD.values()]

    def ask(number: int) -> None:
        chance = random.Random(number)
        if chance.random() < 0.2:
            assert dynamic.client.post("/predict", content=chance.choice(bad)).status_code == 400
            return
        rows = [[chance.uniform(-9, 9) for _ in range(4)] for _ in range(chance.choice((0, 1, 1, 2, 3, 40)))]
        answer = dynamic.client.post("/predict", json={"x": rows})
        assert answer.status_code == 200, answer.text
        given = numpy.array(answer.json()["y"], "float32").reshape(-1, 3)
        expected = model_files.expected(numpy.array(rows).reshape(-1, 4))
        assert numpy.allclose(given, expected, rtol=1e-5, atol=1e-5 * 30)

    with ThreadPoolExecutor(16) as crowd:
        list(crowd.map(ask, range(times(300, 5000))))
    assert dynamic.metric("panglot_worker_restarts_total") == 0


def test_the_server_says_what_it_found(dynamic: Server) -> None:
    dynamic.wait_log("requests are .*: a row gets the same answer in a batch as alone, (and|but) a row takes ")
    line = dynamic.wait_log("try: (curl .*)")[1]
    shown = subprocess.run([*shlex.split(line), "-sf"], capture_output=True, text=True, check=True)
    assert len(json.loads(shown.stdout)["y"][0]) == 3
    document = dynamic.client.get("/openapi.json").json()
    content = document["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert "FP32 [N, 4]" in json.dumps(content)
    assert "It takes x FP32 [N, 4] and gives y FP32 [N, 3]." in document["info"]["description"]


def test_a_model_whose_answers_depend_on_neighbours_runs_alone(folder: Path) -> None:
    with serving(model_files.centred(folder / "centred.onnx")) as server, ThreadPoolExecutor(8) as crowd:
        server.wait_log("requests are not batched: a row gets another answer in a batch than alone")
        asked = [[[float(number), 1, 2, 3]] for number in range(50)]
        for answer in crowd.map(server.predict, asked):
            assert answer.json() == {"y": [[0, 0, 0, 0]]}
        both = server.predict([[0, 0, 0, 0], [2, 2, 2, 2]]).json()["y"]
        assert both == [[-1, -1, -1, -1], [1, 1, 1, 1]]


def test_pictures(folder: Path) -> None:
    """Where the input is one: as the body, in a form, in base64; and a line to try that needs no file."""
    red = io.BytesIO()
    Image.new("RGB", (20, 10), (255, 0, 51)).save(red, "PNG")
    content = red.getvalue()
    text = base64.b64encode(content).decode()
    with serving(model_files.picture(folder / "picture.onnx")) as server:
        for options in (
            {"content": content, "headers": {"content-type": "image/png"}}, {"content": content},
            {"files": {"pixels": ("red.png", content, "image/png")}}, {"json": {"pixels": text}},
            {"json": {"pixels": ["data:image/png;base64," + text]}},
        ):  # fmt: skip
            answer = server.client.post("/predict", **options)
            assert answer.status_code == 200, answer.text
            assert numpy.allclose(answer.json()["colour"], [[1, 0, 0.2]])
        line = server.wait_log("try: (.*)")[1]
        shown = subprocess.run(["bash", "-c", line + " -sf"], capture_output=True, text=True, check=True)
        assert json.loads(shown.stdout) == {"colour": [[0, 0, 0]]}
        broken = server.predict(content=content[:40])
        assert broken.status_code == 400
        assert "the image cannot be read" in broken.text


def test_labels_texts_and_sequences(folder: Path) -> None:
    with serving(model_files.zipmap(folder / "zipmap.onnx")) as server:
        answer = server.predict([[1, 0, 0, 0]]).json()
        given = dict(zip(answer["probability.labels"], answer["probability"][0], strict=True))
        expected = model_files.expected([[1, 0, 0, 0]])[0].tolist()
        assert given == pytest.approx(dict(zip(("no", "yes", "?"), expected, strict=True)))
        assert answer["label"] == [expected.index(max(expected))]
        about = server.client.get("/v2/models/zipmap").json()["outputs"]
        assert {tensor["name"]: (tensor["datatype"], tensor["shape"]) for tensor in about} == {
            "label": ("INT64", [-1]), "probability": ("FP32", [-1, 3]), "probability.labels": ("BYTES", [3]),
        }  # fmt: skip
        config = server.client.get("/v2/models/zipmap/config").json()
        rows = config["max_batch_size"] > 0
        dims = {tensor["name"]: tensor["dims"] for tensor in config["output"]}
        assert (dims["probability"], dims["probability.labels"]) == ([3] if rows else [-1, 3], [3])
        asked = {"name": "x", "datatype": "FP32", "shape": [2, 4], "data": [1, 0, 0, 0, 0, 1, 0, 0]}
        outputs = server.client.post("/v2/models/zipmap/infer", json={"inputs": [asked]}).json()["outputs"]
        answered = {tensor["name"]: tensor for tensor in outputs}
        assert (answered["probability"]["datatype"], answered["probability"]["shape"]) == ("FP32", [2, 3])
        assert answered["probability.labels"]["data"] == ["?", "no", "yes"]
        assert "(columns: ?, no, yes)" in server.client.get("/openapi.json").json()["info"]["description"]
    with serving(model_files.sequence(folder / "sequence.onnx")) as server:
        assert server.predict([[1, 2], [3, 4]]).json() == {"parts": [[[1], [3]], [[2], [4]]]}


def test_the_tools_take_a_model_file(folder: Path, tmp_path: Path) -> None:
    path = str(model_files.dynamic(folder / "tools.onnx"))
    request = tmp_path / "rows.json"
    request.write_text('{"x": [[1, 2, 3, 4]]}')
    ran = panglot("run", path, str(request))
    assert numpy.allclose(json.loads(ran.stdout)["answer"]["y"], model_files.expected([[1, 2, 3, 4]])), ran.stderr
    inspected = json.loads(panglot("inspect", path, "--json").stdout)
    assert (inspected["dialect"], inspected["package"]) == ("bare", "tools")
    assert inspected["why"][0] == "tools.onnx is a model file (ONNX)"


def test_tensors_over_the_open_inference_protocol(dynamic: Server) -> None:
    """The model's own inputs and outputs, by name, type and shape; what does not fit is 400."""
    about = dynamic.client.get("/v2/models/dynamic").json()
    assert about["platform"] == "onnxruntime_onnx"
    assert about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
    assert about["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}]

    def infer(datatype: str = "FP32", name: str = "x", shape: tuple[int, ...] = (2, 4), **more: Any) -> Any:
        data = {"name": name, "datatype": datatype, "shape": list(shape), "data": [1] * int(numpy.prod(shape))}
        return dynamic.client.post("/v2/models/dynamic/infer", json={"inputs": [data], **more})

    [given] = infer().json()["outputs"]
    assert (given["name"], given["datatype"], given["shape"]) == ("y", "FP32", [2, 3])
    assert numpy.allclose(given["data"], model_files.expected(numpy.ones((2, 4))).ravel(), rtol=1e-5)
    assert infer(shape=(0, 4)).json()["outputs"][0]["shape"] == [0, 3]
    for wrong, said in (
        (infer("INT64"), "the input 'x' is FP32, not INT64"), (infer(name="z"), "there is no input 'z'"),
        (infer(shape=(2, 3)), "the model takes [N, 4]"), (infer(outputs=[{"name": "z"}]), "there is no output 'z'"),
    ):  # fmt: skip
        assert wrong.status_code == 400
        assert said in wrong.json()["error"]


def test_the_example_and_the_template_answer_the_line_they_show(tmp_path: Path) -> None:
    made = tmp_path / "digits"
    assert panglot("new", "bare", str(made)).returncode == 0
    for folder in (made, ROOT / "examples" / "bare"):
        with serving(folder) as server:
            line = server.wait_log("try: (curl .*)")[1]
            shown = subprocess.run([*shlex.split(line), "-sf"], capture_output=True, text=True, check=True, cwd=ROOT)
            [likelihoods] = json.loads(shown.stdout)["probabilities"]
            assert likelihoods.index(max(likelihoods)) == 7
