"""Nodes made of plain functions."""

import inspect
import re
from functools import partial

from megflow import Envelope
from megflow.registry import register


class Context:
    """What a function with a parameter `context` gets: the node's name and its arguments, one object per instance."""

    def __init__(self, name, args):
        self.name = name
        for key, value in args.items():
            setattr(self, key, value)


def _type_name(function, name):
    return name or re.sub(r"_([A-Za-z])", r"\1", function.__name__).title()


class _FunctionNode:
    function = None

    def __init__(self, name, args):
        self.name = name
        self.context = Context(name, args)
        call = type(self).function
        if "context" in inspect.signature(call).parameters:
            call = partial(call, context=self.context)
        self.call = call


class _Map(_FunctionNode):
    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            envelope.msg = self.call(envelope.msg)
            self.out.send(envelope)


class _Reduce(_FunctionNode):
    def exec(self):
        envelopes = [receiver.recv() for receiver in self.inp]
        if all(envelope is None for envelope in envelopes):
            return
        assert None not in envelopes, "node '%s': some of its inputs ended before others" % self.name
        self.out.send(envelopes[0].repack(self.call([envelope.msg for envelope in envelopes])))


class _Sink(_FunctionNode):
    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            self.call(envelope.msg)


class _Source(_FunctionNode):
    def exec(self):
        for number, item in enumerate(self.call()):
            self.out.send(Envelope.pack(item, info={"partial_id": number}))


class _Batch(_FunctionNode):
    def exec(self):
        envelopes, _ = self.inp.batch_recv(self.context.batch_size, self.context.timeout)
        if envelopes:
            self.call([envelope.msg for envelope in envelopes])
            for envelope in envelopes:
                self.out.send(envelope)


def _decorator(base, inputs, outputs, name, exclusive):
    def decorate(function):
        chosen = _type_name(function, name)
        cls = type(chosen, (base,), {"function": staticmethod(function), "__module__": function.__module__})
        register(name=chosen, inputs=inputs, outputs=outputs, exclusive=exclusive)(cls)
        return cls

    return decorate


def map_def(name=None, exclusive=False):
    """inp -> out: the result of the function is the new message."""
    return _decorator(_Map, ["inp"], ["out"], name, exclusive)


def reduce_def(name=None, exclusive=False):
    """inp:[] -> out: the function gets one message of each input."""
    return _decorator(_Reduce, ["inp:[]"], ["out"], name, exclusive)


def sink_def(name=None, exclusive=False):
    """inp: what the function returns is ignored."""
    return _decorator(_Sink, ["inp"], [], name, exclusive)


def source_def(name=None, exclusive=False):
    """-> out: the function returns an iterable of messages."""
    return _decorator(_Source, [], ["out"], name, exclusive)


def batch_def(name=None, exclusive=False):
    """inp -> out: the function changes the list of messages itself. Needs the arguments batch_size and timeout."""
    return _decorator(_Batch, ["inp"], ["out"], name, exclusive)
