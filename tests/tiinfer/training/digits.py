"""Real handwritten digits (scikit-learn's), as pictures of 28 by 28, white on black."""

from __future__ import annotations

import base64

import cv2
import numpy as np
from sklearn.datasets import load_digits

TRAINED = 600
"""The first so many are for training, the rest for questions."""


def pictures() -> tuple[np.ndarray, np.ndarray]:
    """All pictures and what they show."""
    data = load_digits()
    grey = (data.images * 255 / 16).astype(np.uint8)
    return np.stack([cv2.resize(picture, (28, 28), interpolation=cv2.INTER_LINEAR) for picture in grey]), data.target


def questions(count: int) -> list[tuple[str, int]]:
    """Pictures no model was trained on, as base64 of a JPEG, each with the right answer."""
    images, labels = pictures()
    found = []
    for image, label in list(zip(images, labels, strict=True))[TRAINED : TRAINED + count]:
        _, encoded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_GRAY2BGR), [cv2.IMWRITE_JPEG_QUALITY, 95])
        found.append((base64.b64encode(encoded.tobytes()).decode(), int(label)))
    return found
