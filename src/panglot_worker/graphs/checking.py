"""Whether a graph can be wired: every node, type and port it names is there and fits."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from panglot_worker.graphs.configuration import Config, Connection, GraphType, Node, PortRef
from panglot_worker.graphs.errors import GraphError, near
from panglot_worker.graphs.ports import BUILT_IN, DICT, DYNAMIC, GATHERS, INPUT, SERVERS, Ports, of_graph


class Types(NamedTuple):
    """The types that a configuration may name."""

    nodes: Mapping[str, Ports]
    """Types of nodes, those of plugins and the built-in ones, with their ports."""
    resources: Set[str]
    complete: bool = True
    """Whether these are all the types there are: then an unknown name is an error."""


class ConnectionEnd(NamedTuple):
    """One end of a connection: the node and port it leads to."""

    ref: PortRef
    node: Node
    shared: bool
    direction: str
    kind: str


def check(config: Config, types: Types) -> List[str]:
    """Check that a graph can run. Returns sentences about oddities. Raises GraphError where it cannot run."""
    return _Check(config, types).run()


def ports_of(config: Config, node_type: str, types: Types) -> Optional[Ports]:
    """The ports of a type by its name: node types beat graph names. None when it is not known."""
    if node_type in types.nodes:
        return types.nodes[node_type]
    if node_type in config.graphs:
        return of_graph(config.graphs[node_type])
    return None


def is_graph(config: Config, node: Node, types: Types) -> bool:
    return node.types[0] not in types.nodes and node.types[0] in config.graphs


def find_end(config: Config, graph: GraphType, types: Types, ref: PortRef) -> Optional[ConnectionEnd]:
    """The end a port name stands for; local names shadow shared ones. None when node or port is not known."""
    local = graph.node(ref.node)
    node = local or config.shared(ref.node)
    if node is None:
        return None
    ports = ports_of(config, node.types[0], types)
    port = ports.find(ref.port) if ports is not None else None
    return ConnectionEnd(ref, node, local is None, *port) if port is not None else None


def templates(config: Config, graph: GraphType, types: Types) -> Set[str]:
    """The names of the nodes that are instantiated on demand: a dynamic port is connected to one of their ports."""
    names = set()
    for connection in graph.connections:
        ends = [find_end(config, graph, types, ref) for ref in connection.ports]
        if any(end is not None and end.kind == DYNAMIC for end in ends):
            names |= {end.node.name for end in ends if end is not None and end.kind != DYNAMIC}
    return names


def made_by_others(config: Config, graph: GraphType, types: Types) -> Set[str]:
    """The templates of which a dynamic port makes instances. Ordinary channels feed the other templates, and the output
    of their instances is gathered."""
    names = set()
    for connection in graph.connections:
        ends = [end for end in (find_end(config, graph, types, ref) for ref in connection.ports) if end is not None]
        if any(end.kind == DYNAMIC and end.node.ty != GATHERS for end in ends):
            names |= {end.node.name for end in ends if end.kind != DYNAMIC}
    return names


def reachable(config: Config, types: Types) -> Iterator[GraphType]:
    """The graphs that run: main, and the graphs that its nodes and the shared nodes are made of."""
    waiting = [config.main, *(name for node in config.nodes for name in node.types)]
    seen: Set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name in seen or name in types.nodes or name not in config.graphs:
            continue
        seen.add(name)
        graph = config.graphs[name]
        yield graph
        waiting += [name for node in graph.nodes for name in node.types]


class _Check:
    def __init__(self, config: Config, types: Types) -> None:
        self.config = config
        self.types = types._replace(nodes={**BUILT_IN, **types.nodes})
        self.odd: List[str] = []

    def run(self) -> List[str]:
        self._recursion(self.config.graphs[self.config.main], [])
        for node in self.config.nodes:
            self._type(node, "top-level node '%s'" % node.name, False)
            self._no_nested_sharing(node)
        for graph in reachable(self.config, self.types):
            self._graph(graph)
        for resource in self.config.resources:
            self._resource(resource.name, resource.ty, resource.position)
        return self.odd

    def _recursion(self, graph: GraphType, trail: List[str]) -> None:
        if graph.name in trail:
            raise GraphError("graph '%s' contains itself: %s" % (graph.name, " -> ".join([*trail, graph.name])),
                             *graph.position)  # fmt: skip
        for node in graph.nodes:
            for name in node.types:
                if name not in self.types.nodes and name in self.config.graphs:
                    self._recursion(self.config.graphs[name], [*trail, graph.name])

    def _type(self, node: Node, what: str, template: bool) -> None:
        for name in node.types:
            if ports_of(self.config, name, self.types) is None and self.types.complete:
                known = [*self.types.nodes, *self.config.graphs]
                raise GraphError("%s: there is no type '%s'" % (what, name), *node.position, near(name, known))
        if len(node.types) > 1 and not template:
            raise GraphError("%s: ty = '%s' gives alternatives, which only a dynamic port can choose from"
                             % (what, node.ty), *node.position, "name one type")  # fmt: skip
        if node.ty in SERVERS:
            port = node.args.get("port")
            if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
                said = "port = %r is no port" % port if "port" in node.args else "'port' is missing"
                raise GraphError("%s: %s" % (what, said), *node.position, "add port = 8080")

    def _no_nested_sharing(self, node: Node) -> None:
        for name in node.types:
            graph = self.config.graphs.get(name) if name not in self.types.nodes else None
            for inner in _all_graphs(self.config, graph, self.types):
                for connection in _connections(inner):
                    for ref in connection.ports:
                        if inner.node(ref.node) is None and self.config.shared(ref.node) is not None:
                            raise GraphError(
                                "the shared graph '%s' uses the shared node '%s': sharing inside sharing is refused"
                                % (inner.name, ref.node), *connection.position, "declare '%s' in the graph" % ref.node,
                            )  # fmt: skip

    def _graph(self, graph: GraphType) -> None:
        dynamic = templates(self.config, graph, self.types)
        for node in graph.nodes:
            self._type(node, "node '%s' of graph '%s'" % (node.name, graph.name), node.name in dynamic)
            self._resources_of(graph, node)
        used: Dict[str, Set[str]] = {}
        for connection, word in _worded(graph):
            self._connection(graph, connection, word, used, dynamic)
        for resource in graph.resources:
            self._resource(resource.name, resource.ty, resource.position)
        self._unwired(graph, used)

    def _connection(
        self, graph: GraphType, connection: Connection, word: str, used: Dict[str, Set[str]], dynamic: Set[str]
    ) -> None:
        what = "%s of graph '%s'" % (word, graph.name)
        ends = [end for end in (self._end(graph, connection, ref, what) for ref in connection.ports) if end]
        for end in ends:
            used.setdefault(end.node.name, set()).add(end.ref.port)
            if end.kind == DICT and end.ref.tag is None:
                raise GraphError("%s: '%s' is a dict port and needs a tag" % (what, end.ref), *connection.position,
                                 'write "%s:0"' % str(end.ref))  # fmt: skip
        if any(end.kind == DYNAMIC for end in ends):
            self._dynamic(connection, what, ends)
            return
        for end in ends:
            if end.node.name in dynamic and end.direction == INPUT and not end.shared:
                self._fed(graph, end, what, connection, used)
            if connection.name and end.direction != (INPUT if word.startswith("input") else "output"):
                raise GraphError("%s: '%s' is an %s of its node" % (what, end.ref, end.direction), *connection.position,
                                 "list it under %ss" % end.direction)  # fmt: skip

    def _fed(
        self, graph: GraphType, end: ConnectionEnd, what: str, connection: Connection, used: Dict[str, Set[str]]
    ) -> None:
        """Refuse a channel to a template that is fed in another way already."""
        name = end.node.name
        if name in made_by_others(self.config, graph, self.types):
            raise GraphError("%s: '%s' is made on demand by a dynamic port and cannot be fed by another" % (what, name),
                             *connection.position)  # fmt: skip
        inputs = of_graph(self.config.graphs[end.node.types[0]]).inputs
        if len(used[name] & set(inputs)) > 1:
            raise GraphError("%s: '%s' is made on demand, by what comes to one of its inputs, and cannot have two"
                             % (what, name), *connection.position)  # fmt: skip

    def _end(self, graph: GraphType, connection: Connection, ref: PortRef, what: str) -> Optional[ConnectionEnd]:
        local = graph.node(ref.node)
        node = local or self.config.shared(ref.node)
        if node is None:
            known = [other.name for other in (*graph.nodes, *self.config.nodes)]
            raise GraphError("%s: there is no node '%s' (in '%s')" % (what, ref.node, ref), *connection.position,
                             near(ref.node, known))  # fmt: skip
        ports = ports_of(self.config, node.types[0], self.types)
        if ports is None:
            return None
        port = ports.find(ref.port)
        if port is None:
            raise GraphError(
                "%s: node '%s' of type '%s' has no port '%s'" % (what, ref.node, node.types[0], ref.port),
                *connection.position, near(ref.port, ports.names) or "it has no ports at all",
            )  # fmt: skip
        return ConnectionEnd(ref, node, local is None, *port)

    def _dynamic(self, connection: Connection, what: str, ends: List[ConnectionEnd]) -> None:
        others = [end for end in ends if end.kind != DYNAMIC]
        owner = next(end for end in ends if end.kind == DYNAMIC)
        if len(ends) - len(others) > 1:
            raise GraphError("%s: two dynamic ports cannot be connected" % what, *connection.position)
        if len(connection.ports) != 2 or (others and (others[0].shared or not self._is_graph(others[0].node))):
            raise GraphError(
                "%s: the other end of a dynamic port must be one node of the same graph whose type is a graph" % what,
                *connection.position, 'ports = ["%s", "subgraph:port"]' % str(owner.ref),
            )  # fmt: skip
        if others and others[0].direction == owner.direction:
            raise GraphError("%s: '%s' and '%s' are both %ss" % (what, owner.ref, others[0].ref, owner.direction),
                             *connection.position)  # fmt: skip

    def _is_graph(self, node: Node) -> bool:
        return is_graph(self.config, node, self.types)

    def _unwired(self, graph: GraphType, used: Dict[str, Set[str]]) -> None:
        for node in graph.nodes:
            if not self._is_graph(node):
                continue
            for name in of_graph(self.config.graphs[node.types[0]]).inputs:
                if name not in used.get(node.name, set()):
                    raise GraphError("node '%s' of graph '%s': its input '%s' is connected to nothing"
                                     % (node.name, graph.name, name), *node.position,
                                     'add a connection with "%s:%s"' % (node.name, name))  # fmt: skip
        for node in self.config.nodes:
            if graph.node(node.name) is not None or node.name not in used:
                continue
            ports = ports_of(self.config, node.types[0], self.types)
            missing = [name for name in ports.names if name not in used[node.name]] if ports is not None else []
            if missing:
                raise GraphError(
                    "graph '%s' uses the shared node '%s' without its port '%s'"
                    % (graph.name, node.name, missing[0]), *graph.position,
                    "a shared node must be connected with all its ports",
                )  # fmt: skip

    def _resources_of(self, graph: GraphType, node: Node) -> None:
        known = {resource.name for resource in (*graph.resources, *self.config.resources)}
        passed = {name for other in self.config.graphs.values() for inner in other.nodes for name in inner.res
                  if graph.name in inner.types}  # fmt: skip
        for name in node.res:
            if name not in known | passed:
                hint = near(name, known)
                self.odd.append("%s:%d: node '%s' asks for the resource '%s', which is nowhere%s" % (
                    *node.position, node.name, name, " (%s)" % hint if hint else ""))  # fmt: skip

    def _resource(self, name: str, ty: str, position: Tuple[str, int]) -> None:
        if ty not in self.types.resources and self.types.complete:
            raise GraphError("resource '%s': there is no type '%s'" % (name, ty), *position,
                             near(ty, self.types.resources) or "register it with @res_register()")  # fmt: skip


def _all_graphs(config: Config, graph: Optional[GraphType], types: Types) -> Iterator[GraphType]:
    if graph is None:
        return
    yield graph
    for node in graph.nodes:
        for name in node.types:
            if name not in types.nodes:
                yield from _all_graphs(config, config.graphs.get(name), types)


def _connections(graph: GraphType) -> List[Connection]:
    return [*graph.inputs, *graph.outputs, *graph.connections]


def _worded(graph: GraphType) -> Iterator[Tuple[Connection, str]]:
    for connection in graph.inputs:
        yield connection, "input '%s'" % connection.name
    for connection in graph.outputs:
        yield connection, "output '%s'" % connection.name
    for index, connection in enumerate(graph.connections):
        yield connection, "connection %d" % (index + 1)
