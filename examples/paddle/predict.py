"""The same prediction by the training engine: what step 8 of the chain compares with."""

import argparse
import os

import numpy as np
import paddle
from net import DigitNet
from PIL import Image
from reprod_log import ReprodLogger

HERE = os.path.dirname(os.path.abspath(__file__))


def get_args(add_help=True):
    parser = argparse.ArgumentParser(description="prediction by the training engine", add_help=add_help)
    parser.add_argument("--img-path", default=os.path.join(HERE, "images", "demo.png"))
    parser.add_argument("--pretrained", default=os.path.join(HERE, "digits.pdparams"))
    return parser.parse_args()


def main(args):
    net = DigitNet()
    net.set_state_dict(paddle.load(args.pretrained))
    net.eval()
    img = np.asarray(Image.open(args.img_path).convert("L").resize((8, 8), Image.BOX)) / 255
    output = paddle.nn.functional.softmax(net(paddle.to_tensor(img.astype("float32")[None, None]))).numpy().flatten()
    class_id = output.argmax()
    return class_id, output[class_id]


if __name__ == "__main__":
    class_id, prob = main(get_args())
    print(f"class_id: {class_id}, prob: {prob}")
    reprod_logger = ReprodLogger()
    reprod_logger.add("class_id", np.array([class_id]))
    reprod_logger.add("prob", np.array([prob]))
    reprod_logger.save("output_training_engine.npy")
