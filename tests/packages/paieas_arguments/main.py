import argparse

import allspark


class Scaled(allspark.BaseProcessor):
    def __init__(self, scale, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale

    def initialize(self):
        print("scale", self.scale)

    def process(self, data):
        return str(float(data) * self.scale), 200


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=2.0)
    Scaled(parser.parse_args().scale, worker_threads=4).run()
