"""Trains the network, writes digits.onnx, and records the measured accuracy in README.md.

Given the path of a CSV file of other people's digits (in each line the 784 grey levels of a 28x28 picture and
the digit), it also measures on every second line of that.
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from strokes import draw

if importlib.util.find_spec("panglot") is None:  # training needs no server, and of it only this name
    sys.modules["panglot"] = types.SimpleNamespace(ClientError=ValueError)  # type: ignore[assignment]

from model import Model, decode, to_features, to_ink

SEED = 7
HIDDEN = (192, 96)
COPIES = 12  # distorted copies of each training picture
DRAWN = 3000  # drawn pictures of each digit


def main() -> None:
    digits = load_digits()
    train_cells, test_cells, train_labels, test_labels = train_test_split(
        digits.images, digits.target, test_size=0.2, stratify=digits.target, random_state=SEED
    )
    network = fit(*training_set(train_cells, train_labels))
    export(network, "digits.onnx")

    held_out = [to_png(255 - np.asarray(enlarge(cells))) for cells in test_cells]
    rows = [
        measure("held-out digits, their 64 cells as they are", test_cells.reshape(-1, 64) / 16, test_labels),
        measure("held-out digits, as 160x160 black on white PNG files", read(held_out), test_labels),
    ]
    if len(sys.argv) > 1:
        table = np.loadtxt(sys.argv[1], delimiter=",")[1::2].astype(np.uint8)
        others = [to_png(row[:-1].reshape(28, 28)) for row in table]
        rows.append(measure("MNIST digits, as 28x28 white on black PNG files", read(others), table[:, -1]))
    record(rows)


def training_set(cells: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels: each training digit as it is, as a picture, and distorted; and drawn digits."""
    rng = np.random.default_rng(SEED)
    features: list[np.ndarray] = []
    for digit in cells:
        as_picture = to_features(to_ink(enlarge(digit)))
        distorted = [to_features(distort(digit, rng)) for _ in range(COPIES)]
        features += [digit.ravel() / 16, digit.ravel() / 16, as_picture, as_picture, *distorted]
    targets: list[int] = np.repeat(labels, 4 + COPIES).tolist()
    for label in range(10):
        features += [to_features(to_ink(draw(label, rng))) for _ in range(DRAWN)]
        targets += [label] * DRAWN
    noisy = np.stack(features) + rng.normal(0, 0.03, (len(features), 64))
    return noisy.clip(0, 1).astype(np.float32), np.array(targets)


def distort(cells: np.ndarray, rng: np.random.Generator) -> Image.Image:
    """A digit (8x8, 0 to 16) as a picture: turned, slanted, warped, wider or narrower, thicker or thinner."""
    y, x = np.mgrid[-4.4:4.4:40j, -4.4:4.4:40j]
    turn, slant = rng.uniform(-0.15, 0.15), rng.uniform(-0.3, 0.3)
    warp = [ndimage.zoom(rng.normal(0, 0.5, (4, 4)), 10) for _ in range(2)]
    rows = 3.5 + y * np.cos(turn) - x * np.sin(turn) + warp[0]
    columns = 3.5 + y * (np.sin(turn) + slant) + x * np.cos(turn) + warp[1]
    ink = ndimage.map_coordinates(cells, [rows, columns], order=1)
    edge, sharpness = rng.uniform(0.25, 0.55), rng.uniform(2.5, 16)
    ink = (ink / ink.max() - edge) * sharpness + 0.5
    ink = np.where(ink < 0.2, 0, ink.clip(0, 1))
    return Image.fromarray((255 * ink).astype(np.uint8)).resize((int(rng.integers(30, 51)), 40))


def fit(features: np.ndarray, labels: np.ndarray) -> MLPClassifier:
    network = MLPClassifier(HIDDEN, alpha=1e-3, batch_size=128, warm_start=True, random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of rounds is fixed on purpose
        for rate, rounds in ((1e-3, 20), (1e-4, 6)):
            network.set_params(learning_rate_init=rate, max_iter=rounds).fit(features, labels)
    return network


def export(network: MLPClassifier, path: str) -> None:
    """The network as ONNX: features [batch, 64] -> Gemm, Relu, Gemm, Relu, Gemm, Softmax -> probabilities."""
    nodes, weights, previous = [], [], "features"
    last = len(network.coefs_) - 1
    for i in range(last + 1):
        weights.append(numpy_helper.from_array(network.coefs_[i].astype(np.float32), f"w{i}"))
        weights.append(numpy_helper.from_array(network.intercepts_[i].astype(np.float32), f"b{i}"))
        nodes.append(helper.make_node("Gemm", [previous, f"w{i}", f"b{i}"], [f"sum{i}"]))
        activation, previous = ("Relu", f"layer{i}") if i < last else ("Softmax", "probabilities")
        nodes.append(helper.make_node(activation, [f"sum{i}"], [previous]))
    inputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 64])]
    outputs = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])]
    graph = helper.make_graph(nodes, "digits", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def enlarge(cells: np.ndarray) -> Image.Image:
    return Image.fromarray((255 / 16 * cells).astype(np.uint8)).resize((160, 160), Image.BICUBIC)


def to_png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


def read(files: list[bytes]) -> np.ndarray:
    return np.stack([to_features(to_ink(decode(file))) for file in files])


def measure(name: str, features: np.ndarray, labels: np.ndarray) -> str:
    """A row for the README: which share of these digits the exported network reads right."""
    model = Model()
    model.load()
    outputs = model.predict_batch(list(features.astype(np.float32)))
    accuracy = np.mean([model.postprocess(output)["digit"] for output in outputs] == labels)
    row = f"| {name} | {len(labels)} | {accuracy:.4f} |"
    print(row)
    return row


def record(rows: list[str]) -> None:
    """Puts the rows into the table of README.md that starts with 'Measured on'."""
    readme = Path("README.md")
    head = "| Measured on | Pictures | Accuracy |\n| --- | ---: | ---: |\n"
    text = re.sub(re.escape(head) + r"(\|.*\n)*", lambda _: head + "\n".join(rows) + "\n", readme.read_text())
    readme.write_text(text)


if __name__ == "__main__":
    main()
