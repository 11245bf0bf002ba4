"""Says how friendly a text is, by the words in it."""

import json
import os

from ts.utils.util import PredictionException


class Sentiment:
    """The sum of the values of a text's words."""

    def initialize(self, context):
        folder = context.system_properties["model_dir"]
        with open(os.path.join(folder, "words.json")) as file:
            self.words = json.load(file)

    def handle(self, data, context):
        return [self.judge(row.get("data") or row.get("body")) for row in data]

    def judge(self, body):
        if not isinstance(body, dict) or not isinstance(body.get("text"), str):
            raise PredictionException('send {"text": "..."}', 400)
        score = sum(self.words.get(word, 0) for word in body["text"].lower().split())
        return {"label": "friendly" if score > 0 else "unfriendly" if score < 0 else "neutral", "score": score}
