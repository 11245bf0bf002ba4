"""One node at work: a thread makes an instance, calls `exec` until its inputs have ended, and replaces a failed one."""

from __future__ import annotations

import contextlib
import threading
import traceback
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from panglot_worker.dialects.megflow.graph.channels import Channel, Sink, Target, fan_out
from panglot_worker.dialects.megflow.graph.envelope import current
from panglot_worker.dialects.megflow.graph.handles import Receiver, Sender, Unconnected
from panglot_worker.dialects.megflow.graph.resources import ResourceScope
from panglot_worker.dialects.megflow.graph.shared import Hub
from panglot_worker.dialects.megflow.recorded import RecordedTarget
from panglot_worker.graphs.configuration import Node
from panglot_worker.graphs.ports import DICT, DYNAMIC, LIST, UNIT, Ports
from panglot_worker.scripts.ending import finalise

if TYPE_CHECKING:
    from panglot_worker.dialects.megflow.graph.runtime import Runtime

Wired = Tuple[Optional[int], int, Any]
"""Tag, order in the file, and the channel or target of one connection of a port."""


class Placement:
    """A node in the graph: its class, its arguments and its connections. `cloned` threads run it."""

    def __init__(
        self,
        path: str,
        node: Node,
        cls: Any,
        ports: Ports,
        args: Dict[str, Any],
        scope: ResourceScope,
        hub: Optional[Hub] = None,
    ) -> None:
        self.path = path
        self.node = node
        self.cls = cls
        self.ports = ports
        self.args = args
        self.scope = scope
        self.hub = hub
        """The hub of the shared node it is in; None outside of shared nodes."""
        self.sink: Optional[Sink] = None
        """For a server node: it takes its input in the thread of the sender."""
        self.inputs: Dict[str, List[Wired]] = {}
        self.outputs: Dict[str, List[Wired]] = {}
        self.dynamic: Dict[str, Any] = {}
        """For a dynamic port: the template at its other end, and that template's port."""

    def input(self, port: str, tag: Optional[int], order: int, cap: int) -> Target:
        """The channel of a connection to an input. A unit port has one, however many connections lead to it."""
        wired = self.inputs.setdefault(port, [])
        if wired and self.ports.inputs[port] == UNIT:
            channel: Channel = wired[0][2]
            channel.cap = max(channel.cap, cap)
            return channel
        channel = Channel(cap)
        wired.append((tag, order, channel))
        return channel

    def output(self, port: str, tag: Optional[int], order: int, target: Target) -> None:
        self.outputs.setdefault(port, []).append((tag, order, target))

    @property
    def isolated(self) -> bool:
        """Whether it has no ports at all: such a node does not keep the graph running."""
        return not self.ports.inputs and not self.ports.outputs

    def threads(self, runtime: "Runtime") -> "List[NodeThread]":
        names = [self.path] if self.node.cloned == 1 else ["%s#%d" % (self.path, n) for n in range(self.node.cloned)]
        return [NodeThread(runtime, self, name) for name in names]


def _handles(kind: str, wired: List[Wired], make: Any) -> Any:
    """What a port of this kind is to a plugin: one handle, a list of them, or a dict by tag."""
    if kind == DICT:
        return {tag: make(channel) for tag, _, channel in wired}
    return [make(channel) for _, _, channel in sorted(wired, key=lambda entry: (entry[0] is None, entry[0], entry[1]))]


class NodeThread:
    """Runs one instance of a node from `__init__` to `__del__`, all on one thread."""

    def __init__(self, runtime: "Runtime", placement: Placement, name: str) -> None:
        self.runtime = runtime
        self.placement = placement
        self.name = name
        self.origin: Any = runtime
        """The source of the requests or frames in its envelopes: the runtime for requests, a stream for its frames."""
        self.instance: Any = None
        self.error: Optional[BaseException] = None
        self.constructed = threading.Event()
        self.receivers: List[Receiver] = []
        self.senders: List[Sender] = []
        self.holds: List[Sender] = []
        """Senders into the outputs of its templates. They keep these open: it may make an instance until it ends."""
        self.carrying: List[Receiver] = []
        """Its inputs at which ends of users of a shared node arrive."""
        self.handles = self._connect()
        self.failures = 0
        self.alive = True
        self._ends: Dict[int, int] = {}
        """At how many inputs the end of a user was seen."""
        self._taken_at_failure = -1
        """How many envelopes it had taken in when it last failed; -1: it never failed."""
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _connect(self) -> Dict[str, Any]:
        placement, handles = self.placement, {}
        for port, kind in placement.ports.inputs.items():
            wired = placement.inputs.get(port, [])
            if kind == UNIT or (kind == DYNAMIC and wired):
                handles[port] = self._receiver(port, wired[0][2]) if wired else Unconnected()
            elif kind != DYNAMIC:
                handles[port] = _handles(kind, wired, lambda channel, port=port: self._receiver(port, channel))
        for port, kind in placement.ports.outputs.items():
            wired = placement.outputs.get(port, [])
            if kind == UNIT:
                handles[port] = self._sender(port, fan_out([target for _, _, target in wired]))
            elif kind in (LIST, DICT):
                handles[port] = _handles(kind, wired, lambda target, port=port: self._sender(port, target))
        handles.update(placement.dynamic)
        for template in {template for template, _ in placement.dynamic.values()}:
            self.holds += [Sender(target, port) for port, target in template.targets.items()]
        return handles

    @property
    def outlets(self) -> List[Sender]:
        """All senders by which something may come of what it takes in."""
        return self.senders + self.holds

    def _receiver(self, port: str, channel: Any) -> Any:
        if not isinstance(channel, Channel):
            return Unconnected()
        receiver = Receiver(channel, port)
        self.receivers.append(receiver)
        return receiver

    def _sender(self, port: str, target: Target) -> Sender:
        if self.runtime.settings.get("dev") and not hasattr(self.placement.cls, "panglot_sink"):
            target = RecordedTarget(target, self.name, port)
        sender = Sender(target, port)
        self.senders.append(sender)
        return sender

    # Life

    def start(self) -> None:
        """Start the thread, and wait until the instance is made. Raises what its construction raised."""
        self.thread.start()
        self.constructed.wait()
        if self.error is not None:
            raise self.error

    def join(self) -> None:
        """Wait until the thread has ended, if it ever began."""
        if self.thread.ident is not None:
            self.thread.join()

    def _run(self) -> None:
        current.node = self
        try:
            self._make()
        except BaseException as error:
            self.error = error
            # Before `constructed` is set: `start` raises then, and no handle may be left open.
            self._end()
            self.constructed.set()
            return
        self.constructed.set()
        # No node runs before all are constructed: the first could send to one that fails to load.
        self.runtime.go.wait()
        try:
            self._loop()
        finally:
            self._end()

    def _make(self) -> None:
        placement = self.placement
        made = placement.cls(placement.node.name, self.runtime.copy_args(placement.args))
        for port, handle in self.handles.items():
            setattr(made, port, handle)
        names = placement.scope.names() if placement.hub is not None else placement.node.res
        for name in names:
            resource = placement.scope.find(name)
            if resource is not None:
                setattr(made, name, resource.get())
        attach = getattr(made, "panglot_attach", None)
        if attach is not None:
            attach(self)
        self.instance = made

    def _loop(self) -> None:
        receivers = self.receivers
        while True:
            try:
                self.instance.exec()
            except BaseException as error:
                self._failed(error)
                if not receivers or not self._mend():
                    # `_end` drops the envelopes that wait for it: they are lost by this failure.
                    current.failing = True
                    return
            if self.carrying:
                self._pass_on_ends()
            for receiver in receivers:
                if not receiver.closed:
                    break
            else:
                return

    def _pass_on_ends(self) -> None:
        """Send on the ends that were seen at all inputs: whatever is left of these users was sent before."""
        for receiver in self.carrying:
            while receiver.ends:
                user = receiver.ends.popleft()
                seen = self._ends.pop(user, 0) + 1
                if seen < len(self.carrying):
                    self._ends[user] = seen
                else:
                    self._pass_on(user)

    def _pass_on(self, user: int) -> None:
        for sender in self.outlets:
            sender.end(user)
        for template in {template for template, _ in self.placement.dynamic.values()}:
            template.end(user, self)
        if self.placement.hub is not None:
            # Last: once all threads have passed the end on, the user has departed, and its output must be out.
            self.placement.hub.passed(user, self)

    # Failing

    def _failed(self, error: BaseException) -> None:
        """Report a failure, and drop all that the instance had: this answers the requests among it."""
        with self.losing(error):
            self.instance = None

    @contextlib.contextmanager
    def losing(self, error: BaseException) -> Iterator[None]:
        """Report a failure: the envelopes that are dropped meanwhile are lost by it."""
        self.failures += 1
        current.failing = True
        try:
            self.runtime.node_failed(self, error)
            forget_frames(error)
            yield
        finally:
            current.failing = False

    def _mend(self) -> bool:
        """Make a new instance instead of one that failed. False when the new one fails too."""
        taken = sum(receiver.count for receiver in self.receivers)
        # It failed again without taking anything in: a new instance would do the same, and its senders would wait.
        if taken == self._taken_at_failure and not self._refuse_one():
            return False
        self._taken_at_failure = sum(receiver.count for receiver in self.receivers)
        try:
            self._make()
        except BaseException as error:
            self.runtime.broken("node '%s' failed, and so did its replacement: %s: %s" % (
                self.name, type(error).__name__, error))  # fmt: skip
            forget_frames(error)
            return False
        return True

    def _refuse_one(self) -> bool:
        """The node fails before it takes anything in. Take an envelope instead, so that its sender gets an answer."""
        receiver = next((receiver for receiver in self.receivers if not receiver.closed), None)
        if receiver is None:
            return False
        current.failing = True
        try:
            # Dropped at once: its token reports the loss as a failure of this node.
            receiver.recv()
        finally:
            current.failing = False
        return not receiver.closed

    def abandon(self) -> None:
        """Drop the node's handles, since its thread will never be started."""
        self._end()

    def _end(self) -> None:
        self.alive = False
        for receiver in self.receivers:
            # Inputs first: senders must not wait for a node that is ending.
            receiver.leave()
        try:
            self._finalise()
        finally:
            # Outputs after `__del__`, which may still send.
            for sender in self.outlets:
                sender.close()
            if self.placement.hub is not None:
                self.placement.hub.gone(self)
            self.runtime.node_ended(self)

    def _finalise(self) -> None:
        """Run `__del__` here and now, also when something else still refers to the instance."""
        try:
            finalise(self, "instance")
        except BaseException as error:
            self.runtime.node_failed(self, error)
            forget_frames(error)


def forget_frames(error: BaseException) -> None:
    """Drop the variables in the frames of a traceback, envelopes among them."""
    seen = set()
    link: Optional[BaseException] = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if link.__traceback__ is not None:
            traceback.clear_frames(link.__traceback__)
            link.__traceback__ = None
        link = link.__cause__ or link.__context__
