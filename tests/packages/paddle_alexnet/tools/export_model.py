"""Export with the three calls of the chain."""

import argparse
import os
import sys

import paddle
from paddle import nn
from paddle.static import InputSpec

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from alexnet import alexnet


def get_args(add_help=True):
    parser = argparse.ArgumentParser(description="export", add_help=add_help)
    parser.add_argument("--img-size", default=224, type=int)
    parser.add_argument("--save-inference-dir", default=".")
    return parser.parse_args()


def export(args):
    model = nn.Sequential(alexnet(), nn.Softmax())
    model.eval()
    model = paddle.jit.to_static(
        model, input_spec=[InputSpec(shape=[None, 3, args.img_size, args.img_size], dtype="float32")]
    )
    paddle.jit.save(model, os.path.join(args.save_inference_dir, "inference"))


if __name__ == "__main__":
    export(get_args())
