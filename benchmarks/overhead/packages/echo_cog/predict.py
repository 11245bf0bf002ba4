"""Echo of a predictor of Cog."""

from cog import BasePredictor


class Predictor(BasePredictor):
    def predict(self, values: list[float]) -> list[float]:
        return values
