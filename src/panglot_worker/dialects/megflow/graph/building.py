"""From graph types to nodes with channels between them.

Static subgraphs are dissolved: their nodes stand beside the nodes around them, and a port of a subgraph becomes the
ports that its own input or output names. Nodes, shared nodes and templates are left; templates are instantiated while
the graph runs.
"""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set, Union

from panglot_worker.dialects.megflow.graph.channels import Discard, Target, fan_out
from panglot_worker.dialects.megflow.graph.envelope import current
from panglot_worker.dialects.megflow.graph.handles import Sender
from panglot_worker.dialects.megflow.graph.nodes import NodeThread, Placement
from panglot_worker.dialects.megflow.graph.plans import AnyEnd, ChannelPlan, GraphPlan, HubEnd, NodeEnd, TemplateEnd
from panglot_worker.dialects.megflow.graph.resources import LazyResource, ResourceScope
from panglot_worker.dialects.megflow.graph.shared import Hub, Router, lead_ends
from panglot_worker.graphs.checking import ConnectionEnd, find_end, is_graph, made_by_others, templates
from panglot_worker.graphs.configuration import Connection, GraphType, Node
from panglot_worker.graphs.ports import DYNAMIC, GATHERS, INPUT, SPREADS

if TYPE_CHECKING:
    from panglot_worker.dialects.megflow.graph.runtime import Runtime


class Template:
    """A node whose type is a graph, instantiated whenever the node at its dynamic port wants one."""

    def __init__(
        self, runtime: "Runtime", node: Node, path: str, args: Dict[str, Any], passed: Any, hub: Optional[Hub]
    ) -> None:
        self.runtime = runtime
        self.hub = hub
        """The hub of the shared node it is in; None outside of shared nodes."""
        self.node = node
        self.path = path
        self.args = args
        self.passed = passed
        self.targets: Dict[str, Target] = {}
        """By output, the target of its connections to ordinary nodes."""
        self.spreads: Optional[Placement] = None
        """The node that makes an instance for each address; None where no ordinary channel leads to the template."""
        self.count = 0
        # Clones of the node at its dynamic port open instances on several threads.
        self._lock = threading.Lock()
        self._open: Set[Instance] = set()

    def open(
        self, tag: Optional[str] = None, outputs: Optional[Dict[str, Target]] = None, origin: Any = None
    ) -> "Instance":
        """Make and start a new instance. Raises what its nodes' construction raises.

        `tag` chooses among alternatives. `origin` is the source of its requests or frames, where it does not share the
        source of its owner.
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
            # Before the threads start: each must know from the beginning at which inputs it sees ends.
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
        """Pass the end of a user of the shared node, which the owner has seen, on to the instances the owner made."""
        for instance in self._opened():
            if instance.owner is owner:
                for sender in instance.inputs.values():
                    sender.end(user)

    def wait(self) -> None:
        """Wait until every instance has ended. To be called when no more are made."""
        for instance in self._opened():
            instance.close()
            instance.wait()


class Planner:
    """Turns graphs of a configuration into plans."""

    def __init__(self, runtime: "Runtime", hub: Optional[Hub] = None) -> None:
        self.runtime = runtime
        self.config = runtime.config
        self.types = runtime.types
        self.hub = hub
        """The hub of the shared node that the planned nodes belong to; None outside of shared nodes."""

    def plan(self, graph: GraphType, path: str, args: Dict[str, Any], passed: Dict[str, LazyResource]) -> GraphPlan:
        """The plan of a graph with everything in it.

        `args` are merged under those of its nodes; `passed` are the resources it sees besides its own.
        """
        plan = GraphPlan()
        own = self.runtime.resources(graph.resources)
        scope = ResourceScope(own, passed)
        dynamic = templates(self.config, graph, self.types)
        fed = dynamic - made_by_others(self.config, graph, self.types)
        inside: Dict[str, Union[Placement, GraphPlan, Template]] = {}
        for node in graph.nodes:
            inside[node.name] = self._node(plan, node, path, args, scope, dynamic, fed)
        users: Dict[str, int] = {}
        for connection in graph.connections:
            self._connect(plan, graph, connection, inside, users)
        for connection in graph.inputs:
            planned = plan.inputs[connection.name] = ChannelPlan(connection.cap)
            planned.receivers = self._ends(graph, connection, inside, users, planned)
            plan.channels.append(planned)
        for connection in graph.outputs:
            planned = plan.outputs[connection.name] = ChannelPlan(connection.cap)
            planned.senders = self._ends(graph, connection, inside, users, planned)
            plan.channels.append(planned)
        plan.users += [(self.runtime.hubs[name], user) for name, user in users.items()]
        return plan

    def _node(
        self,
        plan: GraphPlan,
        node: Node,
        path: str,
        args: Dict[str, Any],
        scope: ResourceScope,
        dynamic: Set[str],
        fed: Set[str],
    ) -> Union[Placement, GraphPlan, Template]:
        """`dynamic` names the nodes that are templates, `fed` those of them that ordinary channels lead to."""
        inner = "%s/%s" % (path, node.name) if path else node.name
        merged_args = merged(args, node.args)
        if not is_graph(self.config, node, self.types):
            return self.add_placement(plan, node, inner, merged_args, scope)
        passed = scope.passed(node.res, self.runtime.global_resources)
        if node.name in dynamic:
            template = Template(self.runtime, node, inner, merged_args, passed, self.hub)
            plan.templates.append(template)
            if node.name in fed:
                spreads = Node(SPREADS, SPREADS, 1, [], {}, node.position)
                template.spreads = self.add_placement(plan, spreads, "%s/%s" % (inner, SPREADS), {}, scope)
            return template
        child = self.plan(self.config.graphs[node.types[0]], inner, merged_args, passed)
        plan.placements += child.placements
        plan.templates += child.templates
        plan.users += child.users
        own_ports = [*child.inputs.values(), *child.outputs.values()]
        plan.channels += [planned for planned in child.channels if planned not in own_ports]
        return child

    def add_placement(
        self, plan: GraphPlan, node: Node, path: str, args: Dict[str, Any], scope: ResourceScope
    ) -> Placement:
        """Make the placement of a node, which is no graph, and add it to the plan."""
        name = node.types[0]
        placement = Placement(path, node, self.runtime.classes[name], self.types.nodes[name], args, scope, self.hub)
        plan.placements.append(placement)
        return placement

    def _connect(
        self, plan: GraphPlan, graph: GraphType, connection: Connection, inside: Dict[str, Any], users: Dict[str, int]
    ) -> None:
        ends = [self._end(graph, ref) for ref in connection.ports]
        owner = next((end for end in ends if end.kind == DYNAMIC), None)
        if owner is not None and owner.node.ty != GATHERS:
            other = next(end for end in ends if end.kind != DYNAMIC)
            inside[owner.node.name].dynamic[owner.ref.port] = (inside[other.node.name], other.ref.port)
            return
        planned = ChannelPlan(connection.cap)
        for end in ends:
            expanded = self._expand(end, inside, users, planned)
            (planned.receivers if end.direction == INPUT else planned.senders).extend(expanded)
        plan.channels.append(planned)

    def _ends(
        self,
        graph: GraphType,
        connection: Connection,
        inside: Dict[str, Any],
        users: Dict[str, int],
        planned: ChannelPlan,
    ) -> List[AnyEnd]:
        ends = [self._end(graph, ref) for ref in connection.ports]
        return [inner for end in ends for inner in self._expand(end, inside, users, planned)]

    def _end(self, graph: GraphType, ref: Any) -> ConnectionEnd:
        end = find_end(self.config, graph, self.types, ref)
        assert end is not None, ref
        return end

    def _expand(
        self, end: ConnectionEnd, inside: Dict[str, Any], users: Dict[str, int], planned: ChannelPlan
    ) -> List[AnyEnd]:
        """The ends that a port stands for; for a subgraph, the ends inside it instead of its own."""
        if end.shared:
            hub = self.runtime.hubs[end.node.name]
            # A graph is one user of a shared node, however many connections lead there.
            if hub.name not in users:
                users[hub.name] = hub.join()
            return [HubEnd(hub, users[hub.name], end.ref.port, end.ref.tag)]
        owner = inside[end.node.name]
        if isinstance(owner, Placement):
            return [NodeEnd(owner, end.ref.port, end.ref.tag)]
        if isinstance(owner, Template):
            if end.direction != INPUT:
                return [TemplateEnd(owner, end.ref.port)]
            assert owner.spreads is not None, end.ref
            owner.spreads.dynamic["out"] = (owner, end.ref.port)
            return [NodeEnd(owner.spreads, "inp", None)]
        inner: ChannelPlan = (owner.inputs if end.direction == INPUT else owner.outputs)[end.ref.port]
        planned.cap = max(planned.cap, inner.cap)
        return inner.receivers if end.direction == INPUT else inner.senders


class Instance:
    """A graph with its channels and threads."""

    def __init__(self, runtime: "Runtime", plan: GraphPlan) -> None:
        self.runtime = runtime
        self.plan = plan
        self.inputs: Dict[str, Sender] = {}
        self.threads: List[NodeThread] = []
        self.owner: Any = None
        """The node that made it."""
        self.ended: Callable[[Instance], None] = lambda _: None
        """Called when the instance was waited for and has ended."""

    def wire(self, open_inputs: bool) -> None:
        """Make the channels. The graph's own inputs are closed at once unless they are to be fed."""
        inputs: Dict[str, Target] = {}
        for order, planned in enumerate(self.plan.channels):
            targets = [self._target(end, planned, order) for end in planned.receivers] + planned.outer_targets
            target = fan_out(targets)
            for end in planned.senders:
                self._source(end, order, target)
            for name, own in self.plan.inputs.items():
                if own is planned:
                    inputs[name] = target
        for placement in self.plan.placements:
            self.threads += placement.threads(self.runtime)
        if open_inputs:
            self.inputs = {name: Sender(target, name) for name, target in inputs.items()}
        # Only now: a user without senders ends at once, and until here each may still get one.
        for hub, user in self.plan.users:
            hub.settle(user)

    def _target(self, end: AnyEnd, planned: ChannelPlan, order: int) -> Target:
        if isinstance(end, HubEnd):
            return end.hub.entrance(end.user, (end.port, end.tag))
        assert isinstance(end, NodeEnd), "a node stands before every template that is fed"
        special = getattr(end.placement.cls, "panglot_sink", None)
        if special is not None and end.port == "inp":
            sink: Target = special(end.placement)
            end.placement.inputs.setdefault(end.port, []).append((end.tag, order, sink))
            return sink
        return end.placement.input(end.port, end.tag, order, planned.cap)

    def _source(self, end: AnyEnd, order: int, target: Target) -> None:
        if isinstance(end, NodeEnd):
            end.placement.output(end.port, end.tag, order, target)
        elif isinstance(end, HubEnd):
            end.hub.connect(end.user, (end.port, end.tag), target)
        else:
            targets = end.template.targets
            targets[end.port] = fan_out([targets[end.port], target]) if end.port in targets else target

    def start(self) -> None:
        """Construct node after node. Raises what a construction raises, after ending those that were made."""
        begun = 0
        try:
            for thread in self.threads:
                self.runtime.add(thread)
                begun += 1
                thread.start()
        except BaseException:
            # The thread that failed has closed its handles itself. Those behind it never run.
            for thread in self.threads[begun:]:
                thread.abandon()
            self.close()
            raise

    def close(self) -> None:
        """End the input; what is inside still passes through."""
        for sender in self.inputs.values():
            sender.close()

    def wait(self) -> None:
        """Wait until nothing of it is left anywhere.

        Then its nodes have ended, except those that are connected to nothing; so have the instances they made; and what
        it sent to shared nodes has passed through them.
        """
        # First the nodes that make instances: after their end no template gets another one.
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
    scope = ResourceScope({}, runtime.global_resources)
    if is_graph(runtime.config, node, runtime.types):
        plan = planner.plan(runtime.config.graphs[node.types[0]], node.name, node.args, runtime.global_resources)
    else:
        plan = GraphPlan()
        placement = planner.add_placement(plan, node, node.name, dict(node.args), scope)
        for port, tag, cap in runtime.uses(node.name):
            planned = ChannelPlan(cap)
            if port in placement.ports.inputs:
                planned.receivers.append(NodeEnd(placement, port, tag))
                plan.inputs[_label(port, tag)] = planned
            else:
                planned.senders.append(NodeEnd(placement, port, tag))
                plan.outputs[_label(port, tag)] = planned
            plan.channels.append(planned)
    instance = Instance(runtime, plan)
    keys = {_label(port, tag): (port, tag) for port, tag, _ in runtime.uses(node.name)}
    for label, planned in plan.outputs.items():
        router = hub.routers[keys.get(label, (label, None))] = Router(hub)
        planned.outer_targets.append(router)
    instance.wire(open_inputs=True)
    for label, sender in instance.inputs.items():
        hub.inputs[keys.get(label, (label, None))] = sender
    lead_ends(hub, list(hub.inputs.values()), instance.threads)
    return instance


def _label(port: str, tag: Optional[int]) -> str:
    return port if tag is None else "%s:%d" % (port, tag)


def merged(outer: Dict[str, Any], inner: Dict[str, Any]) -> Dict[str, Any]:
    """Arguments of an enclosing graph under those of a node: the inner key wins, tables merge key by key."""
    result = copy.deepcopy(outer)
    for key, value in inner.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result
