"""A script beside its model, which has hard-coded the platform's path for a second file."""

import json
import os

from labels import LABELS

NOTE = "/opt/ml/model/note.txt"


def model_fn(model_dir):
    with open(os.path.join(model_dir, "weights.json")) as file:
        return json.load(file)


def transform_fn(model, input_data, content_type, accept):
    note = open(NOTE).read().strip() if os.path.exists(NOTE) else "no note"
    return json.dumps({"label": LABELS[int(model["index"])], "note": note})
