"""Takes its time, fails when told to, and cannot be made anew when told so."""

import time

from megflow import register


@register(inputs=["inp"], outputs=["out"])
class Some:
    spoilt = False

    def __init__(self, name, args):
        if Some.spoilt:
            raise RuntimeError("spoilt")

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        word = bytes(envelope.msg["data"])
        if word == b"slow":
            time.sleep(0.1)
        Some.spoilt = Some.spoilt or word == b"spoil"
        if word in (b"fail", b"spoil"):
            raise ValueError(word)
        self.out.send(envelope)
