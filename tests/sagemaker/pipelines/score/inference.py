"""The sum of every row, in the type that the client accepts."""

import json


def model_fn(model_dir):
    return None


def input_fn(body, content_type):
    if content_type not in ("text/csv", "application/x-rows"):
        raise ValueError(f"not {content_type}")
    text = body if isinstance(body, str) else bytes(body).decode()
    return content_type, [[float(part) for part in line.split(",")] for line in text.splitlines()]


def predict_fn(data, model):
    return data[0], [sum(row) for row in data[1]]


def output_fn(prediction, accept):
    kind, sums = prediction
    if accept == "text/csv":
        return "\n".join(f"{number:g}" for number in sums), "text/csv"
    return json.dumps({"from": kind, "sums": sums}), "application/json"
