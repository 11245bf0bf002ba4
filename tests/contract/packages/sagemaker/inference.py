"""One order in a call, as the text of its body."""

import json

import acts


def model_fn(model_dir):
    acts.load()


def input_fn(input_data, content_type):
    return json.loads(input_data)


def predict_fn(data, model):
    return acts.act(data)
