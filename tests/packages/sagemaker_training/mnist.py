"""A training script that also serves: what is behind __main__ runs on training machines alone."""

import argparse
import json
import os


def model_fn(model_dir):
    return json.loads(open(os.path.join(model_dir, "model.json")).read())


def predict_fn(data, model):
    return data * model["factor"]


def train(args):
    raise SystemExit("training must not run here")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-dir", default=os.environ.get("SM_MODEL_DIR", "/opt/ml/model"))
    parser.add_argument("--train", default=os.environ["SM_CHANNEL_TRAINING"])
    train(parser.parse_args())
