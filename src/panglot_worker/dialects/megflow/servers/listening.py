"""Server nodes whose requests enter the graph as envelopes, and leave it as answers."""

from __future__ import annotations

import re
import time
import weakref
from typing import Any, Dict, Optional, Tuple

from panglot_worker.dialects.base import Answer, Problem, Request
from panglot_worker.dialects.megflow.graph.channels import Sink
from panglot_worker.dialects.megflow.graph.envelope import EMPTY, Contents, Loss, OpenRequest, Token
from panglot_worker.dialects.megflow.graph.nodes import Placement
from panglot_worker.dialects.megflow.servers.server_node import Rejected, ServerNode
from panglot_worker.dialects.megflow.video import images
from panglot_worker.errors import ClientError
from panglot_worker.items import recording
from panglot_worker.items.replying import cancelled, durations, failed, finished
from panglot_worker.line import wire
from panglot_worker.scripts.loading import script_traceback

JSON, JPEG, OCTETS = "application/json", "image/jpeg", "application/octet-stream"
MEDIA_TYPE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*(;.*)?")
now = time.perf_counter


class EnvelopeServer(ServerNode):
    """A server node that sends every request into the graph as an envelope.

    The node's own thread decodes and sends; the thread that sends to `inp` encodes and answers.
    """

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        super().__init__(name, args)
        self.dev = False
        self._open: Dict[int, OpenRequest] = {}
        self._next = 0

    @staticmethod
    def panglot_sink(placement: Placement) -> Sink:
        """The target for `inp`: the thread that sends an answer also writes it. The instance is made later."""
        if placement.sink is None:
            placement.sink = Sink(lambda contents: None)
        return placement.sink

    def panglot_attach(self, thread: Any) -> None:
        """Take answers from now on, then as for every server node."""
        if thread.placement.sink is not None:
            thread.placement.sink.receive = self.answer
        self.dev = bool(thread.runtime.settings.get("dev"))
        super().panglot_attach(thread)

    # In

    def take(self, request: Request) -> None:
        """Send a request into the graph. Raises Rejected."""
        marks = [now()]
        try:
            msg = self.decode(self._adapt(request) if request.has_tensors else request)
        except Rejected as error:
            error.times = durations([marks[0], now()])
            raise
        if self.dev:
            recording.begin(request, msg)
        number, self._next = self._next, self._next + 1
        open_request = OpenRequest(request, number)
        token = Token(open_request, self)
        # Weak: the token must die with the last envelope, which is how a loss is noticed.
        open_request.token = weakref.ref(token)
        # Two marks for one moment: there is no preprocessing.
        marks += [now()] * 2
        open_request.marks = marks
        # Noted before it is sent: the answer may come on another thread before `put` returns.
        self._open[number] = open_request
        self.gateway.entered(request.id, self, open_request)
        contents = Contents(msg, token)
        contents.partial_id = number
        del token
        self.out.put(contents)
        self.out.count += 1

    def _adapt(self, request: Request) -> Request:
        """A request with tensors as the node's own clients would have sent it. Raises Rejected."""
        try:
            admitted: Request = self.gateway.tensor_adapter.adapt(request)
        except ClientError as error:
            raise Rejected(error.status, "bad_request", error.message) from None
        return admitted

    def unexpected(self, error: Exception) -> Tuple[Problem, str]:
        """An error of the server, or of what it decodes with: the log tells which."""
        problem = Problem(500, "bad_request", "the request cannot be taken in; the server's log says why")
        return problem, script_traceback(error)

    def decode(self, request: Request) -> Any:
        """The message for a request. Raises Rejected."""
        raise NotImplementedError

    def is_over(self, number: int) -> bool:
        """Whether a request had this number, and has been answered."""
        return number < self._next and number not in self._open

    def open_token(self, number: int) -> Any:
        """The token of the open request with this number; None where there is none."""
        open_request = self._open.get(number)
        return open_request.token() if open_request is not None else None

    # Out

    def answer(self, contents: Contents) -> None:
        """Answer a request with an envelope that has come back. Only the first answer to a request counts."""
        number, token = contents.partial_id, contents.token
        if number is None and token is not None:
            number = token.subject.number
        # The token of another server node has a number of that node, which may be the number of another request here.
        open_request = self._finish(number) if token is None or token.origin is self else None
        if open_request is None:
            self.gateway.extra(self.path, number is None)
            return
        marks = [*open_request.marks, now(), now()]
        item = open_request.request.id
        if open_request.unwanted:
            self.gateway.reply(item, cancelled(item))
            return
        try:
            request = open_request.request
            answer = self._recorded(contents, request, self.encode(contents, request))
            if request.has_tensors:
                answer = self.gateway.tensor_adapter.adapt_answer(answer, request)
        except Exception as error:
            text = "%s '%s' cannot answer with what the graph sent back: %s" % (type(self).__name__, self.path, error)
            problem = Problem(500, "bad_result", "the graph's result cannot be sent; the server's log says why")
            self.gateway.reply(item, failed(item, problem, text, durations([*marks, now()])))
            return
        self.gateway.reply(item, finished(item, answer, durations([*marks, now()])))

    def _recorded(self, contents: Contents, request: Request, answer: Answer) -> Answer:
        """The answer, inside of the record of its request where the client wants one."""
        record = recording.record_of(request)
        if record is None:
            return answer
        record.add("final", None if contents.msg is EMPTY else contents.msg)
        return record.answer(answer)

    def _finish(self, number: Optional[int]) -> Optional[OpenRequest]:
        open_request = self._open.pop(number, None) if number is not None else None
        if open_request is not None:
            open_request.done = True
        return open_request

    def encode(self, contents: Contents, request: Request) -> Answer:
        """The answer for what came back. Whatever it raises is answered 500."""
        raise NotImplementedError

    def lost(self, open_request: OpenRequest, loss: Loss) -> None:
        """Note that nothing is left of a request. A finaliser calls this, anywhere and at any time: it only notes."""
        self.gateway.lost(self, open_request, loss)

    def give_up(self, open_request: OpenRequest, loss: Loss) -> None:
        """Answer a request that was lost, on the main thread."""
        if self._finish(open_request.number) is None:
            return
        item = open_request.request.id
        if open_request.unwanted:
            self.gateway.reply(item, cancelled(item))
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
        self.gateway.reply(item, failed(item, problem, text, durations([*open_request.marks, now()])))


class ImageServer(EnvelopeServer):
    """Pictures in; pictures or, with `response = "json"`, text out."""

    def decode(self, request: Request) -> Dict[str, Any]:
        check_type(request.head.content_type.decode("latin-1"))
        try:
            picture = images.decode(request.body)
        except images.NoPicture as error:
            raise Rejected(500, "no_picture", "Unhandled rejection: %s" % error) from None
        return {"data": picture, "extra_data": segment(request.head)}

    def encode(self, contents: Contents, request: Request) -> Answer:
        """A JPEG of the picture in `data`, or the text. Raises ValueError for anything else."""
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


class BytesServer(EnvelopeServer):
    """Bytes in, bytes out."""

    def decode(self, request: Request) -> Dict[str, Any]:
        import numpy

        return {"data": numpy.frombuffer(bytes(request.body), numpy.uint8)}

    def encode(self, contents: Contents, request: Request) -> Answer:
        """The bytes of the uint8 array in `data`. Raises ValueError for anything else."""
        msg = contents.msg
        data = msg.get("data") if isinstance(msg, dict) else None
        if data is None:
            raise ValueError("it must be a dict with 'data', not %s" % kind(msg))
        if str(getattr(data, "dtype", "")) != "uint8":
            raise ValueError("its 'data' must be a uint8 array, not %s" % kind(data))
        return Answer(OCTETS, data.tobytes())


def kind(value: Any) -> str:
    """The kind of a message, for a sentence about it."""
    return "an empty envelope" if value is EMPTY else type(value).__name__


def check_type(content_type: str) -> None:
    """Refuse content types other than `image/*`, and bytes, which a picture may come as. Raises Rejected."""
    if not content_type:
        raise Rejected(400, "bad_request", 'Missing request header "content-type"')
    match = MEDIA_TYPE.fullmatch(content_type)
    if match is None:
        raise Rejected(400, "bad_request", 'Invalid request header "content-type"')
    media = match.group(1).lower()
    if not media.startswith("image/") and media != OCTETS:
        raise Rejected(404, "not_found", "")


def segment(head: wire.Head) -> str:
    """The last part of the path, as the client wrote it."""
    return head.path.rpartition(b"/")[2].decode("utf-8", "replace")


NODES: Dict[str, Any] = {"ImageServer": ImageServer, "BytesServer": BytesServer}
