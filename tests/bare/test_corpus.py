"""A corpus of ONNX files in one server, asked over the Open Inference Protocol; and what one takes of the machine."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from panglot_worker.runtimes import open_model
from panglot_worker.runtimes.base import ModelFile
from support import model_files
from support.models import all_of
from support.server import Server, serving, wait_until
from support.traffic import times

MB = 1 << 20


def brain(path: Path) -> Path:
    return model_files.doubling(path, TensorProto.BFLOAT16, "n", 2)


def half(path: Path) -> Path:
    return model_files.doubling(path, TensorProto.FLOAT16, "n", 2)


def outside(path: Path) -> Path:
    return model_files.external(path, "weights.bin")


CORPUS = (
    model_files.texts, model_files.embedding, model_files.rankless, model_files.two_inputs, model_files.fixed, brain,
    half, outside,
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("corpus")
    for make in CORPUS:
        (folder / make.__name__).mkdir()
        make(folder / make.__name__ / "model.onnx")
    with serving(all_of(folder), "--max-wait-ms", "50", ready=False) as server:
        server.wait_ready(120)
        yield server


def infer(server: Server, model: str, *inputs: tuple[str, str, list[int], list[Any]]) -> httpx.Response:
    """What a model answers to tensors in JSON."""
    given = [dict(zip(("name", "datatype", "shape", "data"), tensor, strict=True)) for tensor in inputs]
    return server.client.post(f"/v2/models/{model}/infer", json={"inputs": given})


def given(answer: httpx.Response) -> Any:
    """The only output of an answer: its type, shape and elements."""
    assert answer.status_code == 200, answer.text
    [output] = answer.json()["outputs"]
    return output["datatype"], output["shape"], output["data"]


def test_texts(corpus: Server) -> None:
    """Bytes that are no text cannot be put into a string of onnxruntime: 400, and no text that looks like them."""
    assert given(infer(corpus, "texts", ("x", "BYTES", [2], ["é", ""]))) == ("BYTES", [2], ["é", ""])
    about = {"name": "x", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}}
    text = json.dumps({"inputs": [about]}).encode()
    headers = {"inference-header-content-length": str(len(text))}
    refused = corpus.client.post("/v2/models/texts/infer", content=text + b"\1\0\0\0\xff", headers=headers)
    assert refused.status_code == 400
    assert "text" in refused.json()["error"]


@pytest.mark.parametrize(
    ("model", "sent", "back"),
    [("half", "<f2", "<f2"), ("brain", "<u2", "<u2")],
)
def test_halves_travel_as_bytes(corpus: Server, model: str, sent: str, back: str) -> None:
    """1.5 and 2 are doubled; BF16 is the upper half of a float."""
    numbers = numpy.array([[1.5, 2.0]], "<f4")
    array = numbers.astype("<f2") if model == "half" else (numbers.view("<u4") >> 16).astype(sent)
    datatype = {"half": "FP16", "brain": "BF16"}[model]
    about = {"name": "x", "datatype": datatype, "shape": [1, 2], "parameters": {"binary_data_size": 4}}
    text = json.dumps({"inputs": [about], "parameters": {"binary_data_output": True}}).encode()
    headers = {"inference-header-content-length": str(len(text))}
    answer = corpus.client.post(f"/v2/models/{model}/infer", content=text + array.tobytes(), headers=headers)
    assert answer.status_code == 200, answer.text
    raw = numpy.frombuffer(answer.content[-4:], back)
    assert ((raw.astype("<u4") << 16).view("<f4") if model == "brain" else raw).tolist() == [3, 4]
    assert infer(corpus, model, ("x", datatype, [1, 2], [1, 2])).status_code == 400


def test_an_unknown_rank_takes_any_shape(corpus: Server) -> None:
    for shape in ([], [3], [1, 2, 2]):
        count = int(numpy.prod(shape))
        assert given(infer(corpus, "rankless", ("x", "FP32", shape, [1.0] * count))) == ("FP32", shape, [1.0] * count)


def test_two_inputs_a_fixed_batch_and_external_data(corpus: Server) -> None:
    a, b = ("a", "FP32", [1, 2], [1, 2]), ("b", "FP32", [1, 2], [10, 20])
    assert given(infer(corpus, "two_inputs", a, b)) == ("FP32", [1, 2], [11, 22])
    assert "'b' is missing" in infer(corpus, "two_inputs", a).json()["error"]
    unequal = infer(corpus, "two_inputs", a, ("b", "FP32", [2, 2], [1, 2, 3, 4]))
    assert unequal.status_code == 400, unequal.text
    assert given(infer(corpus, "fixed", ("x", "FP32", [2, 3], [1] * 6)))[2] == [2] * 6
    assert "the model takes [2, 3]" in infer(corpus, "fixed", ("x", "FP32", [1, 3], [1] * 3)).json()["error"]
    answer = given(infer(corpus, "outside", ("x", "FP32", [1, 4], [1, 2, 3, 4])))
    assert numpy.allclose(answer[2], model_files.expected([[1, 2, 3, 4]]).ravel(), rtol=1e-5)


def test_nothing_but_the_bytes_of_the_only_input(corpus: Server) -> None:
    """Its shape follows from their number; what does not divide is refused, and so is a model with two inputs."""
    raw, headers = numpy.ones((2, 4), "<f4").tobytes(), {"inference-header-content-length": "0"}
    answer = corpus.client.post("/v2/models/outside/infer", content=raw, headers=headers)
    size = int(answer.headers["inference-header-content-length"])
    assert json.loads(answer.content[:size])["outputs"][0]["shape"] == [2, 3]
    floats = numpy.frombuffer(answer.content[size:], "<f4").reshape(2, 3)
    assert numpy.allclose(floats, model_files.expected(numpy.ones((2, 4))), rtol=1e-5)
    for model, body in (("outside", raw[:-1]), ("two_inputs", raw)):
        refused = corpus.client.post(f"/v2/models/{model}/infer", content=body, headers=headers)
        assert refused.status_code == 400
        assert isinstance(refused.json()["error"], str)


def test_a_run_that_fails_is_repeated_for_each_request_alone(corpus: Server) -> None:
    """A place beyond the table's end is known only when the model runs, by then together with others."""
    found = corpus.wait_log(
        "embedding requests are (batched, up to 32|not batched).*: a row gets the same answer in a batch as alone"
    )
    table = numpy_helper.to_array(model_files.weights(10, 3))

    def ask(number: int) -> None:
        chance = random.Random(number)
        ids = [chance.randrange(10) for _ in range(chance.randrange(4))]
        bad = number % 5 == 0
        answer = infer(corpus, "embedding", ("ids", "INT64", [len(ids) + bad], [*ids, *[99] * bad]))
        if bad:
            assert answer.status_code == 400
            assert "the model cannot take this input" in answer.json()["error"]
        else:
            assert numpy.allclose(given(answer)[2], table[ids].ravel(), rtol=1e-5)

    def largest_run() -> int:
        stats = corpus.client.get("/v2/models/embedding/stats").json()["model_stats"][0]
        return max(runs["batch_size"] for runs in stats["batch_stats"])

    ready = r"embedding worker 0 ready .*pid (\d+)"
    corpus.wait_log(ready)
    worker = psutil.Process(int(re.findall(ready, corpus.log)[-1]))
    with ThreadPoolExecutor(16) as crowd:
        list(crowd.map(ask, range(times(300, 5000))))
        for numbers in (range(16), (number for number in range(20) if number % 5)):
            # They wait for the worker, and so come to it together.
            worker.suspend()
            asked = [crowd.submit(ask, number) for number in numbers]
            wait_until(lambda: corpus.metric("panglot_requests_in_progress", model="embedding") == 16)
            worker.resume()
            for future in asked:
                future.result(60)
    # Where nothing is gained by it, which was measured, they are answered one by one.
    assert largest_run() > 4 or found[1] == "no runs"
    assert corpus.metric("panglot_worker_restarts_total", model="embedding") == 0


# What a model takes of the machine


def test_threads_are_those_of_the_worker_and_do_not_spin(tmp_path: Path) -> None:
    path = model_files.dynamic(tmp_path / "model.onnx")
    session: Any = open_model("onnx", ModelFile(str(path), "cpu", threads=2))
    options = session.session.get_session_options()
    assert options.intra_op_num_threads == 2
    for threads in ("intra_op", "inter_op"):
        assert options.get_session_config_entry(f"session.{threads}.allow_spinning") == "0"


def test_what_a_large_run_took_is_given_back(tmp_path: Path) -> None:
    """Its rows are 4 MB each between the two steps of the model."""
    wide = numpy_helper.from_array(numpy.ones((4, MB), "float32"), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["middle"]),
        helper.make_node("ReduceMean", ["middle", "axes"], ["y"]),
    ]
    axes = helper.make_tensor("axes", model_files.INT64, [1], [1])
    ends = [model_files.tensor(name, model_files.FLOAT, "n", size) for name, size in (("x", 4), ("y", 1))]
    made = model_files.model(nodes, ends[:1], ends[1:], [wide, axes])
    with serving(model_files.saved(made, tmp_path / "wide.onnx"), "--max-batch", "64") as server:
        server.predict([[1, 2, 3, 4]])
        [worker] = [psutil.Process(worker.pid) for worker in server.workers()]
        before = worker.memory_info().rss
        answer = server.predict([[1, 2, 3, 4]] * 60)
        assert answer.json()["y"] == [[10]] * 60
        wait_until(lambda: worker.memory_info().rss < before + 60 * MB)
