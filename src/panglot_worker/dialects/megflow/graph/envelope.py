"""Envelopes, which travel through a graph, and tokens, which tell when no envelope of a request is left."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, NamedTuple, Optional

EMPTY: Any = type("Empty", (), {"__repr__": lambda self: "<empty>"})()
"""The message of an envelope packed with None."""

INFO = ("from_addr", "to_addr", "transfer_addr", "partial_id", "tag", "extra_data")


class EnvelopeError(Exception):
    """An envelope was used in a way that cannot work."""


class Contents:
    """The inside of an envelope: it moves from handle to handle, so that its sender has it no longer."""

    __slots__ = ("extra_data", "from_addr", "msg", "partial_id", "tag", "to_addr", "token", "transfer_addr")

    def __init__(self, msg: Any, token: Any = None) -> None:
        self.msg = msg
        self.from_addr: Optional[int] = None
        self.to_addr: Optional[int] = None
        self.transfer_addr: Optional[int] = None
        self.partial_id: Optional[int] = None
        self.tag: Optional[str] = None
        self.extra_data: Any = None
        self.token = token

    def copy(self, msg: Any) -> "Contents":
        """The same routing information around another message."""
        other = Contents(msg, self.token)
        other.from_addr = self.from_addr
        other.to_addr = self.to_addr
        other.transfer_addr = self.transfer_addr
        other.partial_id = self.partial_id
        other.tag = self.tag
        other.extra_data = self.extra_data
        return other


class _Gone:
    """Stands in an envelope that has no contents, or has them no longer."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        object.__setattr__(self, "why", why)

    def __getattr__(self, name: str) -> Any:
        raise EnvelopeError(self.why)

    def __setattr__(self, name: str, value: Any) -> None:
        raise EnvelopeError(self.why)


MOVED: Any = _Gone(
    "this envelope was sent and belongs to its receiver now: use it before send(), or send envelope.repack(message)"
)
SHELL: Any = _Gone("Envelope() is an empty shell: make envelopes with Envelope.pack(message)")


def _field(name: str) -> Any:
    def get(self: "Envelope") -> Any:
        return getattr(self._contents, name)

    def put(self: "Envelope", value: Any) -> None:
        setattr(self._contents, name, value)

    return property(get, put)


class Envelope:
    """A message with its routing information, as plugins see it. Sending it moves its contents away."""

    __slots__ = ("__weakref__", "_contents")

    def __init__(self) -> None:
        self._contents: Any = SHELL

    @staticmethod
    def pack(msg: Any, info: Optional[Dict[str, Any]] = None) -> "Envelope":
        """A new envelope; with None for a message it is an empty one."""
        contents = Contents(EMPTY if msg is None else msg)
        for key, value in (info or {}).items():
            if key not in INFO:
                raise EnvelopeError("info has no '%s'; there are %s" % (key, ", ".join(INFO)))
            setattr(contents, key, value)
        if contents.partial_id is not None:
            contents.token = open_token(contents.partial_id)
        return wrap(contents)

    def repack(self, msg: Any) -> "Envelope":
        """A new envelope with the same routing information."""
        return wrap(self._contents.copy(EMPTY if msg is None else msg))

    @property
    def msg(self) -> Any:
        msg = self._contents.msg
        if msg is EMPTY:
            raise EnvelopeError("this envelope is empty: it was packed with None")
        return msg

    @msg.setter
    def msg(self, msg: Any) -> None:
        self._contents.msg = EMPTY if msg is None else msg

    @property
    def partial_id(self) -> Optional[int]:
        contents = self._contents
        if contents.token is not None:
            # A plugin that knows the number may answer in a new envelope, after this one is gone.
            contents.token.subject.known = True
        number: Optional[int] = contents.partial_id
        return number

    @partial_id.setter
    def partial_id(self, value: Optional[int]) -> None:
        self._contents.partial_id = value

    from_addr = _field("from_addr")
    to_addr = _field("to_addr")
    tag = _field("tag")

    @property
    def extra_data(self) -> Any:
        return self._contents.extra_data

    def __getstate__(self) -> Dict[str, Any]:
        return {name: getattr(self._contents, name) for name in ("msg", *INFO)}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        # Without the token: a copy does not keep its request open.
        contents = Contents(state["msg"])
        for name in INFO:
            setattr(contents, name, state.get(name))
        self._contents = contents

    def __repr__(self) -> str:
        contents = self._contents
        if isinstance(contents, _Gone):
            return "<Envelope: %s>" % ("moved" if contents is MOVED else "shell")
        return "<Envelope partial_id=%r %s>" % (contents.partial_id, type(contents.msg).__name__)


_new = Envelope.__new__


def wrap(contents: Contents) -> Envelope:
    """An envelope around these contents."""
    envelope = _new(Envelope)
    envelope._contents = contents
    return envelope


def unwrap(envelope: Envelope) -> Contents:
    """Take the contents out; the envelope is of no more use. Raises EnvelopeError when they are gone already."""
    try:
        contents = envelope._contents
    except AttributeError:
        raise EnvelopeError("send() takes an Envelope, not %s" % type(envelope).__name__) from None
    if contents.__class__ is not Contents:
        raise EnvelopeError(contents.why)
    envelope._contents = MOVED
    return contents


# Requests


class OpenRequest:
    """A request that is in the graph and has no answer yet."""

    __slots__ = ("begun", "done", "known", "marks", "number", "request", "token", "unwanted")

    def __init__(self, request: Any, number: int) -> None:
        self.request = request
        self.number = number
        self.known = False
        """Whether a plugin has read its number."""
        self.unwanted = False
        """Whether the front has cancelled it."""
        self.done = False
        self.begun = 0.0
        self.marks: Any = []
        self.token: Callable[[], Any] = lambda: None


class Loss(NamedTuple):
    """How a request was lost: in which node, and whether that node failed or just dropped it."""

    node: str = ""
    failed: bool = False


class Token:
    """Carried by all envelopes of a request or a frame. When the last of them is dropped, the origin is called.

    `subject` is the OpenRequest or the OpenFrame. `origin` is the server node or the stream it came in by: its
    `lost(subject, loss)` is called by a finaliser, so it must take no lock; its
    `is_over(number)` tells whether no envelope of the request or frame with this number will pass any more.
    """

    __slots__ = ("__weakref__", "origin", "subject")

    def __init__(self, subject: Any, origin: Any) -> None:
        self.subject = subject
        self.origin = origin

    def __del__(self) -> None:
        # Runs on any thread and amid any code, possibly under a lock: it may only note the loss.
        if not self.subject.done:
            self.origin.lost(self.subject, current.loss())


class Current(threading.local):
    """The node that this thread runs, and whether the envelopes of the node are dropped because it failed."""

    node: Any = None
    failing = False

    def loss(self) -> Loss:
        return Loss(self.node.name if self.node is not None else "", self.failing)


# State of this module, because plugins call `Envelope.pack(message)` without an object that names their node.
current = Current()


def open_token(number: int) -> Any:
    """The token of the open request or frame with this number in the graph whose node runs here, if there is one."""
    node = current.node
    return node.origin.open_token(number) if node is not None else None
