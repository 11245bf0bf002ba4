"""Step 2 of the chain: the trained net, with softmax, as files for inference."""

import argparse
import os

import paddle
from net import DigitNet
from paddle import nn
from paddle.static import InputSpec

HERE = os.path.dirname(os.path.abspath(__file__))


def get_args(add_help=True):
    parser = argparse.ArgumentParser(description="export the net for inference", add_help=add_help)
    parser.add_argument("--pretrained", default=os.path.join(HERE, "digits.pdparams"), help="weights")
    parser.add_argument("--save-inference-dir", default=os.path.join(HERE, "inference"), help="where the files go")
    parser.add_argument("--img-size", default=8, type=int)
    return parser.parse_args()


def export(args):
    net = DigitNet()
    net.set_state_dict(paddle.load(args.pretrained))
    model = nn.Sequential(net, nn.Softmax())
    model.eval()
    shape = [None, 1, args.img_size, args.img_size]
    model = paddle.jit.to_static(model, input_spec=[InputSpec(shape=shape, dtype="float32")])
    paddle.jit.save(model, os.path.join(args.save_inference_dir, "inference"))


if __name__ == "__main__":
    export(get_args())
