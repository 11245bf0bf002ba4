"""Make models/digits.npz, custom_files/labels.csv and two pictures from scikit-learn's digits: `python train.py`."""

import csv
import pathlib

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

HERE = pathlib.Path(__file__).parent
TRAINED = 1500
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

data = load_digits()
inputs = data.images.reshape(len(data.images), -1) / 16
model = LogisticRegression(C=1.0, max_iter=500).fit(inputs[:TRAINED], data.target[:TRAINED])
right = model.predict(inputs) == data.target
print(f"right on {right[TRAINED:].mean():.1%} of {len(inputs) - TRAINED} others")
for folder in ("models", "custom_files"):
    (HERE / folder).mkdir(exist_ok=True)
weights = {"weights": model.coef_.T.astype(np.float32), "bias": model.intercept_.astype(np.float32)}
np.savez_compressed(HERE / "models" / "digits.npz", **weights)
with open(HERE / "custom_files" / "labels.csv", "w", newline="") as file:
    csv.writer(file).writerows(enumerate(NAMES))
for digit in (3, 7):
    unseen = next(n for n in range(TRAINED, len(inputs)) if data.target[n] == digit and right[n])
    picture = Image.fromarray((data.images[unseen] * 255 / 16).astype(np.uint8))
    picture.resize((64, 64), Image.Resampling.NEAREST).save(HERE / f"{NAMES[digit]}.png", optimize=True)
