"""Small model files of every kind, made when a test asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, TEXT, INT64 = TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT64
OPSET, IR = 21, 10
LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def tensor(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def model(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], weights: Sequence[Any] = (),
    opset: int = OPSET, domains: Sequence[tuple[str, int]] = (),
) -> Any:  # fmt: skip
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), list(weights))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*domain) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR)


def saved(made: Any, path: Path) -> Path:
    path.write_bytes(made.SerializeToString())
    return path


def weights(rows: int, columns: int, name: str = "w") -> Any:
    numbers = numpy.random.RandomState(3).standard_normal((rows, columns)).astype("float32")
    return numpy_helper.from_array(numbers, name)


def dynamic(path: Path) -> Path:
    """x FP32 [N, 4] by a matrix to y FP32 [N, 3]; `expected` says what it gives."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return saved(model([node], [tensor("x", FLOAT, "n", 4)], [tensor("y", FLOAT, "n", 3)], [weights(4, 3)]), path)


def expected(rows: Any) -> Any:
    return numpy.asarray(rows, "float32") @ numpy_helper.to_array(weights(4, 3))


def centred(path: Path) -> Path:
    """Subtracts the mean of its batch: a free first dimension, and every answer depends on the neighbours."""
    nodes = [helper.make_node("ReduceMean", ["x", "axes"], ["m"]), helper.make_node("Sub", ["x", "m"], ["y"])]
    axes = helper.make_tensor("axes", INT64, [1], [0])
    return saved(model(nodes, [tensor("x", FLOAT, "n", 4)], [tensor("y", FLOAT, "n", 4)], [axes]), path)


def two_inputs(path: Path) -> Path:
    """a and b, FP32 [N, 2] each, to their sum."""
    node = helper.make_node("Add", ["a", "b"], ["sum"])
    inputs = [tensor("a", FLOAT, "n", 2), tensor("b", FLOAT, "n", 2)]
    return saved(model([node], inputs, [tensor("sum", FLOAT, "n", 2)]), path)


def doubling(path: Path, kind: int, *shape: Any) -> Path:
    """x to itself and itself, of any type: a fixed batch, a single type."""
    through = [helper.make_node("Cast", ["x"], ["f"], to=FLOAT), helper.make_node("Add", ["f", "f"], ["g"])]
    nodes = [*through, helper.make_node("Cast", ["g"], ["y"], to=kind)]
    return saved(model(nodes, [tensor("x", kind, *shape)], [tensor("y", kind, *shape)]), path)


def fixed(path: Path) -> Path:
    return doubling(path, FLOAT, 2, 3)


def rankless(path: Path) -> Path:
    """Says nothing about the shape of its input."""
    node = helper.make_node("Identity", ["x"], ["y"])
    ends = [helper.make_tensor_value_info(name, FLOAT, None) for name in "xy"]
    return saved(model([node], ends[:1], ends[1:]), path)


def texts(path: Path) -> Path:
    """x BYTES [N] as it is."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return saved(model([node], [tensor("x", TEXT, "n")], [tensor("y", TEXT, "n")]), path)


def embedding(path: Path) -> Path:
    """ids INT64 [N] to rows of a table with ten of them."""
    node = helper.make_node("Gather", ["w", "ids"], ["row"])
    return saved(model([node], [tensor("ids", INT64, "n")], [tensor("row", FLOAT, "n", 3)], [weights(10, 3)]), path)


def zipmap(path: Path) -> Path:
    """What sklearn's converter writes for a classifier: a label, and a sequence of maps."""
    scores = helper.make_node("MatMul", ["x", "w"], ["s"])
    classes = helper.make_node("ArgMax", ["s"], ["label"], axis=1, keepdims=0)
    maps = helper.make_node(
        "ZipMap", ["s"], ["probability"], domain="ai.onnx.ml", classlabels_strings=["no", "yes", "?"]
    )
    value = helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(FLOAT, []))
    sequence = helper.make_value_info("probability", helper.make_sequence_type_proto(value))
    outputs = [tensor("label", INT64, "n"), sequence]
    made = model([scores, classes, maps], [tensor("x", FLOAT, "n", 4)], outputs, [weights(4, 3)],
                 domains=[("ai.onnx.ml", 3)])  # fmt: skip
    return saved(made, path)


def sequence(path: Path) -> Path:
    """x FP32 [N, 2] to the sequence of its columns."""
    node = helper.make_node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=1)
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, ["n", 1]))
    return saved(model([node], [tensor("x", FLOAT, "n", 2)], [helper.make_value_info("parts", kind)]), path)


def picture(path: Path, side: int = 8) -> Path:
    """The mean of each colour of pixels FP32 [N, 3, side, side]."""
    node = helper.make_node("ReduceMean", ["pixels", "axes"], ["colour"], keepdims=0)
    axes = helper.make_tensor("axes", INT64, [2], [2, 3])
    inputs = [tensor("pixels", FLOAT, "n", 3, side, side)]
    return saved(model([node], inputs, [tensor("colour", FLOAT, "n", 3)], [axes]), path)


def external(path: Path, data: str) -> Path:
    """The same as `dynamic`, with its weights in a file beside it."""
    made = onnx.load(str(dynamic(path)))
    onnx.save(made, str(path), save_as_external_data=True, location=data, size_threshold=0)
    return path


def strange_domain(path: Path) -> Path:
    node = helper.make_node("Odd", ["x"], ["y"], domain="acme.operators")
    ends = [tensor("x", FLOAT, "n", 4)], [tensor("y", FLOAT, "n", 4)]
    return saved(model([node], *ends, domains=[("acme.operators", 1)]), path)


def too_new(path: Path) -> Path:
    node = helper.make_node("Add", ["x", "x"], ["y"])
    return saved(model([node], [tensor("x", FLOAT, "n", 4)], [tensor("y", FLOAT, "n", 4)], opset=90), path)
