"""The nodes every graph may use without a plugin, written like any plugin. Servers are in `servers`."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from panglot_worker.dialects.megflow.building import Instance, Template
from panglot_worker.dialects.megflow.envelope import EMPTY, Contents, EnvelopeError, unwrap, wrap
from panglot_worker.dialects.megflow.handles import Sender

LOOK_AGAIN = 20
"""Milliseconds after which something that waits for another looks whether that will ever come."""


class BuiltIn:
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
        envelope = self.inp.recv()
        if envelope is not None and self.out:
            contents = unwrap(envelope)
            for sender in self.out[1:]:
                sender.send(wrap(contents.copy(contents.msg)))
            self.out[0].send(wrap(contents))


class Demux(BuiltIn):
    """Gives every envelope to the output whose tag is its `to_addr`; without such an output it is dropped."""

    def exec(self) -> None:
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

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is None:
            if self.inp.closed:
                self._close_all()
            return
        contents = unwrap(envelope)
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
        for instance in self.instances.values():
            instance.close()
        for address in list(self.instances):
            self._close(address)

    def __del__(self) -> None:
        for instance in self.instances.values():
            instance.close()


class Reorder(BuiltIn):
    """Lets envelopes pass in the order of their `partial_id`, from 0 on, past numbers of requests that failed."""

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        super().__init__(name, args)
        self.next = 0
        self.waiting: Dict[int, Any] = {}
        self.runtime: Any = None

    def panglot_attach(self, thread: Any) -> None:
        self.runtime = thread.runtime

    def exec(self) -> None:
        if self.waiting:
            envelopes, ended = self.inp.batch_recv(1, LOOK_AGAIN)
        else:
            envelope = self.inp.recv()
            envelopes, ended = ([], True) if envelope is None else ([envelope], False)
        for envelope in envelopes:
            self._take(unwrap(envelope))
        while self.waiting and self.next not in self.waiting and self.runtime.is_over(self.next):
            self.next += 1
        while self.next in self.waiting:
            self.out.send(wrap(self.waiting.pop(self.next)))
            self.next += 1
        if ended:
            self._let_go()

    def _take(self, contents: Contents) -> None:
        number = contents.partial_id
        if number is None:
            raise EnvelopeError("Reorder '%s' got an envelope without partial_id" % self.name)
        if number < self.next or number in self.waiting:
            raise EnvelopeError("Reorder '%s' got partial_id %d again" % (self.name, number))
        self.waiting[number] = contents

    def _let_go(self) -> None:
        """At the end what waits behind a gap goes on in order: better than to lose it."""
        for number in sorted(self.waiting):
            self.out.send(wrap(self.waiting.pop(number)))
            self.next = number + 1


class NoopProducer(BuiltIn):
    """Sends nothing."""

    def exec(self) -> None:
        pass


class NoopConsumer(BuiltIn):
    """Swallows everything."""

    def exec(self) -> None:
        self.inp.recv()


class ImageInput(BuiltIn):
    """Sends every picture that lies directly in one of the folders `urls`, then the graph ends."""

    def panglot_attach(self, thread: Any) -> None:
        self.runtime = thread.runtime

    def exec(self) -> None:
        from panglot_worker.dialects.megflow import images

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
        found: List[str] = []
        for folder in self.args.get("urls", []):
            if os.path.isdir(folder):
                with os.scandir(folder) as entries:
                    found += [entry.path for entry in entries if entry.is_file()]
        return found


NODES = {
    "Transform": Transform,
    "Bcast": Bcast,
    "Demux": Demux,
    "DynDemux": DynDemux,
    "DynOutTransform": DynDemux,
    "Reorder": Reorder,
    "NoopProducer": NoopProducer,
    "NoopConsumer": NoopConsumer,
    "ImageInput": ImageInput,
}
