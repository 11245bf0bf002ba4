from typing import Any, Dict, List
import json
import os


class EndpointHandler:
    def __init__(self, path=""):
        # load the optimized model
        with open(os.path.join(path, "vocab.json")) as f:
            self.words = json.load(f)

    def __call__(self, data: Dict[str, Any]) -> List[Dict[str, Any]]:
        """
        Args:
            data (:obj:):
                includes the input data and the parameters for the inference.
        Return:
            A :obj:`list`:. The object returned should be a list like [{"label": 0.9939950108528137}]
        """
        inputs = data.pop("inputs", data)
        parameters = data.pop("parameters", None)

        # pass inputs with all kwargs in data
        if parameters is not None:
            return self.pipeline(inputs, **parameters)
        return self.pipeline(inputs)

    def pipeline(self, inputs, top_k=1):
        if isinstance(inputs, list):
            return [self.pipeline(text, top_k) for text in inputs]
        score = 0.5 + sum(self.words.get(word, 0) for word in inputs.lower().split()) / 10
        labels = [{"label": "POSITIVE", "score": score}, {"label": "NEGATIVE", "score": 1 - score}]
        return sorted(labels, key=lambda entry: -entry["score"])[:top_k]
