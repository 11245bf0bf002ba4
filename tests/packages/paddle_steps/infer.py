"""The steps of an engine without Paddle, for what needs no model: a picture's size."""

import argparse


class InferenceEngine:
    """Tells how many bytes a picture has, and how it is called."""

    def __init__(self, args):
        self.args = args

    def preprocess(self, img_path):
        with open(img_path, "rb") as file:
            return img_path, file.read()

    def run(self, x):
        return x[0].rpartition(".")[2], len(x[1])

    def postprocess(self, x):
        return x[0], x[1]


def get_args(add_help=True):
    parser = argparse.ArgumentParser(description="sizes of pictures", add_help=add_help)
    parser.add_argument("--img-path", default="./images/demo.jpg", help="the picture")
    return parser.parse_args()


def infer_main(args):
    engine = InferenceEngine(args)
    img = engine.preprocess(args.img_path)
    output = engine.run(img)
    ending, size = engine.postprocess(output)
    return ending, size


if __name__ == "__main__":
    args = get_args()
    print(infer_main(args))
