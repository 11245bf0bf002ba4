"""Makes digits.onnx: pixels in, the likelihood of each digit out. Needs onnx, numpy and scikit-learn."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

rows, digits = load_digits(return_X_y=True)
learned = LogisticRegression(max_iter=2000).fit(rows / 16, digits)
weights = numpy_helper.from_array(learned.coef_.T.astype(np.float32), "weights")
bias = numpy_helper.from_array(learned.intercept_.astype(np.float32), "bias")
nodes = [
    helper.make_node("Flatten", ["pixels"], ["flat"]),
    helper.make_node("Gemm", ["flat", "weights", "bias"], ["scores"]),
    helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
]
graph = helper.make_graph(
    nodes,
    "digits",
    [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 1, 8, 8])],
    [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 10])],
    [weights, bias],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "digits.onnx")
