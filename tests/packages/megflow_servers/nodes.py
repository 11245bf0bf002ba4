import json

import numpy as np
from megflow.func_op import map_def

from megflow import register


@map_def()
def upper(message):
    return {"data": np.frombuffer(bytes(message["data"]).upper(), np.uint8)}


@register(inputs=["inp"], outputs=["out"])
class Flip:
    """Answers with the picture upside down, or with what `extra_data` asks for."""

    def __init__(self, name, args):
        pass

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        picture, word = envelope.msg["data"], envelope.msg["extra_data"]
        answer = {
            "smaller": lambda: {"data": np.ascontiguousarray(picture[:2, :3])},
            "view": lambda: {"data": picture[:, ::-1]},
            "text": lambda: "text",
            "nothing": lambda: {"other": 1},
            "float": lambda: {"data": picture.astype(np.float32)},
        }.get(word, lambda: {"data": np.ascontiguousarray(picture[::-1])})()
        self.out.send(envelope.repack(answer))


@register(inputs=["inp"], outputs=["out"])
class Told:
    def __init__(self, name, args):
        pass

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        data, extra = envelope.msg["data"], envelope.msg["extra_data"]
        if extra == "bytes":
            self.out.send(envelope.repack(b"bytes"))
            return
        found = {
            "shape": data.shape,
            "dtype": str(data.dtype),
            "contiguous": bool(data.flags["C_CONTIGUOUS"]),
            "first": data[0, 0].tolist(),
            "extra": extra,
            "number": envelope.partial_id,
        }
        self.out.send(envelope.repack(json.dumps(found)))
