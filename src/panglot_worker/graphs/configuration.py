"""A graph file as data. Everything can travel as JSON, and knows the line it was written on."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional


class Position(NamedTuple):
    """Where something is written."""

    file: str = ""
    line: int = 0


class PortRef(NamedTuple):
    """`node:port` or `node:port:tag`."""

    node: str
    port: str
    tag: Optional[int]

    def __str__(self) -> str:
        return ":".join([self.node, self.port] + ([] if self.tag is None else [str(self.tag)]))


class Connection(NamedTuple):
    """One channel. `name` is set for a graph's own inputs and outputs."""

    cap: int
    ports: List[PortRef]
    name: str
    position: Position


class Node(NamedTuple):
    """A node of a graph. `ty` names its type, `res` the resources it wants, `cloned` how many threads run it."""

    name: str
    ty: str
    cloned: int
    res: List[str]
    args: Dict[str, Any]
    position: Position

    @property
    def types(self) -> List[str]:
        """The alternatives of `ty = "A|B"`."""
        return [name.strip() for name in self.ty.split("|")]


class Resource(NamedTuple):
    """Something nodes share, made when the first of them needs it. `ty` names its type."""

    name: str
    ty: str
    args: Dict[str, Any]
    position: Position


class GraphType(NamedTuple):
    """A graph as the file declares it; other graphs may use it as a type of node."""

    name: str
    nodes: List[Node]
    resources: List[Resource]
    inputs: List[Connection]
    outputs: List[Connection]
    connections: List[Connection]
    position: Position

    def node(self, name: str) -> Optional[Node]:
        return next((node for node in self.nodes if node.name == name), None)


class Config(NamedTuple):
    """A whole configuration, includes and all."""

    main: str
    graphs: Dict[str, GraphType]
    nodes: List[Node]
    """The nodes that all graphs share: the process has one instance of each."""
    resources: List[Resource]
    file: str
    text: str
    """The file as it was read, after its template was rendered."""

    def shared(self, name: str) -> Optional[Node]:
        return next((node for node in self.nodes if node.name == name), None)


# As JSON and back


def to_json(config: Config) -> Dict[str, Any]:
    """A configuration that JSON can hold. JSON makes lists of named tuples, so only the dict of graphs is converted."""
    return {**config._asdict(), "graphs": list(config.graphs.values())}


def from_json(value: Dict[str, Any]) -> Config:
    """The configuration that `to_json` made into JSON."""
    graphs = [
        GraphType(
            name,
            [_node(node) for node in nodes],
            [_resource(resource) for resource in resources],
            [_connection(connection) for connection in inputs],
            [_connection(connection) for connection in outputs],
            [_connection(connection) for connection in connections],
            Position(*position),
        )
        for name, nodes, resources, inputs, outputs, connections, position in value["graphs"]
    ]
    return Config(
        value["main"],
        {graph.name: graph for graph in graphs},
        [_node(node) for node in value["nodes"]],
        [_resource(resource) for resource in value["resources"]],
        value["file"],
        value["text"],
    )


def _node(value: List[Any]) -> Node:
    name, ty, cloned, res, args, position = value
    return Node(name, ty, cloned, res, args, Position(*position))


def _resource(value: List[Any]) -> Resource:
    name, ty, args, position = value
    return Resource(name, ty, args, Position(*position))


def _connection(value: List[Any]) -> Connection:
    cap, ports, name, position = value
    return Connection(cap, [PortRef(*port) for port in ports], name, Position(*position))
