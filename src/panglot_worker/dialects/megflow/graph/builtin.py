"""The nodes every graph may use without a plugin, written like any plugin. Server nodes have files of their own."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Optional

from panglot_worker.dialects.megflow.graph.building import Instance, Template
from panglot_worker.dialects.megflow.graph.envelope import EMPTY, Contents, EnvelopeError, unwrap, wrap
from panglot_worker.dialects.megflow.graph.handles import Sender
from panglot_worker.graphs.ports import GATHERS, SPREADS

LOOK_AGAIN = 20
"""Milliseconds after which something that waits for another looks whether that will ever come."""


class BuiltIn:
    """What the nodes in this file have in common."""

    inp: Any
    out: Any

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        self.name = name
        self.args = args


class Transform(BuiltIn):
    """Passes everything on."""

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope)


class Bcast(BuiltIn):
    """Gives every envelope to all outputs; the message is one object for all."""

    def exec(self) -> None:
        """Pass one envelope on, and a copy of it to each further output."""
        envelope = self.inp.recv()
        if envelope is not None and self.out:
            contents = unwrap(envelope)
            for sender in self.out[1:]:
                sender.send(wrap(contents.copy(contents.msg)))
            # The original goes last: its receiver may change it while copies are still to be made.
            self.out[0].send(wrap(contents))


class Demux(BuiltIn):
    """Gives every envelope to the output whose tag is its `to_addr`; without such an output it is dropped."""

    def exec(self) -> None:
        """Pass one envelope on. Raises EnvelopeError when it has no `to_addr`."""
        envelope = self.inp.recv()
        if envelope is None:
            return
        if envelope.to_addr is None:
            raise EnvelopeError("Demux '%s' got an envelope without to_addr" % self.name)
        sender = self.out.get(envelope.to_addr)
        if sender is not None:
            sender.send(envelope)


class DynDemux(BuiltIn):
    """One subgraph instance per `to_addr`, made by its first envelope and closed by an empty one."""

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        super().__init__(name, args)
        self.instances: Dict[Any, Instance] = {}

    def panglot_attach(self, thread: Any) -> None:
        self.thread = thread

    def exec(self) -> None:
        """Pass one envelope to the instance of its address; at the end close all instances."""
        envelope = self.inp.recv()
        if envelope is None:
            if self.inp.closed:
                self._close_all()
            return
        contents = unwrap(envelope)
        try:
            self._pass(contents)
        except Exception as error:
            # The instances of other addresses go on.
            with self.thread.losing(error):
                del contents

    def _pass(self, contents: Contents) -> None:
        address = contents.to_addr
        if address is None:
            raise EnvelopeError("DynDemux '%s' got an envelope without to_addr" % self.name)
        if contents.msg is EMPTY:
            self._close(address)
        else:
            self._sender(address, contents).put(contents)

    def _sender(self, address: Any, contents: Contents) -> Sender:
        template: Template
        template, port = self.out
        if address not in self.instances:
            self.instances[address] = template.open(contents.tag)
        return self.instances[address].inputs[port]

    def _close(self, address: Any) -> None:
        instance = self.instances.pop(address, None)
        if instance is not None:
            instance.close()
            instance.wait()

    def _close_all(self) -> None:
        # All are closed before the first is waited for, so that they end side by side.
        for instance in self.instances.values():
            instance.close()
        for address in list(self.instances):
            self._close(address)

    def __del__(self) -> None:
        for instance in self.instances.values():
            instance.close()


class Lane:
    """The envelopes of one user that wait for their turn: for the number that is next."""

    def __init__(self) -> None:
        self.next = 0
        self.waiting: Dict[int, Contents] = {}
        self._origin: Any = None

    def take(self, contents: Contents) -> None:
        """Store contents until it is their turn. Raises EnvelopeError for contents without a number."""
        number = contents.partial_id
        if number is None:
            raise EnvelopeError("an envelope without partial_id cannot be put in order")
        if number < self.next or number in self.waiting:
            raise EnvelopeError("partial_id %d came again, or too late" % number)
        if contents.token is not None:
            self._origin = contents.token.origin
        self.waiting[number] = contents

    def ready(self) -> Iterator[Contents]:
        """The contents whose turn it is, past numbers of which nothing will come."""
        while self.waiting:
            if self.next in self.waiting:
                yield self.waiting.pop(self.next)
            elif self._origin is None or not self._origin.is_over(self.next):
                return
            self.next += 1

    def rest(self) -> Iterator[Contents]:
        """All that still waits, in order. At the end, what waits behind a gap goes on: better than to lose it."""
        for number in sorted(self.waiting):
            yield self.waiting.pop(number)
            self.next = number + 1


class Reorder(BuiltIn):
    """Lets envelopes pass in the order of their `partial_id`, from 0 on, past numbers of requests that failed and of
    frames that were left out. Every user of a shared one has an order of its own."""

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        super().__init__(name, args)
        self.lanes: Dict[Optional[int], Lane] = {}

    def panglot_attach(self, thread: Any) -> None:
        self.thread = thread
        self.shared = thread.placement.hub is not None

    def exec(self) -> None:
        """Take in one envelope, and send all whose turn it is by now."""
        if any(lane.waiting for lane in self.lanes.values()):
            envelopes, ended = self.inp.batch_recv(1, LOOK_AGAIN)
        else:
            envelope = self.inp.recv()
            envelopes, ended = ([], True) if envelope is None else ([envelope], False)
        for envelope in envelopes:
            contents = unwrap(envelope)
            try:
                self.lanes.setdefault(contents.transfer_addr if self.shared else None, Lane()).take(contents)
            except EnvelopeError as error:
                with self.thread.losing(error):
                    del contents
        for lane in self.lanes.values():
            self._send(lane.ready())
        if ended:
            for user in list(self.lanes) if self.inp.closed else list(self.inp.ends):
                self._send(self.lanes.pop(user, Lane()).rest())

    def _send(self, ready: Iterator[Contents]) -> None:
        for contents in ready:
            self.out.send(wrap(contents))


class NoopProducer(BuiltIn):
    """Sends nothing."""

    def exec(self) -> None:
        pass


class NoopConsumer(BuiltIn):
    """Swallows everything."""

    def exec(self) -> None:
        self.inp.recv()


class ImageInput(BuiltIn):
    """Sends every picture that is directly in one of the folders `urls`, then the graph ends."""

    def panglot_attach(self, thread: Any) -> None:
        self.runtime = thread.runtime

    def exec(self) -> None:
        """Send all pictures, then end the output and drop what comes back."""
        from panglot_worker.dialects.megflow.video import images

        number = 0
        for path in self._files():
            try:
                with open(path, "rb") as source:
                    picture = images.decode(source.read())
            except (OSError, images.NoPicture) as error:
                self.runtime.skipped(self.name, "%s: %s" % (path, error))
                continue
            contents = Contents({"data": picture, "extra_data": os.path.splitext(os.path.basename(path))[0]})
            contents.partial_id = number
            self.out.send(wrap(contents))
            number += 1
        # What comes back is for nobody, but must not stand in the way.
        self.out.close()
        while self.inp.recv() is not None:
            pass

    def _files(self) -> List[str]:
        files: List[str] = []
        for folder in self.args.get("urls", []):
            if os.path.isdir(folder):
                with os.scandir(folder) as entries:
                    files += [entry.path for entry in entries if entry.is_file()]
        return files


NODES = {
    "Transform": Transform,
    "Bcast": Bcast,
    "Demux": Demux,
    "DynDemux": DynDemux,
    SPREADS: DynDemux,
    GATHERS: Transform,
    "Reorder": Reorder,
    "NoopProducer": NoopProducer,
    "NoopConsumer": NoopConsumer,
    "ImageInput": ImageInput,
}
