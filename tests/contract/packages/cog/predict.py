"""One order in a prediction, as a text."""

import json
from typing import Any

import acts

from cog import BasePredictor, Input


class Predictor(BasePredictor):
    def setup(self):
        acts.load()

    def predict(self, order: str = Input(description="the order as JSON")) -> Any:
        return acts.act(json.loads(order))
