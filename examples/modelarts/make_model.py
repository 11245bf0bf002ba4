"""Makes model/digits.onnx from scikit-learn's handwritten digits, and the pictures beside it.

Needs scikit-learn, onnx and pillow; serving the example needs onnxruntime and pillow only.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

HERE = Path(__file__).parent

digits = load_digits()
rows = digits.images.reshape(-1, 64) / 16
seen, unseen = train_test_split(np.arange(len(rows)), test_size=0.2, random_state=0, stratify=digits.target)
model = LogisticRegression(max_iter=1000).fit(rows[seen], digits.target[seen])
print(f"{model.score(rows[unseen], digits.target[unseen]):.1%} of digits it has not seen are right")

graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["images", "weights", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
    ],
    "digits",
    [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 64])],
    [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 10])],
    [
        numpy_helper.from_array(model.coef_.T.astype(np.float32), "weights"),
        numpy_helper.from_array(model.intercept_.astype(np.float32), "bias"),
    ],
)
built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(built)
onnx.save(built, HERE / "model" / "digits.onnx")

for name, wanted in (("three.png", 3), ("seven.png", 7)):
    number = next(n for n in unseen if digits.target[n] == wanted)
    picture = Image.fromarray((digits.images[number] * 15.9).astype(np.uint8))
    picture.resize((64, 64), Image.Resampling.BOX).save(HERE / "model" / name)
