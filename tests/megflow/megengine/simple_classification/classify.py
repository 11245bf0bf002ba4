import json

import numpy as np

from megflow import register

from .lite import PredModel


@register(inputs=["inp"], outputs=["out"])
class Classify:
    def __init__(self, name, args):
        self.name = name
        self._model = PredModel(args["path"])
        self._model.inference(np.zeros((224, 224, 3), dtype=np.uint8))

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        data = envelope.msg["data"]
        result = self._model.inference(data)
        self.out.send(envelope.repack(json.dumps(str(result))))
