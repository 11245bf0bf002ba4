"""Calls of a script to other models of its server; `panglot.engine.made_calls` passes them on."""

from __future__ import annotations

import itertools
import json
import math
import threading
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence

from panglot_worker.dialects.request import Request
from panglot_worker.line import calls, wire
from panglot_worker.line.port import SHARE_FROM, Port
from panglot_worker.scripts import current

TELL_FROM = 1 << 20
"""Bytes of a stream that are reported to the front together. It pauses the callee when 8 MiB are not taken."""


class CalleeAnswer(NamedTuple):
    """An answer to a call, or a part of one."""

    status: int
    body: wire.Buffer = b""
    """A message with tensors."""
    message: str = ""
    """The error, where the status is not 200."""
    code: str = ""
    more: bool = False
    """Whether another part follows."""
    content_type: str = ""
    """The content type of an answer in the form of the callee's platform; empty for tensors."""


Take = Callable[[CalleeAnswer], None]
"""Takes an answer on the thread that reads from the front: it must not wait."""


class OutgoingCalls:
    """The open calls of this worker. Any thread may use it."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._numbers = itertools.count(1)
        self._open: Dict[int, Take] = {}
        self._taken: Dict[int, int] = {}
        """By open stream: the bytes taken of it that are not reported yet."""
        self._lock = threading.Lock()
        port.on_answer = self._on_answer

    def begin(
        self,
        model: str,
        version: str,
        body: wire.Buffer,
        take: Take,
        streams: bool = False,
        seconds: float = 0.0,
        requests: Optional[Sequence[Request]] = None,
        native: Optional[Dict[str, str]] = None,
    ) -> int:
        """Call a model, for these requests, or the requests of the script's call. Returns the number, for `cancel`.

        `seconds` limits the time; with 0, the deadlines of the requests do. `take` gets the answer, or its parts. The
        body is a message with tensors; with `native`, which holds `content_type` and `accept`, it is a body as clients
        of the callee's platform send it. With `streams`, call `took` for each part: the callee pauses while many bytes
        are not taken.
        """
        number = next(self._numbers)
        if len(body) > self._port.max_body:
            message = "a request of %d bytes is larger than answers may be, %d" % (len(body), self._port.max_body)
            take(CalleeAnswer(413, message=message, code="body_too_large"))
            return number
        items = [request.id for request in (current.current() if requests is None else requests)]
        about = {"model": model, "version": version, "streams": streams, "seconds": seconds, "items": items}
        if streams:
            self._taken[number] = 0
        self._send(number, take, {**about, "native": native}, body)
        return number

    def took(self, number: int, answer: CalleeAnswer) -> None:
        """Count a part of a stream as taken, and report to the front from time to time."""
        with self._lock:
            taken = self._taken.get(number, 0) + len(answer.body)
            # After the last part, or a cancellation, the front counts no longer.
            if not answer.more or number not in self._taken:
                self._taken.pop(number, None)
                return
            self._taken[number] = taken if taken < TELL_FROM else 0
        if taken >= TELL_FROM:
            self._port.tell(wire.EVENT, {"type": "took", "call": number, "bytes": taken})

    def ask(self, what: str, model: str, version: str, take: Take) -> None:
        """Ask whether a model is `ready`, or have the server `load` or `unload` it: the status is 200 if so."""
        about = {"model": model, "version": version, "streams": False, "seconds": 0, "items": [], "asks": what}
        self._send(next(self._numbers), take, about, b"")

    def _send(self, number: int, take: Take, about: Dict[str, Any], body: wire.Buffer) -> None:
        # Both before the call is sent: its answer may come at once, on another thread.
        self._port.keep_reading()
        with self._lock:
            self._open[number] = take
        sent = getattr(body, "buffers", (body,))
        rows = [self._piece(buffer) for buffer in sent]
        in_pieces = any(row.location for row in rows)
        if in_pieces:
            sent = [calls.table(rows), *(buffer for row, buffer in zip(rows, sent) if not row.location)]
        about.update(call=number, size=len(body), in_pieces=in_pieces)
        # `body` holds the buffers that the rows name until this is sent: so the front reads it before a FREE of them.
        self._port.send(calls.frame(wire.CALL, self._port.generation, about, sent))

    def _piece(self, buffer: wire.Buffer) -> calls.BodyPiece:
        """How a buffer travels: by its address, where it is large and lies in shared memory, else by its bytes."""
        named = self._port.shared.piece_of(buffer) if len(buffer) >= SHARE_FROM else None
        return named if named is not None else calls.BodyPiece(0, 0, 0, len(buffer))

    def cancel(self, number: int) -> None:
        """Cancel a call: `take` gets nothing from now on, unless it is running already."""
        with self._lock:
            known = self._open.pop(number, None)
            self._taken.pop(number, None)
        if known is not None:
            self._port.tell(wire.EVENT, {"type": "cancel_call", "call": number})

    def _on_answer(self, payload: memoryview) -> None:
        text, came = calls.read(payload)
        body: wire.Buffer = came
        about = json.loads(bytes(text))
        if "location" in about:
            # Also for a call that was cancelled meanwhile: only a view that ends gives the memory back to the front.
            body = self._port.shared.look(about["lease"], about["location"], about["size"])
        more = bool(about.get("more"))
        with self._lock:
            take = self._open.get(about["call"]) if more else self._open.pop(about["call"], None)
        # None: it was cancelled while the answer was on its way.
        if take is not None:
            message, code, content_type = (about.get(name, "") for name in ("message", "code", "content_type"))
            take(CalleeAnswer(about["status"], body, message, code, more, content_type))


def seconds_of(microseconds: Any) -> float:
    """A time that a script gives in microseconds, in seconds; 0 for none."""
    seconds = float(microseconds or 0) / 1e6
    return seconds if seconds > 0 and math.isfinite(seconds) else 0.0
