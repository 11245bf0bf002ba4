"""The frames between front and worker: the one definition both sides import.

A frame is a 12-byte header, then its payload::

    length u32 | kind u8 | flags u8 | count u16 | generation u32 | payload (length bytes)

RUN and REPLY payloads hold `count` items: a table of fixed rows, then all heads, then all bodies. A head is a few
short fields joined by NUL (HTTP allows no NUL in any of them). A body may lie in shared memory instead: the row of an
item then tells where, and a reply uses the buffer that came with its item. CANCEL, FREE, HOLD and GO_ON hold item ids;
FREE names items whose bodies in shared memory the worker no longer uses. Every other payload is a JSON object, or
empty. Reading is exact, and the end of the stream is the death of the peer.

A reply with FETCH gives an item back, with a list of URIs. The front fetches their contents and runs the item again:
the contents then follow its body, and `Head.fetched` tells where each begins.

A script may call other models of its server. CALL holds such a call, and ANSWER an answer to one, or a part of it: see
`panglot_worker.line.calls`.

    front -> worker   HELLO  RUN  CANCEL  HOLD  GO_ON  ANSWER  TAKE_OVER  STOP
    worker -> front   HELLO  LOADING  READY | FAILED  REPLY  FREE  CALL  METRIC  EVENT
"""

from __future__ import annotations

import json
import struct
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union, cast
from urllib.parse import parse_qsl

from panglot_worker.clipping import LONGEST_MESSAGE, LONGEST_TRACEBACK, clipped

HELLO = 1
LOADING = 2
READY = 3
FAILED = 4
RUN = 5
REPLY = 6
CANCEL = 7
METRIC = 9
EVENT = 10
STOP = 11
FREE = 12
TAKE_OVER = 13
"""This worker owns the memory that outlives workers: the one before it has released it, or is dead."""

CALL = 14
ANSWER = 15

HOLD = 16
"""The clients of these items read more slowly than their parts come. Only workers that run several items get it."""
GO_ON = 17
"""The clients of these items have read on."""

NAMES = {
    HELLO: "HELLO", LOADING: "LOADING", READY: "READY", FAILED: "FAILED", RUN: "RUN", REPLY: "REPLY",
    CANCEL: "CANCEL", METRIC: "METRIC", EVENT: "EVENT", STOP: "STOP", FREE: "FREE", TAKE_OVER: "TAKE_OVER",
    CALL: "CALL", ANSWER: "ANSWER", HOLD: "HOLD", GO_ON: "GO_ON",
}  # fmt: skip

INTERRUPT = 47
"""The signal that ends a call whose items are all cancelled: see `panglot_worker.items.interrupting`.

A real-time signal far from both ends of their range: runtimes of other languages take theirs there (34 to 40, 64).
A number, not SIGRTMIN + n: front and worker may be linked to different C libraries.
"""

SINGLY = 1
"""Flag of RUN: the items are independent calls, each answered when done, not one batch."""

AHEAD = 2
"""Flag of RUN: the batch before is not answered yet."""

MORE = 1
"""Flag of a reply: another part of the same answer follows."""
ERROR = 2
"""Flag of a reply: the body is a JSON `Problem`, which the front words in the platform's manner."""
PASS = 4
"""Flag of a reply: no answer yet. The body is for the next pool of the pipeline; the front does not read it."""
SHARED = 8
"""Flag of a reply: its body is in the buffer that the item was lent."""
UNRUN = 16
"""Flag of a reply: the item was cancelled, and has no answer."""
RETRY = 32
"""Flag of a reply: another worker may succeed. It is the answer if there is no other worker, or no try left."""
FETCH = 64
"""Flag of a reply: no answer yet. The body is a JSON list of URIs; the item must come again with their contents."""

# `<` in each: without it, byte order and padding would be those of the machine, and nodes may differ.
HEADER = struct.Struct("<IBBHI")
RUN_ROW = struct.Struct("<QfIIQQ")
REPLY_ROW = struct.Struct("<QHBxIIIIIIII")
ITEM_ID = struct.Struct("<Q")

STAGES = ("decode", "preprocess", "inference", "postprocess", "encode")
"""What the five times of a reply stand for, in microseconds."""

MAX_EVENT = 1 << 21
"""Bytes of an EVENT."""

_COUNT = (int, type(None))
SHAPES: Dict[Any, Dict[str, Any]] = {
    READY: {
        "batched": bool, "slots": int, "seconds": (int, float), "max_batch": _COUNT, "workers": _COUNT,
        "lanes": (dict, type(None)), "interrupts": (bool, type(None)), "api": dict,
    },
    CALL: {
        "call": int, "model": str, "version": str, "items": list, "seconds": (int, float), "streams": bool,
        "size": int, "in_pieces": bool, "native": (dict, type(None)),
    },
    "failure": {"item": int},
    "cancel_call": {"call": int},
    "took": {"call": int, "bytes": int},
    "held": {"items": list, "since": int},
    "pipeline": {"pools": list},
    "batch_split": {"items": int, "failed": int, "message": str, "error": str},
    "report": {"report": dict},
    "warning": {"message": str},
    "note": {"message": str},
    "sick": {"message": str, "certain": bool},
    "replace": {"reason": str},
    "slots": {"slots": int},
    "progress": {"item": int, "fraction": (int, float, type(None))},
    "printed": {"item": int, "source": str, "text": str},
    "figure": {"family": str, "kind": str, "labels": dict, "change": str, "value": (int, float)},
}  # fmt: skip
"""The fields of a worker's control frame that the front relies on, by kind; those of an EVENT by its type."""

MAX_FRAME = 0xFFFFFFFF
MAX_CONTROL = 64 << 20
"""The longest frame of a worker, except REPLY, EVENT and CALL, which have their own limits."""
MAX_HEAD = 1 << 20
"""Bytes that a reply may have besides its body."""
JOIN_BELOW = 65536
"""Bodies that together are smaller are joined into one buffer: cheaper than a vectored write."""

ORDER_BITS = 63
"""Of a location in shared memory, these bits are the buffer's size as a power of two; START_BITS are its start."""

FILE_BITS_FROM = 7
FILE_BITS = 127 << FILE_BITS_FROM
"""Of a location, these bits number the file: 0 holds the bodies, the others hold what models of a chain hand on."""
START_BITS = ~((1 << 14) - 1)

IN_PIECES = 1
"""The location of a body of which some pieces lie in shared memory: see `panglot_worker.line.calls`."""
IN_READS = 64
"""Flag of a location for a result: it is in the file of the bodies, where the workers of other models read it."""

Buffer = Union[bytes, bytearray, memoryview]
Times = Tuple[int, int, int, int, int]


class WireError(Exception):
    """The peer's stream is not what this page says. The only answer is to end the worker."""


class Placed:
    """A body in shared memory, of which only the length is known here."""

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def placed(length: int) -> Buffer:
    """A Placed body, typed as a buffer: its readers look into the shared memory instead."""
    return cast(Buffer, Placed(length))


Look = Callable[[int, int, int, Optional[memoryview]], Buffer]
"""Finds a body in shared memory by its item's id, its location, its length, and what came with the frame."""


class Item(NamedTuple):
    """One request, as a worker receives it."""

    id: int
    seconds_left: float
    head: bytes
    body: Buffer
    location: int = 0
    """Where its body is in shared memory; 0: it came with the frame."""
    buffer: int = 0
    """Where its result may be put in shared memory; 0: no buffer was lent."""


class Head(NamedTuple):
    """What a worker knows about a request besides its body. All fields are raw bytes as the client sent them."""

    request_id: bytes = b""
    route: bytes = b""
    content_type: bytes = b""
    accept: bytes = b""
    path: bytes = b""
    query: bytes = b""
    fetched: bytes = b""
    traceparent: bytes = b""
    last_event_id: bytes = b""
    client: bytes = b""
    """The address of the peer; sent, like the headers, only to scripts that use `panglot.request()`."""
    headers: bytes = b""
    """All headers: lines of `name:value`, the names in lower case."""
    method: bytes = b"POST"
    segments: bytes = b""
    """The free segments of the path by name, written like a query; see `path_values`."""
    job: bytes = b""
    """The id of the job that this call runs; empty for a request that somebody waits for."""
    form: bytes = b""
    """For requests with tensors: their form, see `panglot_worker.tensors`. Only they have the fields below."""
    model: bytes = b""
    version: bytes = b""
    json_length: bytes = b""
    encoding: bytes = b""
    accept_encoding: bytes = b""
    hop: bytes = b""
    """For requests through a chain of models, which alone have this field: see `panglot_worker.tensors.handing`."""

    def pack(self) -> bytes:
        # The number of fields tells whether a request came with tensors, and whether it is in a chain.
        return b"\0".join(self if self.hop else self[:HOP] if self.form else self[:NATIVE_FIELDS])

    @classmethod
    def unpack(cls, raw: bytes) -> Head:
        try:
            return cls(*raw.split(b"\0"))
        except TypeError:
            raise WireError("a head has %d fields too many" % (raw.count(b"\0") + 1 - len(cls._fields))) from None

    @property
    def path_values(self) -> Dict[str, str]:
        """The free segments of the route's path, by name."""
        return dict(parse_qsl(self.segments.decode("ascii"), keep_blank_values=True))


NATIVE_FIELDS = Head._fields.index("form")
"""How many fields the head of a request without tensors has at most."""
HOP = Head._fields.index("hop")


class Reply(NamedTuple):
    """One answer, or one part of it.

    `head` is the content type, then further header lines (`name: value`), joined by NUL.
    """

    id: int
    status: int
    flags: int
    times: Times
    head: bytes
    body: Buffer
    rows: int = 1
    """How many rows its item had, where rows of several items share a run."""


NO_TIMES = (0, 0, 0, 0, 0)


def frame(kind: int, generation: int, payload: Buffer = b"", flags: int = 0, count: int = 0) -> bytes:
    """A whole frame as one buffer; for everything but RUN and REPLY."""
    return HEADER.pack(len(payload), kind, flags, count, generation) + bytes(payload)


def json_frame(kind: int, generation: int, value: Dict[str, Any]) -> bytes:
    return frame(kind, generation, json.dumps(value, default=str).encode())


def _assemble(
    kind: int, flags: int, generation: int, rows: List[bytes], heads: List[bytes], bodies: List[Buffer], size: int
) -> List[Buffer]:
    """The buffers of a frame of items; large bodies stay as they are."""
    table = b"".join(rows) + b"".join(heads)
    length = len(table) + size
    if length > MAX_FRAME:
        raise WireError("a frame of %d bytes is larger than %d" % (length, MAX_FRAME))
    start = HEADER.pack(length, kind, flags, len(rows), generation) + table
    if size < JOIN_BELOW:
        return [start + b"".join(bodies)]
    return [start, *bodies]


Outgoing = Tuple[int, float, bytes, Sequence[Buffer], int, int, int]
"""An item as the front sends it: id, seconds left, head, the body in pieces, its length, its location, its buffer."""


def run_frame(items: Iterable[Outgoing], generation: int, flags: int = 0) -> List[Buffer]:
    """The buffers of a RUN frame, in the order to send them. Raises WireError when it would be too large."""
    rows: List[bytes] = []
    heads: List[bytes] = []
    bodies: List[Buffer] = []
    total = 0
    pack = RUN_ROW.pack
    for item_id, seconds_left, head, pieces, size, location, buffer in items:
        rows.append(pack(item_id, seconds_left, len(head), size, location, buffer))
        heads.append(head)
        # A body in pieces sends its table, and the pieces that lie in no buffer.
        if not location or location == IN_PIECES:
            bodies.extend(pieces)
            total += size
    return _assemble(RUN, flags, generation, rows, heads, bodies, total)


def reply_frame(replies: Iterable[Reply], generation: int) -> List[Buffer]:
    """The buffers of a REPLY frame, in the order to send them. Raises WireError when it would be too large."""
    rows: List[bytes] = []
    heads: List[bytes] = []
    bodies: List[Buffer] = []
    total = 0
    pack = REPLY_ROW.pack
    for item_id, status, flags, times, head, body, of_item in replies:
        size = len(body)
        rows.append(pack(item_id, status, flags, *times, len(head), size, of_item))
        heads.append(head)
        if not flags & SHARED:
            # A body may be in several: `panglot_worker.line.many_buffers`.
            bodies.extend((body,) if type(body) is bytes else getattr(body, "buffers", (body,)))
            total += size
    return _assemble(REPLY, 0, generation, rows, heads, bodies, total)


def problem(
    item_id: int, status: int, code: str, message: str, traceback: str, times: Times = NO_TIMES, details: Any = None
) -> Reply:
    """A reply with ERROR. The message is for the client, the traceback for the log; both are cut when they are long."""
    message, traceback = clipped(message, LONGEST_MESSAGE), clipped(traceback, LONGEST_TRACEBACK)
    content = {"code": code, "message": message, "traceback": traceback, "details": details}
    return Reply(item_id, status, ERROR, times, b"", json.dumps(content).encode())


def cancel_frame(ids: Sequence[int], generation: int) -> bytes:
    return ids_frame(CANCEL, ids, generation)


def ids_frame(kind: int, ids: Sequence[int], generation: int) -> bytes:
    """A frame of item ids: CANCEL, FREE, HOLD or GO_ON."""
    payload = b"".join(ITEM_ID.pack(item_id) for item_id in ids)
    return frame(kind, generation, payload, count=len(ids))


def run_items(
    payload: memoryview, count: int, look: Optional[Look] = None, lent: Optional[Dict[int, int]] = None
) -> List[Item]:
    """The items of a RUN payload. Bodies are views into it, or into shared memory: it must not be reused.

    Where results may be put is noted in `lent`, by item.
    """
    heads = count * RUN_ROW.size
    items = []
    try:
        rows = list(RUN_ROW.iter_unpack(payload[:heads]))
    except struct.error as error:
        raise WireError("a RUN frame ends inside its table: %s" % error) from None
    # Lengths are not checked here one by one: slices never raise, and the sum at the end tells of any lie.
    bodies = heads + sum([row[2] for row in rows])
    for item_id, seconds_left, head_length, body_length, location, buffer in rows:
        head = bytes(payload[heads : heads + head_length])
        heads += head_length
        if buffer and lent is not None:
            lent[item_id] = buffer
        if not location:
            items.append(Item(item_id, seconds_left, head, payload[bodies : bodies + body_length], 0, buffer))
            bodies += body_length
        elif look is None:
            raise WireError("a body in shared memory came to a worker that has none")
        else:
            came = None
            if location == IN_PIECES:
                came = payload[bodies : bodies + body_length]
                bodies += body_length
            body = look(item_id, location, body_length, came)
            items.append(Item(item_id, seconds_left, head, body, location, buffer))
    # A table that is cut off at the border of a row unpacks without an error, hence the count.
    if len(rows) != count or bodies != len(payload):
        raise WireError("a RUN frame of %d bytes holds items of %d bytes" % (len(payload), bodies))
    return items


def replies(payload: memoryview, count: int) -> List[Reply]:
    """The replies of a REPLY payload; bodies are views into it."""
    heads = count * REPLY_ROW.size
    result = []
    try:
        rows = list(REPLY_ROW.iter_unpack(payload[:heads]))
    except struct.error as error:
        raise WireError("a REPLY frame ends inside its table: %s" % error) from None
    # One reply at a time is the rule where calls run one by one.
    bodies = heads + (rows[0][8] if len(rows) == 1 else sum([row[8] for row in rows]))
    for item_id, status, flags, t0, t1, t2, t3, t4, head_length, body_length, of_item in rows:
        head = bytes(payload[heads : heads + head_length])
        heads += head_length
        if flags & SHARED:
            body = placed(body_length)
        else:
            body = payload[bodies : bodies + body_length]
            bodies += body_length
        result.append(Reply(item_id, status, flags, (t0, t1, t2, t3, t4), head, body, of_item))
    if len(rows) != count or bodies != len(payload):
        raise WireError("a REPLY frame of %d bytes holds replies of %d bytes" % (len(payload), bodies))
    return result


def item_ids(payload: Buffer) -> List[int]:
    """The item ids of a CANCEL or a FREE. Raises WireError when the last one is cut off."""
    if len(payload) % ITEM_ID.size:
        raise WireError("a frame of %d bytes ends inside an id" % len(payload))
    return [item_id for (item_id,) in ITEM_ID.iter_unpack(payload)]


def json_object(payload: Buffer) -> Dict[str, Any]:
    """The JSON object a control frame holds. Raises WireError when it holds anything else."""
    try:
        value = json.loads(bytes(payload))
    # Deeply nested JSON raises RecursionError, which is no ValueError.
    except (ValueError, RecursionError) as error:
        raise WireError("a control frame is not JSON: %s" % error) from None
    if not isinstance(value, dict):
        raise WireError("a control frame holds no JSON object")
    return value


def control(kind: int, payload: Buffer) -> Dict[str, Any]:
    """The content of a worker's control frame. Raises WireError for a field that is missing or of another type."""
    value = json_object(payload)
    shape = SHAPES.get(str(value.get("type")) if kind == EVENT else kind, {})
    if kind == METRIC:
        # Its fields are counters by their names, so that every value is a number.
        shape = dict.fromkeys(value, (int, float))
    for name, wanted in shape.items():
        if not isinstance(value.get(name), wanted):
            raise WireError("a control frame (%s) says %.40r for %.40s" % (NAMES[kind], value.get(name), name))
        if name == "items" and wanted is list and not all(isinstance(item, int) for item in value[name]):
            raise WireError("a control frame (%s) says %.40r for items" % (NAMES[kind], value[name]))
    return value


def uris(body: Buffer) -> List[str]:
    """The URIs that the worker of a FETCH reply wants. Raises WireError when the body is no list of texts."""
    try:
        wanted = json.loads(bytes(body))
    except ValueError:
        wanted = None
    if not isinstance(wanted, list) or not all(isinstance(uri, str) for uri in wanted):
        raise WireError("a reply with FETCH holds no list of URIs")
    return wanted
