"""A model that counts its calls, and is no longer healthy after the second."""


class Model:
    def __init__(self):
        self._calls = 0

    def load(self):
        pass

    def predict(self):
        self._calls += 1
        return self._calls

    def is_healthy(self):
        if self._calls == 3:
            raise ValueError("cannot tell")
        return self._calls < 2
