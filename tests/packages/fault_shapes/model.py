"""Stacks its items, as most models do: that works only when all have the same shape."""

from __future__ import annotations

import numpy as np


class Model:
    def preprocess(self, request):
        return np.full(request["shape"], request["value"])

    def predict_batch(self, items):
        print(f"batch of {len(items)}")
        return [float(total) for total in np.stack(items).sum(axis=(1, 2))]
