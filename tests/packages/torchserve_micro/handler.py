"""A handler whose batches are worked on in pieces of two, by threads."""

from ts.handler_utils.micro_batching import MicroBatching
from ts.handler_utils.timer import timed


class Pieces:
    def __init__(self):
        self.context = None
        self.handle = MicroBatching(self)

    def initialize(self, context):
        config = context.model_yaml_config["micro_batching"]
        self.handle.micro_batch_size = config["micro_batch_size"]
        self.handle.parallelism = config["parallelism"]
        self.greeting = context.model_yaml_config["handler"]["greeting"]

    @timed
    def preprocess(self, data):
        return [row.get("data") or row.get("body") for row in data]

    @timed
    def inference(self, texts):
        return ["%s %s of %d" % (self.greeting, text, len(texts)) for text in texts]

    @timed
    def postprocess(self, texts):
        return [text.encode() for text in texts]

    def _is_describe(self):
        return False

    def _is_explain(self):
        return self.context.get_request_header(0, "explain") == "True"

    def explain_handle(self, data, raw):
        return [{"explained": text} for text in data]
