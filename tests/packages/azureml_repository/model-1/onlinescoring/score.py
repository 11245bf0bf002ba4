import json
import logging
import os


def init():
    """Load the model, once for the container."""
    global model
    model_path = os.path.join(os.getenv("AZUREML_MODEL_DIR"), "model/regression.json")
    with open(model_path) as file:
        model = json.load(file)
    logging.info("Init complete")


def run(raw_data):
    """Answer one request."""
    logging.info("model 1: request received")
    data = json.loads(raw_data)["data"]
    return [sum(weight * value for weight, value in zip(model["weights"], row)) + model["bias"] for row in data]  # noqa: B905
