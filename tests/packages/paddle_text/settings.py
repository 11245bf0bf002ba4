import argparse


def config():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", default="one two", type=str)
    parser.add_argument("--separator", default=" ", choices=[" ", ","])
    return parser.parse_args()
