from ts.utils.util import PredictionException


class Handler:
    def initialize(self, context):
        raise FileNotFoundError("model.pt lies on a disk that is not here")

    def handle(self, data, context):
        raise PredictionException("never")
