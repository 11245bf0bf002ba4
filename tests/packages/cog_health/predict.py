from __future__ import annotations

import functools

from cog import BasePredictor, Input


def counted(function):
    @functools.wraps(function)
    def inner(*arguments, **named):
        return function(*arguments, **named)

    return inner


class Healthy(BasePredictor):
    """Is healthy until a prediction says otherwise."""

    def setup(self, weights: str | None = None):
        self.healthy = True
        self.weights = weights

    @counted
    def predict(self, healthy: bool = Input(default=True), name: str = "x"):
        self.healthy = healthy
        return {"weights": self.weights, "name": name}

    def healthcheck(self):
        if not self.healthy:
            raise RuntimeError("not well")
        return True
