"""Sentiments of texts, as examples with transformers do it: a tokenizer, a model's class of its own, labels."""

import json
import logging
import os
from abc import ABC

import torch
from ts.torch_handler.base_handler import BaseHandler

logger = logging.getLogger(__name__)


class SentimentHandler(BaseHandler, ABC):
    def __init__(self):
        super().__init__()
        self.initialized = False

    def initialize(self, ctx):
        self.manifest = ctx.manifest
        properties = ctx.system_properties
        model_dir = properties.get("model_dir")
        self.device = torch.device(
            "cuda:" + str(properties.get("gpu_id"))
            if torch.cuda.is_available() and properties.get("gpu_id") is not None
            else "cpu"
        )
        with open(os.path.join(model_dir, "setup_config.json")) as file:
            self.setup_config = json.load(file)
        with open(os.path.join(model_dir, "index_to_name.json")) as file:
            self.mapping = json.load(file)
        self.weights = torch.tensor(self.setup_config["weights"], device=self.device)
        self.model = lambda tokens: torch.stack([self.weights[row].sum(0) for row in tokens])
        self.initialized = True

    def preprocess(self, requests):
        rows = []
        for data in requests:
            text = data.get("data")
            if text is None:
                text = data.get("body")
            if isinstance(text, (bytes, bytearray)):
                text = text.decode("utf-8")
            logger.info("Received text: '%s'", text)
            known = [self.setup_config["words"].get(word, 0) for word in text.lower().split()]
            rows.append(torch.tensor(known[: self.setup_config["max_length"]] or [0]))
        return rows

    def inference(self, input_batch):
        return self.model(input_batch)

    def postprocess(self, scores):
        return [self.mapping[str(index)] for index in scores.argmax(1).tolist()]

    def get_insights(self, input_batch, text, target):
        return [
            {"words": str(text), "importances": self.weights[row].tolist(), "target": target} for row in input_batch
        ]
