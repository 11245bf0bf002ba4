from __future__ import annotations

import functools
import os
import time

from cog import BasePredictor, Input


def counted(function):
    @functools.wraps(function)
    def inner(*arguments, **named):
        return function(*arguments, **named)

    return inner


def wait_for(file: str):
    """Wait until there is a file of this name; no name, no wait."""
    while file and not os.path.exists(file):
        time.sleep(0.05)


class Healthy(BasePredictor):
    """Is healthy until a prediction says otherwise."""

    def setup(self, weights: str | None = None):
        wait_for(os.environ.get("SETUP_GATE", ""))
        self.healthy, self.hangs = True, False
        self.weights = weights

    @counted
    def predict(self, healthy: bool = Input(default=True), name: str = "x", gate: str = "", hangs: bool = False):
        self.healthy, self.hangs = healthy, hangs
        print("healthy from now on:", healthy)
        wait_for(gate)
        return {"weights": self.weights, "name": name}

    def healthcheck(self):
        while self.hangs:
            time.sleep(0.05)
        if not self.healthy:
            raise RuntimeError("not well")
        return True
