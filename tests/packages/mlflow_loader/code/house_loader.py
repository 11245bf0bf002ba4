"""A loader of the project's own, as `mlflow.pyfunc.save_model(loader_module=...)` saves it."""

import json
import os


class Houses:
    def __init__(self, prices):
        self.prices = prices

    def predict(self, data):
        raise AssertionError("MLmodel names another function")

    def estimate(self, data):
        return [round(self.prices[town] * size, 2) for town, size in zip(data["town"], data["size"], strict=True)]


def _load_pyfunc(path):
    with open(os.path.join(path, "prices.json")) as file:
        return Houses(json.load(file))
