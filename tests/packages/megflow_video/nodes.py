"""Tells of every frame what it is: a node per stream, one that all streams share, and one that words the result."""

import json
import os
import time

from megflow import register


@register(inputs=["inp"], outputs=["out"])
class Mark:
    """One per stream: counts the frames it sees itself."""

    def __init__(self, name, args):
        self.seen = 0

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        picture = envelope.msg["data"]
        envelope.msg = {"data": picture, "seen": self.seen, "stream": envelope.from_addr}
        self.seen += 1
        self.out.send(envelope)


@register(inputs=["inp"], outputs=["out"])
class Read:
    """Shared by all streams: reads the number written in the frame."""

    def __init__(self, name, args):
        pass

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        picture = envelope.msg["data"]
        envelope.msg["read"] = sum(
            1 << bit for bit in range(12) if picture[4:12, bit * 16 + 4 : bit * 16 + 12].mean() > 125
        )
        envelope.msg["shape"] = picture.shape
        picture[32:, :] = (0, 0, 255)
        self.out.send(envelope)


@register(inputs=["inp"], outputs=["out"])
class Tell:
    def __init__(self, name, args):
        self.pause = float(os.environ.get("TEST_PAUSE", "0"))

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        time.sleep(self.pause)
        told = {key: value for key, value in envelope.msg.items() if key != "data"}
        told["frame"] = envelope.partial_id
        self.out.send(envelope.repack(json.dumps(told)))
