"""Says whether a sentence is friendly: a predictor of Cog in one small file.

The server makes one `Predictor` in every process, calls `setup` once, and then `predict` for every request. Put your
own model where the word list is:

- The arguments of `predict` are the inputs, with their types: str, int, float, bool, `cog.Path` for files.
- What it returns is the output; a `cog.Path` is sent as a data URL, an iterator as a list.
- An exception is a failed prediction, and its traceback is in the log.
"""

import json
import math
import re

from cog import BaseModel, BasePredictor, Input


class Output(BaseModel):
    label: str
    score: float


class Predictor(BasePredictor):
    def setup(self):
        with open("words.json", encoding="utf-8") as file:
            self.weights = json.load(file)

    def predict(self, text: str = Input(description="A sentence")) -> Output:
        words = re.findall(r"\w+", text.lower())
        score = 1 / (1 + math.exp(-sum(self.weights.get(word, 0.0) for word in words)))
        return Output(label="friendly" if score >= 0.5 else "unfriendly", score=round(score, 4))
