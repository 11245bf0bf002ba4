"""Several requests in one run of the model: the same answers, in fewer runs; and not where they would differ."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from support.paddle import CLOSE, python
from support.server import Server, serving

FREE, SOFTMAX_OVER_ALL, FIXED = "free", "softmax", "fixed"
EXPORT = """
import sys, paddle
from paddle import nn
from paddle.static import InputSpec
paddle.seed(3)
folder, kind = sys.argv[1:]
if kind == "softmax":  # an answer that depends on its neighbours
    net = nn.Sequential(nn.Linear(64, 10), nn.Softmax(axis=0))
else:
    net = nn.Sequential(nn.Linear(64, 10))
net.eval()
spec = [InputSpec(shape=[1 if kind == "fixed" else None, 64], dtype="float32")]
paddle.jit.save(paddle.jit.to_static(net, input_spec=spec), folder + "/inference")
"""
SCRIPT = """
import argparse, os, time
import numpy as np
from paddle import inference

MOST = [0]

class InferenceEngine:
    def __init__(self, args):
        config = inference.Config(args.model_dir + "/inference.pdmodel", args.model_dir + "/inference.pdiparams")
        config.disable_gpu()
        config.enable_memory_optim()
        config.disable_glog_info()
        self.predictor = inference.create_predictor(config)
        self.input = self.predictor.get_input_handle(self.predictor.get_input_names()[0])
        self.output = self.predictor.get_output_handle(self.predictor.get_output_names()[0])
    def preprocess(self, data_path):
        return np.load(data_path)
    def run(self, x):
        MOST[0] = max(MOST[0], len(x))
        self.input.copy_from_cpu(x)
        self.predictor.run()
        time.sleep(0.06)
        return self.output.copy_to_cpu()
    def postprocess(self, x):
        return x[0], MOST[0]

def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-dir", default=None)
    parser.add_argument("--data-path", default="none.npy")
    return parser.parse_args()

def infer_main(args):
    engine = InferenceEngine(args)
    x = engine.preprocess(args.data_path)
    y = engine.run(x)
    scores, most = engine.postprocess(y)
    return scores, most

if __name__ == "__main__":
    print(infer_main(get_args()))
"""
CLIENTS = 16


def package(folder: Path, kind: str) -> Path:
    (folder / "inference").mkdir()
    (folder / "infer.py").write_text(SCRIPT)
    python("-c", EXPORT, str(folder / "inference"), kind)
    return folder


def bodies(count: int) -> list[bytes]:
    found = []
    for seed in range(count):
        buffer = io.BytesIO()
        numpy.save(buffer, numpy.random.default_rng(seed).standard_normal((1, 64)).astype("float32"))
        found.append(buffer.getvalue())
    return found


def crowd(server: Server, sent: list[bytes]) -> list[Any]:
    """Every answer to clients that ask at the same time."""
    answers: list[Any] = [None] * len(sent)
    gate = threading.Barrier(CLIENTS + 1)

    def client(first: int) -> None:
        with server.new_client() as own:
            own.get("/v2/health/live")
            gate.wait()
            for at in range(first, len(sent), CLIENTS):
                answers[at] = own.post("/predict", content=sent[at]).json()

    threads = [threading.Thread(target=client, args=(first,)) for first in range(CLIENTS)]
    for thread in threads:
        thread.start()
    gate.wait()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.document("paddle.07")
def test_a_batch_has_the_same_answers_in_fewer_runs(tmp_path: Path) -> None:
    """A run takes 60 ms, however many inputs share it: in the meantime others come, on a busy machine too."""
    folder = package(tmp_path, FREE)
    sent = bodies(CLIENTS * 4)
    with serving(folder) as on, serving(folder, "--max-batch", "1") as off:
        batched, single = crowd(on, sent), crowd(off, sent)
        assert max(answer["most"] for answer in batched) > 3, "requests did share runs"
        assert on.metric("panglot_batch_size_sum") > 1.5 * on.metric("panglot_batch_size_count")
        # The check at warm-up runs three at once, whatever the setting is.
        assert max(answer["most"] for answer in single) <= 3
        assert off.metric("panglot_batch_size_sum") == off.metric("panglot_batch_size_count")
        for one, other in zip(batched, single, strict=True):
            assert numpy.abs(numpy.array(one["scores"]) - numpy.array(other["scores"])).max() <= CLOSE


def test_answers_that_depend_on_their_neighbours_are_not_batched(tmp_path: Path) -> None:
    with serving(package(tmp_path, SOFTMAX_OVER_ALL)) as server:
        server.wait_log("requests are not batched: the results of 3 inputs in one run are not those")
        sent = bodies(CLIENTS * 2)
        answers = crowd(server, sent)
        assert all(answer["scores"] == [1.0] * 10 for answer in answers)


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(package(tmp_path_factory.mktemp("fixed"), FIXED)) as server:
        yield server
    assert "do not share" not in server.log, "nothing is wrong with such a model"


def test_a_fixed_batch_dimension_is_not_batched(fixed: Server) -> None:
    answers = crowd(fixed, bodies(CLIENTS * 2))
    assert {answer["most"] for answer in answers} == {1}


def test_a_clients_array_of_the_wrong_type_or_shape(fixed: Server) -> None:
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.zeros((1, 64)))
    answer = fixed.predict(content=buffer.getvalue())
    assert answer.status_code == 400
    assert "the model takes float32, not float64" in answer.text
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.zeros((1, 63), "float32"))
    assert fixed.predict(content=buffer.getvalue()).status_code == 500
    assert fixed.predict(content=bodies(1)[0]).status_code == 200


@pytest.mark.parametrize("count", [2, 3])
def test_unequal_shapes_are_run_apart(count: int) -> None:
    """Of a batch with several shapes, those of one shape share a run."""
    from panglot_worker.dialects.paddle import batching

    runs: list[tuple[int, ...]] = []

    def run(x: Any) -> Any:
        runs.append(x.shape)
        return x * 2

    values = [numpy.full((1, size), size, "float32") for size in [3, 4, 3, 5][: count + 1]]
    outputs = batching.run(run, values)
    assert all((output == value * 2).all() for output, value in zip(outputs, values, strict=True))
    assert len(runs) == len({value.shape for value in values})
