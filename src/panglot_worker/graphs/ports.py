"""Which ports a type of node has: the built-in ones, and how Python nodes declare theirs."""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from panglot_worker.graphs.configuration import GraphType

UNIT, LIST, DICT, DYNAMIC = "unit", "list", "dict", "dynamic"
SUFFIXES = {"": UNIT, "[]": LIST, "{}": DICT, "dyn": DYNAMIC}

INPUT, OUTPUT = "input", "output"


class Ports(NamedTuple):
    """Names of ports with their kinds."""

    inputs: Dict[str, str]
    outputs: Dict[str, str]

    def find(self, name: str) -> Optional[Tuple[str, str]]:
        """Direction and kind of a port: inputs are looked at first."""
        if name in self.inputs:
            return INPUT, self.inputs[name]
        if name in self.outputs:
            return OUTPUT, self.outputs[name]
        return None

    @property
    def names(self) -> List[str]:
        return [*self.inputs, *self.outputs]


def declared(inputs: Iterable[str], outputs: Iterable[str]) -> Ports:
    """The ports that the words of `register` declare. Raises ValueError for a word that declares none."""
    return Ports(dict(map(_declaration, inputs)), dict(map(_declaration, outputs)))


def _declaration(word: str) -> Tuple[str, str]:
    name, _, suffix = word.partition(":")
    kind = SUFFIXES.get(suffix.strip())
    if kind is None or not name.strip():
        raise ValueError("'%s' declares no port: write 'name', 'name:[]' or 'name:{}'" % word)
    return name.strip(), kind


def of_graph(graph: GraphType) -> Ports:
    """The ports of a graph used as a node: its own inputs and outputs."""
    return Ports({port.name: UNIT for port in graph.inputs}, {port.name: UNIT for port in graph.outputs})


def _ports(inputs: str, outputs: str) -> Ports:
    return declared(inputs.split(), outputs.split())


BUILT_IN = {
    "ImageServer": _ports("inp", "out"),
    "BytesServer": _ports("inp", "out"),
    "VideoServer": _ports("inp:dyn", "out:dyn"),
    "ImageInput": _ports("inp", "out"),
    "VideoInput": _ports("inp:dyn", "out:dyn"),
    "Transform": _ports("inp", "out"),
    "Bcast": _ports("inp", "out:[]"),
    "Demux": _ports("inp", "out:{}"),
    "DynDemux": _ports("inp", "out:dyn"),
    "DynOutTransform": _ports("inp", "out:dyn"),
    "DynInTransform": _ports("inp:dyn", "out"),
    "Reorder": _ports("inp", "out"),
    "NoopProducer": _ports("", "out"),
    "NoopConsumer": _ports("inp", ""),
}
"""The types every graph may use without a plugin."""

SERVERS = ("ImageServer", "BytesServer", "VideoServer")
"""Built-in types that listen on a port of their own."""

GATHERS, SPREADS = "DynInTransform", "DynOutTransform"
"""Built-in types between a template and ordinary channels: the first gathers the output of all its instances, the
second sends each instance the messages for it."""
