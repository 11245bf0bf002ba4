"""From graph types to nodes with channels between them.

Static subgraphs are taken apart: their nodes stand beside those around them, and a port of a subgraph is the ports its
own input or output names. What is left are nodes, shared nodes, and templates that are instantiated while it runs.
"""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from panglot_worker.dialects.megflow.channels import Discard, Target, fan
from panglot_worker.dialects.megflow.envelope import current
from panglot_worker.dialects.megflow.handles import Sender
from panglot_worker.dialects.megflow.nodes import NodeThread, Placement
from panglot_worker.dialects.megflow.resources import LazyResource, Scope
from panglot_worker.dialects.megflow.shared import Hub, Router, lead_ends
from panglot_worker.graphs.checking import ConnectionEnd, find_end, is_graph, made_by_others, templates
from panglot_worker.graphs.configuration import Connection, GraphType, Node
from panglot_worker.graphs.ports import DYNAMIC, GATHERS, INPUT, SPREADS

if TYPE_CHECKING:
    from panglot_worker.dialects.megflow.runtime import Runtime


class LeafEnd(NamedTuple):
    placement: Placement
    port: str
    tag: Optional[int]


class HubEnd(NamedTuple):
    hub: Hub
    user: int
    port: str
    tag: Optional[int]


class TemplateEnd(NamedTuple):
    template: "Template"
    port: str


AnyEnd = Union[LeafEnd, HubEnd, TemplateEnd]


class Net:
    """One channel to be: who sends and who receives. The outside of a graph's own port joins when it is wired."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.senders: List[AnyEnd] = []
        self.receivers: List[AnyEnd] = []
        self.outer_targets: List[Target] = []


class Plan:
    """A graph instance before its channels are made."""

    def __init__(self) -> None:
        self.placements: List[Placement] = []
        self.nets: List[Net] = []
        self.inputs: Dict[str, Net] = {}
        self.outputs: Dict[str, Net] = {}
        self.templates: List[Template] = []
        self.users: List[Tuple[Hub, int]] = []
        """What it is to the shared nodes it uses."""


class Template:
    """A node whose type is a graph, instantiated whenever the node at its dynamic port wants one."""

    def __init__(
        self, runtime: "Runtime", node: Node, path: str, args: Dict[str, Any], passed: Any, hub: Optional[Hub]
    ) -> None:
        self.runtime = runtime
        self.hub = hub
        """That of the shared node it is in."""
        self.node = node
        self.path = path
        self.args = args
        self.passed = passed
        self.targets: Dict[str, Target] = {}
        """Where outputs lead that are connected to ordinary nodes."""
        self.spreads: Optional[Placement] = None
        """Where ordinary channels lead to it: the node that makes an instance for each address."""
        self.count = 0
        self._lock = threading.Lock()
        self._open: Set[Instance] = set()

    def open(
        self, tag: Optional[str] = None, outputs: Optional[Dict[str, Target]] = None, origin: Any = None
    ) -> "Instance":
        """A new instance, running. `tag` chooses among alternatives; `origin` is what its frames come from, where that
        is not what those of its owner come from. Raises what its nodes' construction raises.
        """
        name = tag if tag in self.node.types else self.node.types[0]
        graph = self.runtime.config.graphs[str(name)]
        planner = Planner(self.runtime, self.hub)
        plan = planner.plan(graph, "%s.%d" % (self.path, self._number()), self.args, self.passed)
        instance = Instance(self.runtime, plan)
        instance.owner = current.node
        instance.ended = self._forget
        for port in plan.outputs:
            plan.outputs[port].outer_targets.append({**self.targets, **(outputs or {})}.get(port, Discard()))
        instance.wire(open_inputs=True)
        for thread in instance.threads:
            thread.origin = origin or current.node.origin
        if self.hub is not None:
            lead_ends(self.hub, list(instance.inputs.values()), instance.threads)
        with self._lock:
            self._open.add(instance)
        instance.start()
        return instance

    def _number(self) -> int:
        with self._lock:
            self.count += 1
            return self.count

    def _forget(self, instance: "Instance") -> None:
        with self._lock:
            self._open.discard(instance)

    def _opened(self) -> "List[Instance]":
        with self._lock:
            return list(self._open)

    def end(self, user: int, owner: Any) -> None:
        """The owner has seen the end of a user of the shared node that all this is in."""
        for instance in self._opened():
            if instance.owner is owner:
                for sender in instance.inputs.values():
                    sender.end(user)

    def wait(self) -> None:
        """Until every instance has ended. Nobody makes more."""
        for instance in self._opened():
            instance.close()
            instance.wait()


class Planner:
    def __init__(self, runtime: "Runtime", hub: Optional[Hub] = None) -> None:
        self.runtime = runtime
        self.config = runtime.config
        self.types = runtime.types
        self.hub = hub
        """That of the shared node all that is planned here belongs to."""

    def plan(self, graph: GraphType, path: str, args: Dict[str, Any], passed: Dict[str, LazyResource]) -> Plan:
        """A graph with everything in it. `args` are merged under those of its nodes, `passed` are resources."""
        plan = Plan()
        own = self.runtime.resources(graph.resources)
        scope = Scope(own, passed)
        dynamic = templates(self.config, graph, self.types)
        fed = dynamic - made_by_others(self.config, graph, self.types)
        inside: Dict[str, Union[Placement, Plan, Template]] = {}
        for node in graph.nodes:
            inside[node.name] = self._node(plan, node, path, args, scope, dynamic, fed)
        users: Dict[str, int] = {}
        for connection in graph.connections:
            self._connect(plan, graph, connection, inside, users)
        for connection in graph.inputs:
            net = plan.inputs[connection.name] = Net(connection.cap)
            net.receivers = self._ends(graph, connection, inside, users, net)
            plan.nets.append(net)
        for connection in graph.outputs:
            net = plan.outputs[connection.name] = Net(connection.cap)
            net.senders = self._ends(graph, connection, inside, users, net)
            plan.nets.append(net)
        plan.users += [(self.runtime.hubs[name], user) for name, user in users.items()]
        return plan

    def _node(
        self, plan: Plan, node: Node, path: str, args: Dict[str, Any], scope: Scope, dynamic: Set[str], fed: Set[str]
    ) -> Union[Placement, Plan, Template]:
        """`dynamic` names the nodes that are templates, `fed` those of them that ordinary channels lead to."""
        inner = "%s/%s" % (path, node.name) if path else node.name
        merged_args = merged(args, node.args)
        if not is_graph(self.config, node, self.types):
            return self.place(plan, node, inner, merged_args, scope)
        passed = scope.passed(node.res, self.runtime.global_resources)
        if node.name in dynamic:
            template = Template(self.runtime, node, inner, merged_args, passed, self.hub)
            plan.templates.append(template)
            if node.name in fed:
                spreads = Node(SPREADS, SPREADS, 1, [], {}, node.place)
                template.spreads = self.place(plan, spreads, "%s/%s" % (inner, SPREADS), {}, scope)
            return template
        child = self.plan(self.config.graphs[node.types[0]], inner, merged_args, passed)
        plan.placements += child.placements
        plan.templates += child.templates
        plan.users += child.users
        plan.nets += [net for net in child.nets if net not in [*child.inputs.values(), *child.outputs.values()]]
        return child

    def place(self, plan: Plan, node: Node, path: str, args: Dict[str, Any], scope: Scope) -> Placement:
        name = node.types[0]
        placement = Placement(path, node, self.runtime.classes[name], self.types.nodes[name], args, scope, self.hub)
        plan.placements.append(placement)
        return placement

    def _connect(
        self, plan: Plan, graph: GraphType, connection: Connection, inside: Dict[str, Any], users: Dict[str, int]
    ) -> None:
        ends = [self._end(graph, ref) for ref in connection.ports]
        owner = next((end for end in ends if end.kind == DYNAMIC), None)
        if owner is not None and owner.node.ty != GATHERS:
            other = next(end for end in ends if end.kind != DYNAMIC)
            inside[owner.node.name].dynamic[owner.ref.port] = (inside[other.node.name], other.ref.port)
            return
        net = Net(connection.cap)
        for end in ends:
            found = self._expand(end, inside, users, net)
            (net.receivers if end.direction == INPUT else net.senders).extend(found)
        plan.nets.append(net)

    def _ends(
        self, graph: GraphType, connection: Connection, inside: Dict[str, Any], users: Dict[str, int], net: Net
    ) -> List[AnyEnd]:
        return [one for ref in connection.ports for one in self._expand(self._end(graph, ref), inside, users, net)]

    def _end(self, graph: GraphType, ref: Any) -> ConnectionEnd:
        end = find_end(self.config, graph, self.types, ref)
        assert end is not None, ref
        return end

    def _expand(self, end: ConnectionEnd, inside: Dict[str, Any], users: Dict[str, int], net: Net) -> List[AnyEnd]:
        """The ends that a port stands for: those inside a subgraph, in the place of the subgraph's own."""
        if end.shared:
            hub = self.runtime.hubs[end.node.name]
            if hub.name not in users:
                users[hub.name] = hub.join()
            return [HubEnd(hub, users[hub.name], end.ref.port, end.ref.tag)]
        found = inside[end.node.name]
        if isinstance(found, Placement):
            return [LeafEnd(found, end.ref.port, end.ref.tag)]
        if isinstance(found, Template):
            if end.direction != INPUT:
                return [TemplateEnd(found, end.ref.port)]
            assert found.spreads is not None, end.ref
            found.spreads.dynamic["out"] = (found, end.ref.port)
            return [LeafEnd(found.spreads, "inp", None)]
        inner: Net = (found.inputs if end.direction == INPUT else found.outputs)[end.ref.port]
        net.cap = max(net.cap, inner.cap)
        return inner.receivers if end.direction == INPUT else inner.senders


class Instance:
    """A graph with its channels and threads."""

    def __init__(self, runtime: "Runtime", plan: Plan) -> None:
        self.runtime = runtime
        self.plan = plan
        self.inputs: Dict[str, Sender] = {}
        self.threads: List[NodeThread] = []
        self.owner: Any = None
        """The node that made it."""
        self.ended: Callable[[Instance], None] = lambda _: None
        """Told when it was waited for and has ended."""

    def wire(self, open_inputs: bool) -> None:
        """Make the channels. The graph's own inputs are closed at once unless they are to be fed."""
        inputs: Dict[str, Target] = {}
        for order, net in enumerate(self.plan.nets):
            targets = [self._target(end, net, order) for end in net.receivers] + net.outer_targets
            target = fan(targets)
            for end in net.senders:
                self._source(end, order, target)
            for name, own in self.plan.inputs.items():
                if own is net:
                    inputs[name] = target
        for placement in self.plan.placements:
            self.threads += placement.threads(self.runtime)
        if open_inputs:
            self.inputs = {name: Sender(target, name) for name, target in inputs.items()}
        for hub, user in self.plan.users:
            hub.settle(user)

    def _target(self, end: AnyEnd, net: Net, order: int) -> Target:
        if isinstance(end, HubEnd):
            return end.hub.entrance(end.user, (end.port, end.tag))
        assert isinstance(end, LeafEnd), "a node stands before every template that is fed"
        special = getattr(end.placement.cls, "panglot_sink", None)
        if special is not None and end.port == "inp":
            sink: Target = special(end.placement)
            end.placement.inputs.setdefault(end.port, []).append((end.tag, order, sink))
            return sink
        return end.placement.input(end.port, end.tag, order, net.cap)

    def _source(self, end: AnyEnd, order: int, target: Target) -> None:
        if isinstance(end, LeafEnd):
            end.placement.output(end.port, end.tag, order, target)
        elif isinstance(end, HubEnd):
            end.hub.connect(end.user, (end.port, end.tag), target)
        else:
            targets = end.template.targets
            targets[end.port] = fan([targets[end.port], target]) if end.port in targets else target

    def start(self) -> None:
        """Construct node after node. Raises what a construction raises, after ending those that were made."""
        begun = 0
        try:
            for thread in self.threads:
                self.runtime.add(thread)
                begun += 1
                thread.start()
        except BaseException:
            for thread in self.threads[begun:]:
                thread.abandon()
            self.close()
            raise

    def close(self) -> None:
        """No more input: what is inside still passes through."""
        for sender in self.inputs.values():
            sender.close()

    def wait(self) -> None:
        """Until nothing of it is left anywhere: its nodes have ended, except those that are connected to nothing, so
        have the instances they made, and what it sent to shared nodes has passed through them."""
        for thread in self.threads:
            if thread.placement.dynamic:
                thread.join()
        for template in self.plan.templates:
            template.wait()
        for thread in self.threads:
            if not thread.placement.isolated:
                thread.join()
        for hub, user in self.plan.users:
            hub.wait(user)
        self.ended(self)


def build_hub(runtime: "Runtime", node: Node, hub: Hub) -> Instance:
    """A shared node, or a shared graph, behind its hub."""
    planner = Planner(runtime, hub)
    scope = Scope({}, runtime.global_resources)
    if is_graph(runtime.config, node, runtime.types):
        plan = planner.plan(runtime.config.graphs[node.types[0]], node.name, node.args, runtime.global_resources)
    else:
        plan = Plan()
        placement = planner.place(plan, node, node.name, dict(node.args), scope)
        for port, tag, cap in runtime.uses(node.name):
            net = Net(cap)
            if port in placement.ports.inputs:
                net.receivers.append(LeafEnd(placement, port, tag))
                plan.inputs[_label(port, tag)] = net
            else:
                net.senders.append(LeafEnd(placement, port, tag))
                plan.outputs[_label(port, tag)] = net
            plan.nets.append(net)
    instance = Instance(runtime, plan)
    keys = {_label(port, tag): (port, tag) for port, tag, _ in runtime.uses(node.name)}
    for label, net in plan.outputs.items():
        router = hub.routers[keys.get(label, (label, None))] = Router(hub)
        net.outer_targets.append(router)
    instance.wire(open_inputs=True)
    for label, sender in instance.inputs.items():
        hub.inputs[keys.get(label, (label, None))] = sender
    lead_ends(hub, list(hub.inputs.values()), instance.threads)
    return instance


def _label(port: str, tag: Optional[int]) -> str:
    return port if tag is None else "%s:%d" % (port, tag)


def merged(outer: Dict[str, Any], inner: Dict[str, Any]) -> Dict[str, Any]:
    """Arguments of an enclosing graph under those of a node: the inner key wins, tables merge key by key."""
    found = copy.deepcopy(outer)
    for key, value in inner.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merged(found[key], value)
        else:
            found[key] = copy.deepcopy(value)
    return found
