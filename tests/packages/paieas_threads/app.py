import allspark
import numpy as np


class Base(allspark.BaseProcessor):
    def process(self, data):
        return self.answer(np.frombuffer(data, dtype="<f4")), 0


class Mean(Base):
    """Never calls the constructor of its base."""

    def __init__(self):
        self.calls = 0

    def answer(self, values):
        self.calls += 1
        return float(values.mean())


if __name__ == "__main__":
    Mean().run()
