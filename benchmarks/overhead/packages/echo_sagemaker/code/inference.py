"""Answers with what it gets."""

import json


def model_fn(model_dir):
    return None


def input_fn(body, content_type):
    return json.loads(body)


def predict_fn(data, model):
    return data


def output_fn(prediction, accept):
    return json.dumps(prediction)
