"""Make digits.npz and request.json from scikit-learn's digits: `python train.py`."""

import json
import pathlib

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

HERE = pathlib.Path(__file__).parent
TRAINED = 1500

data = load_digits()
inputs = data.images.reshape(len(data.images), -1) / 16
model = LogisticRegression(C=1.0, max_iter=500).fit(inputs[:TRAINED], data.target[:TRAINED])
right = model.predict(inputs) == data.target
print(f"right on {right[TRAINED:].mean():.1%} of {len(inputs) - TRAINED} others")
weights = {"weights": model.coef_.T.astype(np.float32), "bias": model.intercept_.astype(np.float32)}
np.savez_compressed(HERE / "digits.npz", **weights)
unseen = [next(n for n in range(TRAINED, len(inputs)) if data.target[n] == digit and right[n]) for digit in (7, 3)]
rows = [[round(float(value), 4) for value in inputs[n]] for n in unseen]
(HERE / "request.json").write_text(json.dumps({"data": rows}) + "\n")
