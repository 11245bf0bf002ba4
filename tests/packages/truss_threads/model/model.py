"""Two calls meet: with fewer than two at once, the barrier breaks."""

import threading
import time


class Model:
    def __init__(self, **kwargs):
        self._barrier = threading.Barrier(2, timeout=20)

    def predict(self, model_input):
        if model_input.get("meet"):
            self._barrier.wait()
            return "met"
        return self.slow() if model_input.get("stream") else model_input

    def slow(self):
        for part in "ab":
            time.sleep(0.05)
            yield part
