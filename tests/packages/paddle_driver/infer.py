"""A driver that does more than pass things on: two pictures in, the driver scales between the steps. No model in it."""

import argparse
import os

import numpy as np
from PIL import Image

BUILT = []


class InferenceEngine(object):
    """Where two pictures differ."""

    def __init__(self, args):
        super(InferenceEngine, self).__init__()
        self.args = args
        BUILT.append(self)

    def preprocess(self, path):
        return np.asarray(Image.open(path).convert("RGB")).astype("int64")

    def run(self, one, other):
        return np.abs(one - other)

    def postprocess(self, x, scale):
        assert super(InferenceEngine, self).__init__() is None
        return np.clip(x * scale, 0, 255).astype("uint8")


def infer_main(args):
    engine = InferenceEngine(args)
    assert isinstance(engine, InferenceEngine)
    assert args.batch_size == 1, "one at a time"
    if args.batch_size == 1:
        args.batch_size = 2  # the next call must not see this
    one, other = engine.preprocess(args.clean_path), engine.preprocess(args.noisy_path)
    if one.shape != other.shape:
        raise ValueError("the pictures have different sizes")
    difference = engine.run(one, other)
    scale = 1 if difference.max() > 127 else 2
    heat_map = engine.postprocess(difference, scale)
    built = len(BUILT)
    suffixes = [os.path.splitext(path)[1] for path in (engine.args.clean_path, engine.args.noisy_path)]
    return heat_map, float(difference.mean()), built, suffixes


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clean-path", default=None, type=str)
    parser.add_argument("--noisy-path", default=None, type=str)
    parser.add_argument("--batch-size", default=1, type=int)
    options = parser.parse_args()
    heat_map, mean, built, suffixes = infer_main(options)
