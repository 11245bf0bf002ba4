import json
import os


def model_fn(model_dir):
    with open(os.path.join(model_dir, "words.json")) as file:
        return json.load(file)
