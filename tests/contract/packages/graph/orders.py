"""A node for each kind of server: orders in the path of a picture, and orders in the body."""

import json
from urllib.parse import unquote

import acts
import numpy

from megflow import register


@register(inputs=["inp"], outputs=["out"])
class OfPictures:
    def __init__(self, name, args):
        acts.load()

    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            order = json.loads(unquote(envelope.msg["extra_data"]))
            self.out.send(envelope.repack(json.dumps(acts.act(order))))


@register(inputs=["inp"], outputs=["out"])
class OfBytes:
    def __init__(self, name, args):
        acts.load()

    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            order = json.loads(bytes(envelope.msg["data"]))
            text = json.dumps(acts.act(order)).encode()
            self.out.send(envelope.repack({"data": numpy.frombuffer(text, numpy.uint8)}))
