"""The steps of an engine without Paddle: an order is the text."""

import argparse
import json

import acts


class InferenceEngine:
    def __init__(self, args):
        acts.load()

    def preprocess(self, text):
        return json.loads(text)

    def run(self, x):
        return acts.act(x)

    def postprocess(self, x):
        return x


def get_args(add_help=True):
    parser = argparse.ArgumentParser(add_help=add_help)
    parser.add_argument("--text", default='{"id": 1}', type=str)
    return parser.parse_args()


def infer_main(args):
    engine = InferenceEngine(args)
    return engine.postprocess(engine.run(engine.preprocess(args.text)))


if __name__ == "__main__":
    print(infer_main(get_args()))
