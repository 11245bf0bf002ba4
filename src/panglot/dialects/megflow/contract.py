"""The HTTP contract of MegFlow's server nodes. Every node has a listener of its own, on the port its graph names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.megflow import video
from panglot.engine.call import Fault
from panglot.errors import StartError
from panglot.metrics.counters import heading, wording
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import ADMIN, Contract, ErrorAnswer, InferRoute, Listener, Page, View
from panglot.web.models import Model

TEXT = b"text/plain; charset=utf-8"
OCTETS = "application/octet-stream"
PICTURES = ("image/*", "image/jpeg", "image/png", OCTETS)
"""The types that an ImageServer takes: the platform's own wildcard, further types of pictures, and bytes."""


PAGES = Path(__file__).parent / "pages"
GRAPH = View("graph", "Graph", "graph.js", PAGES)
VIDEOS = View("videos", "Videos", "videos.js", PAGES)


def contract(package: Package, settings: Settings) -> Contract:
    """The contract of the first server node; the other nodes are further listeners."""
    if not package.options["servers"]:
        return Contract(routes=(), error=error)
    first, *others = package.options["servers"]
    if settings.workers.most > 1 and any(server["type"] == "VideoServer" for server in (first, *others)):
        raise StartError("streams belong to one worker, and there are to be several", fix="leave out --workers")
    more = tuple(Listener(int(server["port"]), _contract(server)) for server in others)
    whole = dataclasses.replace(_contract(first), listeners=more)
    port = package.options.get("debug_port")
    if port is None:
        return whole
    from panglot.dialects.megflow import debugger

    return dataclasses.replace(whole, runs_with_server=lambda model, access: debugger.serve(model, access, port))


def _contract(server: dict[str, Any]) -> Contract:
    node = str(server["node"])
    routes: tuple[InferRoute, ...] = ()
    if server["type"] == "VideoServer":
        routes = video.routes(node)
    elif server["type"] == "BytesServer":
        routes = (InferRoute("/analyze/bytes", "/analyze/bytes", target=node, takes=(OCTETS,), gives=OCTETS),)
    else:
        gives = "application/json" if server.get("response") == "json" else "image/jpeg"
        picture = InferRoute("/analyze/{extra_data}", "/analyze/{extra_data}", target=node, takes=PICTURES, gives=gives)
        routes = (picture,)
    return Contract(
        routes=routes,
        error=error,
        pages=(Page("/graph", ADMIN, graph, unless="text/html"),),
        unknown=error,
        metrics=metrics,
        counters=COUNTERS,
        views=(VIDEOS, GRAPH) if server["type"] == "VideoServer" else (GRAPH,),
        live=live,
        raw_paths=True,
    )


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A short text."""
    return ErrorAnswer(fault.status, TEXT, fault.message.encode("utf-8", "backslashreplace"))


# Looking inside


def graph(model: Model, request: Request) -> Response:
    """The graph as it was read, with the recent figures of each node."""
    config = model.package.options["config"]
    value = {
        "main": config["main"],
        "graphs": [_graph(graph) for graph in config["graphs"]],
        "shared": [_node(node) for node in config["nodes"]],
        "workers": [{"worker": index, **report} for index, report in _reports(model)],
    }
    return Response(orjson.dumps(value), media_type="application/json")


def live(model: Model) -> dict[str, Any]:
    """The reports of the workers, for the pages of graphs and videos."""
    return {"workers": [{"worker": index, **report} for index, report in _reports(model)]}


def _graph(graph: Any) -> dict[str, Any]:
    name, nodes, _, inputs, outputs, connections, _ = graph
    return {
        "name": name,
        "nodes": [_node(node) for node in nodes],
        "inputs": [{"name": entry[2], **_connection(entry)} for entry in inputs],
        "outputs": [{"name": entry[2], **_connection(entry)} for entry in outputs],
        "connections": [_connection(entry) for entry in connections],
    }


def _node(node: Any) -> dict[str, Any]:
    name, ty, cloned, res, *_ = node
    return {"name": name, "ty": ty, "cloned": cloned, "res": res}


def _connection(entry: Any) -> dict[str, Any]:
    cap, ports, *_ = entry
    return {"cap": cap, "ports": [":".join(str(part) for part in port if part is not None) for port in ports]}


def _reports(model: Model) -> Iterator[tuple[int, dict[str, Any]]]:
    for worker in model.engine.workers():
        if worker.get("report"):
            yield worker["index"], worker["report"]


COUNTERS = {
    "panglot_graph_extra_answers_total": "answers of a graph that nobody waited for, by server node",
    "panglot_graph_node_failures_total": "exceptions of nodes of a graph",
}
SERIES = (
    ("panglot_graph_messages_total", "messages a node has taken in or sent, by port", "counter"),
    ("panglot_graph_messages_per_second", "the same, of late", "gauge"),
    ("panglot_graph_queue_length", "messages waiting at an input", "gauge"),
    ("panglot_graph_queue_capacity", "how many may wait there", "gauge"),
    ("panglot_graph_blocked", "1 while an input of the node is at least 90 % full", "gauge"),
)


def metrics(model: Model) -> str:
    lines: dict[str, list[str]] = {name: [] for name, _, _ in SERIES}
    for index, report in _reports(model):
        for node in report["nodes"]:
            _add(lines, {"worker": str(index), "node": node["name"]}, node)
    text = [line for name, about, kind in SERIES for line in (*heading(name, about, kind), *lines[name])]
    return "\n".join(text) + "\n" + video.metrics(_streams(model))


def _streams(model: Model) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, report in _reports(model):
        for stream in report.get("streams", ()):
            yield index, stream


def _add(lines: dict[str, list[str]], labels: dict[str, str], node: dict[str, Any]) -> None:
    def add(name: str, more: dict[str, str], value: float) -> None:
        lines[name].append(f"{name}{wording({**labels, **more})} {value:g}")

    for direction in ("inputs", "outputs"):
        for port, entry in node[direction].items():
            which = {"port": port, "direction": direction[:-1]}
            add("panglot_graph_messages_total", which, entry["count"])
            add("panglot_graph_messages_per_second", which, entry["rate"])
            if direction == "inputs":
                add("panglot_graph_queue_length", {"port": port}, entry["queued"])
                add("panglot_graph_queue_capacity", {"port": port}, entry["cap"])
    add("panglot_graph_blocked", {}, int(node["blocked"]))
