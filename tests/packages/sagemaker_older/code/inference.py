"""In the manner of scripts for the older containers: what each function gets, and every form of an answer."""

import json

from sagemaker_containers.beta.framework import encoders, worker


def model_fn(model_dir):
    return encoders.csv_to_numpy('"1","2"').tolist()


def input_fn(data, content_type):
    return [type(data).__name__, data if isinstance(data, str) else data.decode("latin-1"), content_type]


def predict_fn(data, model):
    if data[1] == "raise":
        raise ValueError("no way")
    return [*data, model]


def output_fn(prediction, accept):
    text = json.dumps([*prediction, accept])
    answers = {
        "tuple": (text, "application/x-mine"),
        "table": (encoders.array_to_csv(["a,b", "c"]), "text/csv"),
        "text": text,
        "bytes": text.encode(),
        "dict": {"a": 1},
        "none": None,
        "response": worker.Response(text, mimetype="text/csv", status=203, headers={"X-A": "1"}),
    }
    return answers.get(prediction[1], (text, accept))
