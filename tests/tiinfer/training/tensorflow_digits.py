"""Write a network for digits twice: `python tensorflow_digits.py UNZIPPED SAVED`, a Keras 3 folder, a SavedModel."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import tf_keras
from digits import TRAINED, pictures


def trained() -> list[np.ndarray]:
    """Weights and bias of one layer: least squares against the right answers, held back a little."""
    images, labels = pictures()
    inputs = np.c_[images[:TRAINED].reshape(TRAINED, -1) / 255, np.ones(TRAINED)]
    wanted = np.eye(10)[labels[:TRAINED]]
    solved = np.linalg.solve(inputs.T @ inputs + 3 * np.eye(inputs.shape[1]), inputs.T @ wanted)
    return [solved[:-1], solved[-1]]


def network(library, first):
    layers = library.layers
    model = library.Sequential([first, layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(10)])
    model.layers[-1].set_weights(trained())
    return model


unzipped, saved = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    network(keras, keras.layers.Input((28, 28, 1))).save(f"{folder}/model.keras")
    with zipfile.ZipFile(f"{folder}/model.keras") as archive:
        archive.extractall(unzipped)
network(tf_keras, tf_keras.layers.InputLayer(input_shape=(28, 28, 1))).save(saved, save_format="tf")
