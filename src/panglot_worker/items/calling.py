"""Calls that a script makes of other models of its server; `panglot.engine.made_calls` passes them on."""

from __future__ import annotations

import itertools
import json
import math
import threading
from typing import Any, Callable, Dict, NamedTuple

from panglot_worker.line import wire
from panglot_worker.line.port import Port
from panglot_worker.scripts import current


class CalleeAnswer(NamedTuple):
    """An answer to a call, or a part of one."""

    status: int
    body: wire.Buffer = b""
    """A message with tensors."""
    message: str = ""
    """What went wrong, where the status is not 200."""
    code: str = ""
    more: bool = False
    """Whether another part follows."""


Take = Callable[[CalleeAnswer], None]
"""Takes an answer on the thread that reads from the front: it must not wait."""


class OutgoingCalls:
    """The open calls of this worker. Any thread may use it."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._numbers = itertools.count(1)
        self._open: Dict[int, Take] = {}
        self._lock = threading.Lock()
        port.on_answer = self._on_answer

    def begin(
        self, model: str, version: str, body: wire.Buffer, take: Take, streams: bool = False, seconds: float = 0.0
    ) -> int:
        """Call a model, for the requests that the script works on. `seconds` limits the time; 0: their deadline does.

        Returns the number of the call, for `cancel`. `take` gets the answer, or its parts.
        """
        number = next(self._numbers)
        about = {"call": number, "model": model, "version": version, "streams": streams, "seconds": seconds}
        about["items"] = [request.id for request in current.current()]
        if len(body) > self._port.max_body:
            message = "a request of %d bytes is larger than answers may be, %d" % (len(body), self._port.max_body)
            take(CalleeAnswer(413, message=message, code="body_too_large"))
            return number
        self._send(number, take, about, body)
        return number

    def ask_ready(self, model: str, version: str, take: Take) -> None:
        """Ask whether a model takes requests: the status of the answer is 200 then."""
        number = next(self._numbers)
        about = {"call": number, "model": model, "version": version, "streams": False, "seconds": 0, "items": []}
        self._send(number, take, {**about, "ready": True}, b"")

    def _send(self, number: int, take: Take, about: Dict[str, Any], body: wire.Buffer) -> None:
        self._port.keep_reading()
        with self._lock:
            self._open[number] = take
        self._port.send(wire.described_frame(wire.CALL, self._port.generation, about, body))

    def cancel(self, number: int) -> None:
        """Nobody waits for the answer any more."""
        with self._lock:
            known = self._open.pop(number, None)
        if known is not None:
            self._port.tell(wire.EVENT, {"type": "cancel_call", "call": number})

    def _on_answer(self, payload: memoryview) -> None:
        text, body = wire.described(payload)
        about = json.loads(bytes(text))
        more = bool(about.get("more"))
        with self._lock:
            take = self._open.get(about["call"]) if more else self._open.pop(about["call"], None)
        # None: it was cancelled while the answer was on its way.
        if take is not None:
            take(CalleeAnswer(about["status"], body, about.get("message", ""), about.get("code", ""), more))


def seconds_of(microseconds: Any) -> float:
    """A time that a script gives in microseconds, in seconds; 0 for none."""
    seconds = float(microseconds or 0) / 1e6
    return seconds if seconds > 0 and math.isfinite(seconds) else 0.0
