"""Server nodes: requests enter the graph here as envelopes, and leave it as answers."""

from __future__ import annotations

import queue
import re
import threading
import time
import weakref
from typing import Any, Dict, List, Optional, Union

from panglot_worker import recording, wire
from panglot_worker.dialects.base import Answer, Problem, Request
from panglot_worker.dialects.megflow import images
from panglot_worker.dialects.megflow.channels import Sink
from panglot_worker.dialects.megflow.envelope import EMPTY, Contents, Loss, Record, Token
from panglot_worker.dialects.megflow.nodes import Placement
from panglot_worker.loading import script_traceback
from panglot_worker.running import cancelled, durations, failed, finished

JSON, JPEG, OCTETS = "application/json", "image/jpeg", "application/octet-stream"
MEDIA_TYPE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*(;.*)?")
now = time.perf_counter


class Rejected(Exception):
    """A request that does not reach the graph."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(status, code, message)


class Server:
    """What the server nodes share. A node's own thread decodes and sends; whoever sends to `inp` writes the answer."""

    inp: Any
    out: Any

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        self.name = name
        self.args = args
        self.doors: Any = None
        self.dev = False
        self._open: Dict[int, Record] = {}
        self._arrivals: "queue.SimpleQueue[Optional[Request]]" = queue.SimpleQueue()
        self._next = 0
        self._lock = threading.Lock()

    @staticmethod
    def panglot_sink(placement: Placement) -> Sink:
        """Answers are taken in the thread of whoever sends them; the instance is made later."""
        if placement.sink is None:
            placement.sink = Sink(lambda contents: None)
        return placement.sink

    def panglot_attach(self, thread: Any) -> None:
        if thread.placement.sink is not None:
            thread.placement.sink.receive = self.answer
        self.path = thread.name
        self.doors = thread.runtime.doors
        self.dev = bool(thread.runtime.settings.get("dev"))
        thread.runtime.servers.append(self)

    # In

    def exec(self) -> None:
        """Feed requests into the graph until closed."""
        while True:
            request = self._arrivals.get()
            if request is None:
                return
            try:
                self._enter(request)
            except Exception as error:
                problem = Problem(500, "bad_request", "the request cannot be taken in; the server's log says why")
                text = script_traceback(error)
                self.doors.reply(request.id, failed(request.id, problem, text, wire.NO_TIMES))
            del request

    def accept(self, request: Request) -> None:
        """From the front; any thread."""
        self._arrivals.put(request)

    def close(self) -> None:
        self._arrivals.put(None)

    def _enter(self, request: Request) -> None:
        marks = [now()]
        if self.doors.is_unwanted(request.id):
            self.doors.reply(request.id, cancelled(request.id))
            return
        try:
            msg = self.decode(request)
        except Rejected as error:
            times = durations([marks[0], now()])
            self.doors.reply(request.id, failed(request.id, error.problem, "", times))
            return
        if self.dev:
            recording.begin(request, msg)
        number, self._next = self._next, self._next + 1
        record = Record(request, number)
        token = Token(record, self)
        record.token = weakref.ref(token)
        marks += [now()] * 2
        record.marks = marks
        self._open[number] = record
        self.doors.entered(request.id, self, record)
        contents = Contents(msg, token)
        contents.partial_id = number
        del token
        self.out.put(contents)
        self.out.count += 1

    def decode(self, request: Request) -> Any:
        raise NotImplementedError

    def is_over(self, number: int) -> bool:
        """Whether this was the number of a request, and no longer is."""
        return number < self._next and number not in self._open

    def open_token(self, number: int) -> Any:
        record = self._open.get(number)
        return record.token() if record is not None else None

    # Out

    def answer(self, contents: Contents) -> None:
        """An envelope has come back. Only the first answer to a request counts."""
        number, token = contents.partial_id, contents.token
        if number is None and token is not None:
            number = token.record.number
        # What came in by another server node has a number of that one's.
        record = self._take(number) if token is None or token.origin is self else None
        if record is None:
            self.doors.extra(self.path, number is None)
            return
        marks = [*record.marks, now(), now()]
        item = record.request.id
        if record.unwanted:
            self.doors.reply(item, cancelled(item))
            return
        try:
            answer = self._recorded(contents, record.request, self.encode(contents, record.request))
        except Exception as error:
            text = "%s '%s' cannot answer with what the graph sent back: %s" % (type(self).__name__, self.path, error)
            problem = Problem(500, "bad_result", "the graph's result cannot be sent; the server's log says why")
            self.doors.reply(item, failed(item, problem, text, durations([*marks, now()])))
            return
        self.doors.reply(item, finished(item, answer, durations([*marks, now()])))

    def _recorded(self, contents: Contents, request: Request, answer: Answer) -> Answer:
        """The answer, with what was recorded of its request around it, where somebody asked for that."""
        record = recording.record_of(request)
        if record is None:
            return answer
        record.add("final", None if contents.msg is EMPTY else contents.msg)
        return record.answer(answer)

    def _take(self, number: Optional[int]) -> Optional[Record]:
        record = self._open.pop(number, None) if number is not None else None
        if record is not None:
            record.done = True
        return record

    def encode(self, contents: Contents, request: Request) -> Answer:
        raise NotImplementedError

    def lost(self, record: Record, loss: Loss) -> None:
        """Nothing is left of a request. May be called anywhere at any time, so it only leaves a note."""
        self.doors.lost(self, record, loss)

    def give_up(self, record: Record, loss: Loss) -> None:
        """Answer a request that was lost, on the main thread."""
        if self._take(record.number) is None:
            return
        item = record.request.id
        if record.unwanted:
            self.doors.reply(item, cancelled(item))
            return
        if loss.failed:
            # Its traceback is in the log already.
            problem, text = Problem(500, "script_error", "node '%s' failed on this request" % loss.node), ""
        else:
            where = (
                "node '%s' took it and neither sent it on nor kept it" % loss.node if loss.node else "it was dropped"
            )
            problem = Problem(500, "lost", "the graph lost this request: %s" % where)
            text = "every request needs an answer: send the envelope on, or envelope.repack(message)"
        self.doors.reply(item, failed(item, problem, text, durations([*record.marks, now()])))


class ImageServer(Server):
    def decode(self, request: Request) -> Dict[str, Any]:
        check_type(request.head.content_type.decode("latin-1"))
        try:
            picture = images.decode(request.body)
        except images.NoPicture as error:
            raise Rejected(500, "no_picture", "Unhandled rejection: %s" % error) from None
        return {"data": picture, "extra_data": segment(request.head)}

    def encode(self, contents: Contents, request: Request) -> Answer:
        msg = contents.msg
        if self.args.get("response") == "json":
            if not isinstance(msg, str):
                raise ValueError('with response = "json" it must be a str, not %s: use json.dumps' % kind(msg))
            return Answer(JSON, msg.encode("utf-8", "surrogatepass"))
        if not isinstance(msg, dict) or "data" not in msg:
            raise ValueError(
                "it must be a dict with 'data', not %s; for text, add response = \"json\" to the node" % kind(msg)
            )
        return Answer(JPEG, images.encode(msg["data"]), 200, ("accept-ranges: bytes",))


class BytesServer(Server):
    def decode(self, request: Request) -> Dict[str, Any]:
        import numpy

        return {"data": numpy.frombuffer(bytes(request.body), numpy.uint8)}

    def encode(self, contents: Contents, request: Request) -> Answer:
        msg = contents.msg
        data = msg.get("data") if isinstance(msg, dict) else None
        if data is None:
            raise ValueError("it must be a dict with 'data', not %s" % kind(msg))
        if str(getattr(data, "dtype", "")) != "uint8":
            raise ValueError("its 'data' must be a uint8 array, not %s" % kind(data))
        return Answer(OCTETS, data.tobytes())


def kind(value: Any) -> str:
    return "an empty envelope" if value is EMPTY else type(value).__name__


def check_type(content_type: str) -> None:
    """Pictures come as `image/*`, as a type of picture, or as bytes. Raises Rejected."""
    if not content_type:
        raise Rejected(400, "bad_request", 'Missing request header "content-type"')
    found = MEDIA_TYPE.fullmatch(content_type)
    if found is None:
        raise Rejected(400, "bad_request", 'Invalid request header "content-type"')
    media = found.group(1).lower()
    if not media.startswith("image/") and media != OCTETS:
        raise Rejected(404, "not_found", "")


def segment(head: wire.Head) -> str:
    """The last part of the path, as the client wrote it."""
    return head.path.rpartition(b"/")[2].decode("utf-8", "replace")


NODES: Dict[str, Union[type, Any]] = {"ImageServer": ImageServer, "BytesServer": BytesServer}
TYPES: List[str] = list(NODES)
