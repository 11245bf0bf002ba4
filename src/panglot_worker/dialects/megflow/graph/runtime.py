"""A whole configuration at work: its shared nodes, its resources, its main graph, and what is known about them."""

from __future__ import annotations

import copy
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from panglot_worker.dialects.megflow.graph.building import Instance, Planner, build_hub
from panglot_worker.dialects.megflow.graph.nodes import NodeThread
from panglot_worker.dialects.megflow.graph.resources import LazyResource
from panglot_worker.dialects.megflow.graph.shared import Hub
from panglot_worker.graphs.checking import Types, check
from panglot_worker.graphs.configuration import Config, Resource
from panglot_worker.graphs.ports import BUILT_IN, Ports

Failed = Callable[[str, BaseException], None]
"""Called with the name of a node, and the exception it raised."""

Skipped = Callable[[str, str], None]
"""Called with the name of a node, and the outputs it left out."""


class KnownClasses:
    """The classes that a graph file may name: types of nodes with their ports, and types of resources."""

    def __init__(self) -> None:
        self.nodes: Dict[str, Any] = {}
        self.ports: Dict[str, Ports] = dict(BUILT_IN)
        self.resources: Dict[str, Any] = {}

    def add(self, name: str, cls: Any, ports: Ports) -> None:
        self.nodes[name] = cls
        self.ports[name] = ports


class Runtime:
    """All that runs of one configuration. Made, then started."""

    def __init__(
        self, config: Config, known: KnownClasses, failed: Failed, skipped: Skipped, gateway: Any = None
    ) -> None:
        self.config = config
        self.gateway = gateway
        """Where server nodes get requests from and send answers to; None where nothing is served."""
        self.skipped = skipped
        self.settings: Dict[str, Any] = {}
        """The settings the front sent; empty where there is no front."""
        self.classes: Mapping[str, Any] = known.nodes
        self.types = Types(known.ports, set(known.resources))
        self.warnings = check(config, self.types)
        self._resource_classes = known.resources
        self._failed = failed
        self.go = threading.Event()
        self.failures = 0
        self.reason = ""
        """Why the graph cannot go on; empty while it can."""
        self.on_broken: Callable[[], None] = lambda: None
        self.servers: List[Any] = []
        """Server nodes, which hold the open requests."""
        self.global_resources = self.resources(config.resources)
        self.hubs = {node.name: Hub(node.name, skipped) for node in config.nodes}
        self._hub_instances = {node.name: build_hub(self, node, self.hubs[node.name]) for node in config.nodes}
        planner = Planner(self)
        self.main = Instance(self, planner.plan(config.graphs[config.main], "", {}, self.global_resources))
        self.threads: List[NodeThread] = []
        self._lock = threading.Lock()

    def resources(self, declared: List[Resource]) -> Dict[str, LazyResource]:
        return {resource.name: LazyResource(resource, self._resource_classes[resource.ty]) for resource in declared}

    def uses(self, name: str) -> List[Tuple[str, Optional[int], int]]:
        """The ports and tags a shared node is used with anywhere, with the largest capacity."""
        caps: Dict[Tuple[str, Optional[int]], int] = {}
        for graph in self.config.graphs.values():
            if graph.node(name) is not None:
                continue
            for connection in (*graph.inputs, *graph.outputs, *graph.connections):
                for ref in connection.ports:
                    if ref.node == name:
                        key = (ref.port, ref.tag)
                        caps[key] = max(caps.get(key, 1), connection.cap)
        return [(port, tag, cap) for (port, tag), cap in caps.items()]

    @staticmethod
    def copy_args(args: Dict[str, Any]) -> Dict[str, Any]:
        return copy.deepcopy(args)

    # Life

    def start(self, open_inputs: bool, progress: Callable[[str], None] = lambda _: None) -> None:
        """Construct every node, then let them run. Raises what a construction raises."""
        self.main.wire(open_inputs)
        for instance in (*self._hub_instances.values(), self.main):
            for thread in instance.threads:
                progress("constructing node %s" % thread.name)
                self.add(thread)
                thread.start()
        self.go.set()

    def add(self, thread: NodeThread) -> None:
        with self._lock:
            self.threads.append(thread)

    def wait(self) -> None:
        """Wait until the main graph has ended, and after it the shared nodes."""
        self.main.wait()
        for hub in self.hubs.values():
            hub.close()
        for instance in self._hub_instances.values():
            instance.wait()

    def close(self) -> None:
        """End the input: the graph finishes what it has."""
        self.main.close()
        for server in list(self.servers):
            server.close()

    # What nodes tell

    def node_failed(self, node: NodeThread, error: BaseException) -> None:
        with self._lock:
            self.failures += 1
        self._failed(node.name, error)

    def node_ended(self, node: NodeThread) -> None:
        with self._lock:
            # Instances of templates come and go without number; the nodes of the main graph stay in the figures.
            if node in self.threads and node not in self.main.threads:
                self.threads.remove(node)

    def broken(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.on_broken()

    def open_token(self, number: int) -> Any:
        """The token of an open request by its number, unless several server nodes have one of this number."""
        tokens = [token for token in (server.open_token(number) for server in self.servers) if token is not None]
        return tokens[0] if len(tokens) == 1 else None

    def figures(self) -> Iterator[Dict[str, Any]]:
        """The figures of every node that runs: messages in and out by port, and how full its channels are."""
        with self._lock:
            threads = list(self.threads)
        for thread in threads:
            yield {
                "name": thread.name,
                "type": thread.placement.node.ty,
                "failures": thread.failures,
                "alive": thread.alive,
                "inputs": {
                    receiver.port: [len(receiver.channel), receiver.channel.cap, receiver.count]
                    for receiver in thread.receivers
                },
                "outputs": {sender.port: sender.count for sender in thread.senders},
            }


def failed_calls(count: int) -> str:
    """The sentence at the end of a graph whose nodes have failed."""
    if count == 1:
        return "1 call of a node failed; its traceback is above"
    return "%d calls of nodes failed; their tracebacks are above" % count
