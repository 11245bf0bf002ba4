from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.modelarts import Digits, learn
from support.server import Server, serving

SAVED_MODELS = """
import sys
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
stored = np.load(folder + "/digits.npz")


class Linear(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(stored["weights"])
        self.bias = tf.Variable(stored["bias"])

    @tf.function(input_signature=[tf.TensorSpec((None, 784), tf.float32, name="images")])
    def flat(self, images):
        return {"scores": images @ self.weights + self.bias}

    @tf.function(input_signature=[tf.TensorSpec((None, 28, 28), tf.float32, name="images")])
    def square(self, images):
        return {"scores": tf.reshape(images, (-1, 784)) @ self.weights + self.bias}

    @tf.function(input_signature=[tf.TensorSpec((None, None, None, 3), tf.float32, name="images")])
    def brightness(self, images):
        return {"mean": tf.reduce_mean(images, axis=[1, 2, 3]), "name": tf.constant(["bright"])}


model = Linear()
tf.saved_model.save(model, folder + "/flat", signatures={"any_name": model.flat})
tf.saved_model.save(model, folder + "/square", signatures=model.square)
tf.saved_model.save(model, folder + "/two", signatures={"serving_default": model.flat, "other": model.square})
tf.saved_model.save(model, folder + "/odd", signatures={"first": model.flat, "second": model.square})
tf.saved_model.save(model, folder + "/vision", signatures=model.brightness)
tf.saved_model.save(model, folder + "/none")


class OverKeras(tf.Module):
    def __init__(self):
        super().__init__()
        self.network = tf.keras.Sequential([tf.keras.layers.Input((784,)), tf.keras.layers.Dense(10)])
        self.network.layers[-1].set_weights([stored["weights"], stored["bias"]])

    @tf.function(input_signature=[tf.TensorSpec((None, 784), tf.float32, name="images")])
    def flat(self, images):
        return {"scores": self.network(images)}


model = OverKeras()
tf.saved_model.save(model, folder + "/keras3", signatures=model.flat)
graph = tf.Graph()
with graph.as_default():
    x = tf.compat.v1.placeholder(tf.float32, (None, 784), name="images")
    weights = tf.compat.v1.get_variable("weights", initializer=stored["weights"], use_resource=False)
    y = tf.add(tf.matmul(x, weights), stored["bias"], name="scores")
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.saved_model.simple_save(session, folder + "/tensorflow1", {"images": x}, {"scores": y})
        graph_def = tf.compat.v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["scores"])
with open(folder + "/frozen.pb", "wb") as file:
    file.write(graph_def.SerializeToString())
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a test time for the models that it may be the first to ask for: beside others they take minutes."""
    for item in items:
        if "saved_models" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def digits() -> Digits:
    return learn()


@pytest.fixture(scope="session")
def saved_models(digits: Digits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SavedModels by name: flat, square, two, odd, vision, none, keras3, tensorflow1; and frozen.pb."""
    folder = tmp_path_factory.mktemp("saved")
    np.savez(folder / "digits.npz", weights=digits.weights, bias=digits.bias)
    subprocess.run([sys.executable, "-c", SAVED_MODELS, str(folder)], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def echo() -> Iterator[Server]:
    with serving("modelarts_echo") as server:
        yield server
