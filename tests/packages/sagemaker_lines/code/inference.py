"""In the manner of public text scripts: JSON lines in and out, weights and words beside each other in model_dir."""

import json
import logging
import os
import sys

logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)
logger.addHandler(logging.StreamHandler(sys.stdout))
JSONLINES = "application/jsonlines"


def model_fn(model_dir, context=None):
    logger.info("loading from %s", model_dir)
    with open(os.path.join(model_dir, "vocabulary.txt"), encoding="utf-8") as file:
        return {word.strip(): number for number, word in enumerate(file)}


def input_fn(request_body, request_content_type="application/json"):
    if request_content_type == JSONLINES:
        text = request_body.decode("utf-8") if isinstance(request_body, (bytes, bytearray)) else request_body
        return [json.loads(line)["text"] for line in text.splitlines() if line]
    if request_content_type == "application/json":
        return [json.loads(request_body)["text"]]
    raise ValueError("Requested unsupported ContentType in content_type: " + request_content_type)


def predict_fn(input_object, model):
    return [[model.get(word, -1) for word in text.split()] for text in input_object]


def output_fn(predictions, accept):
    if accept == JSONLINES:
        return "\n".join(json.dumps({"tokens": row}) for row in predictions), accept
    return json.dumps(predictions)
