"""A script for text, whose engine wants all arguments, and whose parser is in a module beside it."""

from settings import config


class InferenceEngine:
    def __init__(self, args):
        self.args = args

    def preprocess(self, args):
        return args.text.split(args.separator)

    def run(self, x):
        return {"words": x, "count": len(x)}

    def postprocess(self, x):
        return x


def main(args):
    engine = InferenceEngine(args)
    result = engine.postprocess(engine.run(engine.preprocess(args)))
    print(result)


if __name__ == "__main__":
    main(config())
