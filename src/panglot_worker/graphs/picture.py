"""A graph to look at: lines for a terminal, or an SVG."""

from __future__ import annotations

import html
import os
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from panglot_worker.graphs.checking import Types, find_end, reachable
from panglot_worker.graphs.configuration import Config, GraphType, Node
from panglot_worker.graphs.ports import BUILT_IN, DYNAMIC, INPUT, SERVERS

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 170, 52, 90, 34, 24


class Edge(NamedTuple):
    """An arrow of the picture, from a port of one node to a port of another."""

    start: str
    start_port: str
    end: str
    end_port: str
    cap: int
    dynamic: bool


def edges(config: Config, graph: GraphType, types: Types) -> Iterator[Edge]:
    """The edges from every sender to every receiver. A graph's own ports are nodes called `inputs` and `outputs`."""
    kinds = types._replace(nodes={**BUILT_IN, **types.nodes})
    for word, connections in (("inputs", graph.inputs), ("outputs", graph.outputs), ("", graph.connections)):
        for connection in connections:
            senders: List[Tuple[str, str]] = []
            receivers: List[Tuple[str, str]] = []
            dynamic = False
            for index, ref in enumerate(connection.ports):
                end = find_end(config, graph, kinds, ref)
                # Without a known type: most people write the sender first.
                goes_in = end.direction == INPUT if end else word == "inputs" or (not word and index > 0)
                dynamic = dynamic or (end is not None and end.kind == DYNAMIC)
                (receivers if goes_in else senders).append((ref.node, str(ref).partition(":")[2]))
            if word == "inputs":
                senders = [("inputs", connection.name)]
            elif word == "outputs":
                receivers = [("outputs", connection.name)]
            for start, start_port in senders:
                for end_name, end_port in receivers:
                    yield Edge(start, start_port, end_name, end_port, connection.cap, dynamic)


def describe(config: Config, types: Types) -> List[str]:
    """Lines that show every graph that runs, node by node, with the channels of each."""
    lines: List[str] = []
    for graph in reachable(config, types):
        lines += ["", "%s%s" % (graph.name, "  (main)" if graph.name == config.main else "")]
        arrows = list(edges(config, graph, types))
        names = [node.name for node in graph.nodes]
        shared = [node for node in config.nodes if graph.node(node.name) is None and _used(node.name, arrows)]
        if graph.inputs:
            lines += _node_lines("inputs", "", arrows)
        for node in (*graph.nodes, *shared):
            lines += _node_lines(node.name, _about(node, node.name not in names), arrows)
    return lines[1:]


def _used(name: str, arrows: List[Edge]) -> bool:
    return any(name in (edge.start, edge.end) for edge in arrows)


def _about(node: Node, shared: bool) -> str:
    words = [node.ty]
    if node.ty in SERVERS:
        words.append(":%s" % node.args.get("port"))
    if node.cloned > 1:
        words.append("x%d" % node.cloned)
    if shared:
        words.append("shared")
    return " ".join(words)


def _node_lines(name: str, about: str, arrows: List[Edge]) -> List[str]:
    own = [edge for edge in arrows if edge.start == name]
    lines = ["  %s %s%s" % ("┌" if own else "─", name, "  %s" % about if about else "")]
    for index, edge in enumerate(own):
        corner = "└" if index == len(own) - 1 else "├"
        arrow = "══%d══▶" if edge.dynamic else "──%d──▶"
        lines.append("  %s %s %s %s:%s" % (corner, edge.start_port, arrow % edge.cap, edge.end, edge.end_port))
    return lines


# SVG


def write(config: Config, path: str, types: Optional[Types] = None) -> str:
    """Write the picture beside the configuration, or where MEGFLOW_DUMP says, and return its path."""
    target = os.environ.get("MEGFLOW_DUMP") or os.path.splitext(path)[0] + ".svg"
    with open(target, "w", encoding="utf-8") as out:
        out.write(svg(config, types or Types({}, set(), False)))
    return target


def svg(config: Config, types: Types) -> str:
    """Every graph that runs, one below the other, sources on the left."""
    shapes: List[str] = []
    top, widest = MARGIN, 0
    for graph in reachable(config, types):
        drawn, width, height = _graph(config, graph, types, top)
        shapes += drawn
        top += height + MARGIN
        widest = max(widest, width)
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">'
        '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L10 5L0 10z" fill="#456"/></marker></defs>'
        '<rect width="100%%" height="100%%" fill="white"/>'
    ) % (widest + 2 * MARGIN, top)
    return head + "".join(shapes) + "</svg>\n"


def _graph(config: Config, graph: GraphType, types: Types, top: int) -> Tuple[List[str], int, int]:
    arrows = list(edges(config, graph, types))
    about = {node.name: _about(node, False) for node in graph.nodes}
    about.update({node.name: _about(node, True) for node in config.nodes if _used(node.name, arrows)})
    names = (["inputs"] if graph.inputs else []) + list(about) + (["outputs"] if graph.outputs else [])
    corners: Dict[str, Tuple[int, int]] = {}
    columns = _columns(names, arrows)
    for column, inside in enumerate(columns):
        for row, name in enumerate(inside):
            corners[name] = (2 * MARGIN + column * (WIDTH + ACROSS), top + 40 + row * (HEIGHT + DOWN))
    width = len(columns) * (WIDTH + ACROSS) - ACROSS + 2 * MARGIN
    height = 40 + max((len(inside) for inside in columns), default=1) * (HEIGHT + DOWN) + MARGIN
    title = graph.name + (" (main)" if graph.name == config.main else "")
    shapes = [
        '<rect x="%d" y="%d" width="%d" height="%d" rx="8" fill="#f6f8fa" stroke="#cdd"/>'
        % (MARGIN, top, width, height),
        '<text x="%d" y="%d" font-weight="bold">%s</text>' % (2 * MARGIN, top + 24, html.escape(title)),
    ]
    shapes += [_arrow(edge, corners) for edge in arrows if edge.start in corners and edge.end in corners]
    shapes += [_box(name, about.get(name, ""), *corners[name]) for name in names]
    return shapes, width, height


def _columns(names: List[str], arrows: List[Edge]) -> List[List[str]]:
    """Nodes by their longest way from a source; edges that lead back are not counted."""
    order: List[str] = []
    back: Set[Tuple[str, str]] = set()
    state: Dict[str, int] = {}
    after = {name: sorted({edge.end for edge in arrows if edge.start == name}, key=names.index) for name in names}

    def visit(name: str) -> None:
        state[name] = 1
        for other in after[name]:
            if state.get(other) == 1:
                back.add((name, other))
            elif other not in state:
                visit(other)
        state[name] = 2
        order.insert(0, name)

    entered = {edge.end for edge in arrows}
    for name in sorted(names, key=lambda node: (node in entered, names.index(node))):
        if name not in state:
            visit(name)
    depth = dict.fromkeys(names, 0)
    for name in order:
        for other in after[name]:
            if (name, other) not in back:
                depth[other] = max(depth[other], depth[name] + 1)
    columns: List[List[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name in names:
        columns[depth[name]].append(name)
    return columns


def _box(name: str, about: str, x: int, y: int) -> str:
    fill = "#e8f0e8" if name in ("inputs", "outputs") else "#eaf2ff"
    return (
        '<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="#68a"/>'
        '<text x="%d" y="%d" font-weight="bold">%s</text><text x="%d" y="%d" fill="#567">%s</text>'
    ) % (x, y, WIDTH, HEIGHT, fill, x + 10, y + 21, html.escape(_short(name)), x + 10, y + 40,
         html.escape(_short(about)))  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:23] + "…"


def _arrow(edge: Edge, corners: Dict[str, Tuple[int, int]]) -> str:
    (ax, ay), (bx, by) = corners[edge.start], corners[edge.end]
    x1, y1, x2, y2 = ax + WIDTH, ay + HEIGHT // 2, bx, by + HEIGHT // 2
    if x2 > x1:
        bend = (x2 - x1) // 2
        path = "M%d %dC%d %d %d %d %d %d" % (x1, y1, x1 + bend, y1, x2 - bend, y2, x2, y2)
    else:
        # Back, or to itself: from below one box to below the other.
        low = max(ay, by) + HEIGHT + DOWN
        x1, x2 = ax + WIDTH * 2 // 3, bx + WIDTH // 3
        path = "M%d %dC%d %d %d %d %d %d" % (x1, ay + HEIGHT, x1, low, x2, low, x2, by + HEIGHT)
    dash = ' stroke-dasharray="5 3"' if edge.dynamic else ""
    label = html.escape("%s → %s  %d" % (edge.start_port, edge.end_port, edge.cap))
    return '<path d="%s" fill="none" stroke="#456"%s marker-end="url(#arrow)"><title>%s</title></path>' % (
        path, dash, label)  # fmt: skip
