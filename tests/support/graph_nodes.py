"""Node classes for graphs that run inside the tests."""

from __future__ import annotations

import threading
from typing import Any

from megflow.func_op import batch_def, map_def, reduce_def, sink_def, source_def

import megflow
from megflow import Envelope, register, res_register

seen: dict[str, list[Any]] = {}
"""What nodes saw, by a word of the test's own."""
lock = threading.Lock()


def note(word: str, value: Any) -> None:
    with lock:
        seen.setdefault(word, []).append(value)


@register(inputs=["inp"], outputs=["out"])
class Add:
    """Adds its argument `n`, and tells of every None and of its end under `word`."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.name = name
        self.args = args

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is None:
            note(self.args.get("word", "add"), "none")
            return
        self.out.send(envelope.repack(envelope.msg + self.args.get("n", 1)))

    def __del__(self) -> None:
        note(self.args.get("word", "add"), "del")


@register(inputs=["inp"], outputs=["out"])
class Args:
    """Answers with its arguments."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.name, self.args = name, args

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope.repack((self.name, self.args)))


@register(outputs=["out"])
class Count:
    """Sends 0, 1, ... `n`-1, to the addresses given, with numbers."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.args = args

    def exec(self) -> None:
        note("count.exec", self.args.get("word", ""))
        for number in range(self.args["n"]):
            info = {"partial_id": number, "to_addr": number % self.args.get("addresses", 1)}
            self.out.send(Envelope.pack(number, info=info))
        for address in range(self.args.get("closes", 0)):
            self.out.send(Envelope.pack(None, info={"to_addr": address}))


@register(inputs=["inp"])
class Collect:
    """Keeps every message under `word`."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.word = args["word"]

    def exec(self) -> None:
        envelope = self.inp.recv()
        note(self.word, None if envelope is None else envelope.msg)


@register(inputs=["a", "b"], outputs=["out"])
class Pair:
    def __init__(self, name: str, args: dict[str, Any]) -> None:
        pass

    def exec(self) -> None:
        one, other = self.a.recv(), self.b.recv()
        if one is not None and other is not None:
            self.out.send(one.repack((one.msg, other.msg)))


@register("Listed", inputs=["inp:[]"], outputs=["out:[]"])
class ListPorts:
    """Sends every message on to the output of the same place."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        pass

    def exec(self) -> None:
        for place, port in enumerate(self.inp):
            envelope = port.recv()
            if envelope is not None:
                self.out[place].send(envelope.repack((place, envelope.msg)))


@register(inputs=["inp:{}"], outputs=["out:{}"])
class Keyed:
    def __init__(self, name: str, args: dict[str, Any]) -> None:
        pass

    def exec(self) -> None:
        for key, port in self.inp.items():
            envelope = port.recv()
            if envelope is not None:
                self.out[key].send(envelope.repack((key, envelope.msg)))


@register(inputs=["inp"], outputs=["out"])
class Uses:
    """Answers with what its resources are."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.args = args
        assert not hasattr(self, "store"), "resources come after construction"

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            found = {name: getattr(self, name, None) for name in ("store", "other")}
            self.out.send(
                envelope.repack({name: (one and (one.name, one.args, id(one))) for name, one in found.items()})
            )


@res_register()
class Store:
    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.name, self.args = name, args
        note("store.made", name)
        if args.get("fails_first") and len(seen.get("store.tried", [])) < 1:
            note("store.tried", name)
            raise RuntimeError("the first time")


@register(inputs=["inp"], outputs=["out"])
class Fails:
    """Raises on odd numbers."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        note("fails.made", name)

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is None:
            return
        if envelope.msg % 2:
            raise ValueError(envelope.msg)
        self.out.send(envelope)


@register(inputs=["inp"], outputs=["out"])
class Sums:
    """Adds everything up and sends the sum when it sees None: at the end, or when one of its users has gone."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.last: Any = None
        self.total = 0

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            self.total += envelope.msg
            self.last = envelope
        elif self.last is not None:
            self.out.send(self.last.repack(self.total))
            self.last, self.total = None, 0


@register(inputs=["inp"], outputs=["out"])
class Batches:
    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.args = args

    def exec(self) -> None:
        envelopes, ended = self.inp.batch_recv(self.args["n"], self.args["ms"])
        if envelopes:
            self.out.send(envelopes[0].repack(([one.msg for one in envelopes], ended)))


@register(inputs=["inp"], outputs=["out"])
class Fresh:
    """Answers in a new envelope: wrong in a shared node."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        pass

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(Envelope.pack(envelope.msg))


@register(inputs=["inp"], outputs=["out"])
class Slow:
    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.ms = args["ms"]

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            megflow.sleep(self.ms)
            self.out.send(envelope)


@register(inputs=["inp"], outputs=["out"])
class Greedy:
    """Sends without ever taking anything in, like a generator that feeds its own loop."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.sent = 0

    def exec(self) -> None:
        while True:
            self.out.send(Envelope.pack(0))
            note("greedy", 1)


@register()
class Alone:
    """Has no ports: it must not keep the graph running."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        pass

    def exec(self) -> None:
        threading.Event().wait()


@map_def()
def double(msg: int) -> int:
    return msg * 2


@map_def()
def tally(msg: Any, context: Any) -> Any:
    context.total = context.total + msg
    return (context.name, context.total)


@reduce_def()
def add_up(msgs: list[int]) -> int:
    return sum(msgs)


@source_def()
def letters() -> Any:
    yield from "abc"


@sink_def(name="Swallow")
def swallow(msg: Any) -> None:
    note("swallow", msg)


@batch_def()
def in_place(msgs: list[Any]) -> None:
    note("in_place", len(msgs))
    for msg in msgs:
        msg["seen"] = True


@register(inputs=["inp"], outputs=["out"])
class Tardy:
    """Keeps what it gets, whoever ends, and sends it with what comes next."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        self.kept: list[Any] = []

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            for kept in self.kept:
                self.out.send(kept)
            self.kept = [envelope]


@register(inputs=["inp"], outputs=["out"])
class FirstFails:
    """Cannot be made the first time."""

    def __init__(self, name: str, args: dict[str, Any]) -> None:
        note(args["word"], name)
        if len(seen[args["word"]]) == 1:
            raise RuntimeError("the first time")

    def exec(self) -> None:
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope)
