"""ONNX files of every kind: what is read from them, how they run, and what is said of those that do not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import TensorProto

from panglot_worker.errors import ClientError, ScriptError
from panglot_worker.runtimes import open_model, proving
from panglot_worker.runtimes.base import ModelFile, ModelRuntime
from panglot_worker.runtimes.rows import Feed, run_rows, run_together
from support import model_files
from support.server import panglot

Make = Callable[[Path], Path]


def opened(path: Path) -> ModelRuntime:
    return open_model("onnx", ModelFile(str(path), "cpu"))


def tensors(model: ModelRuntime) -> list[tuple[str, str, Any]]:
    return [(one.name, one.datatype, one.shape) for one in (*model.inputs, *model.outputs)]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (model_files.dynamic, [("x", "FP32", [-1, 4]), ("y", "FP32", [-1, 3])]),
        (model_files.two_inputs, [("a", "FP32", [-1, 2]), ("b", "FP32", [-1, 2]), ("sum", "FP32", [-1, 2])]),
        (model_files.rankless, [("x", "FP32", None), ("y", "FP32", None)]),
        (model_files.texts, [("x", "BYTES", [-1]), ("y", "BYTES", [-1])]),
        (model_files.zipmap, [("x", "FP32", [-1, 4]), ("label", "INT64", [-1]), ("probability", "FP32", [-1, 3])]),
    ],
)
def test_what_a_model_takes_is_read_from_its_file(make: Make, expected: Any, tmp_path: Path) -> None:
    assert tensors(opened(make(tmp_path / "model.onnx"))) == expected


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT32", "UINT64", "BOOL"])
def test_every_type_runs(kind: str, tmp_path: Path) -> None:
    model = opened(model_files.doubling(tmp_path / "model.onnx", TensorProto.DataType.Value(kind), "n", 2))
    [taken] = model.inputs
    array = numpy.array([[0, 1], [3, 2]]).astype({"BF16": "float32"}.get(taken.datatype, numpy.dtype(kind_of(taken))))
    given = model.run({"x": array}, ["y"])["y"]
    assert given.shape == (2, 2)
    assert (given == (array if kind == "BOOL" else array * 2)).all()
    assert proving.verdict(model, 32).rows in (0, 32)


def kind_of(one: Any) -> str:
    return {"FP16": "float16", "FP64": "float64", "BF16": "float32"}.get(one.datatype, one.datatype.lower())


# Whether rows share runs


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (model_files.centred, "a row gets another answer in a batch than alone"),
        (model_files.rankless, "the shape of its input x is not known"),
        (model_files.sequence, "5 rows gave parts of shape []"),
        (model_files.fixed, "the first dimension of its input x is fixed, 2"),
    ],
)
def test_rows_share_no_run_unless_that_is_proven(make: Make, why: str, tmp_path: Path) -> None:
    found = proving.verdict(opened(make(tmp_path / "model.onnx")), 32)
    assert (found.rows, found.sliced, found.why) == (0, 0, why)


BY_ROWS = [
    model_files.dynamic, model_files.two_inputs, model_files.texts, model_files.embedding, model_files.zipmap,
]  # fmt: skip


@pytest.mark.parametrize("make", BY_ROWS)
def test_rows_may_share_runs_where_it_is_proven(make: Make, tmp_path: Path) -> None:
    found = proving.verdict(opened(make(tmp_path / "model.onnx")), 16)
    assert found.sliced >= 16, found.why
    assert "a row gets the same answer in a batch as alone, " in found.why
    assert proving.verdict(opened(tmp_path / "model.onnx"), 1).why == "--max-batch is 1"


@pytest.mark.quiet
@pytest.mark.parametrize("make", BY_ROWS)
def test_rows_share_runs_where_it_is_proven_and_cheaper(make: Make, tmp_path: Path) -> None:
    found = proving.verdict(opened(make(tmp_path / "model.onnx")), 16)
    assert (found.rows, found.sliced) == (16, 16), found.why
    assert "a row gets the same answer in a batch as alone, and a row takes " in found.why


class Costly(ModelRuntime):
    """A model whose runs take as long as their rows do one by one."""

    def __init__(self, inner: ModelRuntime) -> None:
        self.inner, self.inputs, self.outputs = inner, inner.inputs, inner.outputs

    def run(self, arrays: Any, wanted: Any) -> Any:
        time.sleep(0.002 * len(arrays["x"]))
        return self.inner.run(arrays, wanted)


@pytest.mark.quiet
def test_rows_share_no_run_where_nothing_is_gained(tmp_path: Path) -> None:
    found = proving.verdict(Costly(opened(model_files.dynamic(tmp_path / "model.onnx"))), 16)
    assert (found.rows, found.sliced) == (0, 32)
    assert re.fullmatch(".* the same answer in a batch as alone, but a row takes .*: nothing is gained", found.why)


class Watched(ModelRuntime):
    """A model that notes how many rows each of its runs has."""

    def __init__(self, inner: ModelRuntime) -> None:
        self.inner, self.inputs, self.outputs = inner, inner.inputs, inner.outputs
        self.runs: list[int] = []

    def run(self, arrays: Any, wanted: Any) -> Any:
        self.runs.append(len(arrays["x"]))
        return self.inner.run(arrays, wanted)


def test_rows_are_summed_over_requests_and_sliced(tmp_path: Path) -> None:
    """Requests of unequal rows become one run; one of many rows becomes several; one without rows is answered too."""
    model = Watched(opened(model_files.dynamic(tmp_path / "model.onnx")))
    numbers = numpy.random.RandomState(1)
    feeds = [Feed({"x": numbers.rand(rows, 4).astype("float32")}, ("y",)) for rows in (3, 1, 0, 5)]
    answers = run_together(model, feeds, 32)
    assert model.runs == [9]
    for feed, answer in zip(feeds, answers, strict=True):
        assert numpy.allclose(answer["y"], model_files.expected(feed.arrays["x"]), rtol=1e-5)
    many = Feed({"x": numbers.rand(70, 4).astype("float32")}, ("y",))
    assert numpy.allclose(run_rows(model, many, 32)["y"], model_files.expected(many.arrays["x"]), rtol=1e-5)
    assert model.runs[1:] == [32, 32, 6]
    assert run_rows(model, feeds[2], 32)["y"].shape == (0, 3)


# Files that do not work


def cut(path: Path) -> Path:
    path.write_bytes(model_files.dynamic(path).read_bytes()[:60])
    return path


def without_data(path: Path) -> Path:
    model_files.external(path, "weights.bin")
    (path.parent / "weights.bin").unlink()
    return path


def with_half_the_data(path: Path) -> Path:
    model_files.external(path, "weights.bin")
    data = path.parent / "weights.bin"
    data.write_bytes(data.read_bytes()[:20])
    return path


def no_model(path: Path) -> Path:
    path.write_text("<html>404</html>")
    return path


@pytest.mark.parametrize(
    ("make", "problem", "fix"),
    [
        (cut, "this is not a complete ONNX file", "copy or export it again"),
        (no_model, "this is not a complete ONNX file", "copy or export it again"),
        (without_data, "its weights are in weights.bin, which is not there", "put it beside the model"),
        (with_half_the_data, "which has 20 bytes of 48", "copy it again"),
        (model_files.strange_domain, "it has operators of acme.operators", "export it without them"),
        (model_files.too_new, "it has opset 90, and the installed onnxruntime knows up to", "opset_version="),
    ],
)
def test_a_broken_file_is_one_line_with_a_fix(make: Make, problem: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(ScriptError) as raised:
        opened(make(tmp_path / "model.onnx"))
    assert problem in raised.value.problem
    assert fix in raised.value.fix
    assert raised.value.file.endswith("model.onnx")


def test_external_data_is_found(tmp_path: Path) -> None:
    model = opened(model_files.external(tmp_path / "model.onnx", "weights.bin"))
    rows = numpy.ones((1, 4), "float32")
    assert numpy.allclose(model.run({"x": rows}, ["y"])["y"], model_files.expected(rows))


def test_cuda_that_is_not_there_fails_the_load(tmp_path: Path) -> None:
    path = model_files.dynamic(tmp_path / "model.onnx")
    with pytest.raises(ScriptError, match="--device cuda:0: onnxruntime sees no CUDA device"):
        open_model("onnx", ModelFile(str(path), "cuda:0"))


def test_a_place_beyond_a_tables_end_is_the_clients_fault(tmp_path: Path) -> None:
    model = opened(model_files.embedding(tmp_path / "model.onnx"))
    with pytest.raises(ClientError, match="the model cannot take this input"):
        model.run({"ids": numpy.array([10])}, ["row"])


def test_what_cannot_work_ends_the_command(tmp_path: Path) -> None:
    """Exit code 3, and one line: known before a worker starts, and told by one."""
    pointer = tmp_path / "pointer.onnx"
    pointer.write_text(model_files.LFS_POINTER)
    for path, said in (
        (pointer, "pointer.onnx: this is only a pointer of git LFS, not the model (fix: run git lfs pull)"),
        (cut(tmp_path / "cut.onnx"), "cut.onnx: this is not a complete ONNX file"),
    ):
        ended = panglot("serve", str(path), "--port", "0")
        assert ended.returncode == 3
        [line] = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
        assert said in line
        assert "Traceback" not in ended.stderr
