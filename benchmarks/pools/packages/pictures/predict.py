"""A JPEG in, a class out: a small convolutional net with random weights, on one thread."""

import os

import cv2
import numpy as np
import onnxruntime

cv2.setNumThreads(1)


class Model:
    def load(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(net(), options, providers=["CPUExecutionProvider"])

    def preprocess(self, upload):
        picture = cv2.imdecode(np.frombuffer(upload.bytes, np.uint8), cv2.IMREAD_COLOR)
        small = cv2.resize(picture, (224, 224), interpolation=cv2.INTER_AREA)
        return ((small[:, :, ::-1].astype(np.float32) / 255 - 0.45) / 0.22).transpose(2, 0, 1)[None].copy()

    def predict(self, picture):
        scores = self.session.run(None, {"picture": picture})[0]
        return {"class": int(scores.argmax()), "pid": os.getpid()}


def net():
    """conv 3x3/4 -> relu -> conv 3x3/2 -> relu -> mean -> 10 classes."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weights = {
        "w1": random.normal(0, 0.1, (24, 3, 3, 3)),
        "w2": random.normal(0, 0.1, (48, 24, 3, 3)),
        "w3": random.normal(0, 0.1, (48, 10)),
    }
    nodes = [
        helper.make_node("Conv", ["picture", "w1"], ["a"], strides=[4, 4], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "w3"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()
