import json

from megflow import register


@register(inputs=["inp"], outputs=["out"])
class Shape:
    def __init__(self, name, args):
        self.name = name
        self.unit = args["unit"]

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        data = envelope.msg["data"]
        extra = envelope.msg["extra_data"]
        answer = {"shape": list(data.shape), "unit": self.unit, "extra": extra, "first": data[0, 0].tolist()}
        self.out.send(envelope.repack(json.dumps(answer)))
