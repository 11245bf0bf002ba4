"""One request to the script and its answer, on one connection."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

from panglot.engine.call import RUNNING, Call, CallProgress, Fault
from panglot.web.access.keys import KeyHolder
from panglot.web.contract import ErrorAnswer, neutral_error, v2_error
from panglot.web.front import Front
from panglot.web.http1 import stream_errors
from panglot.web.http1.heads.answer_head import BadHead, beginning, header_text, timing
from panglot.web.http1.heads.request_head import RequestHead
from panglot.web.limits import peer
from panglot.web.limits.quota import ByteQuota
from panglot.web.limits.spool import SpooledBody
from panglot.web.paths import Destination
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.web.http1.connection import HttpConnection

JOIN_BELOW = 65536
"""Below so many bytes a body is copied behind its head: one buffer is cheaper to send than two."""
STREAM_BACKLOG = 8 * 1024 * 1024
"""A stream is cut off if more than this many bytes wait for the client to read them when the next part comes."""

BODILESS = (204, 304)
"""Statuses of answers without a body and without a length."""
MANY_PIECES, SMALL_PIECE = 256, 4096
"""Beyond so many pieces of a body, those of at most so many bytes share a buffer."""
TLS_PIECE = 1 << 17

BAD_HEAD = Fault(500, "bad_result", "the script's result cannot be sent; the server's log says why")
NO_MEMORY = Fault(503, "memory", "the server holds too many request bodies; try again later", 1)
BLUNDER = Fault(500, "internal_error", "the server itself failed on this request; its log says why")
WORDED = Fault(500, "script_error", "the script failed in the middle of its answer; the server's log says why")

log = logging.getLogger("panglot.web")
monotonic = time.monotonic


class Exchange(Call):
    """The call of one HTTP request. Its connection makes it when the head is complete; a reply or a fault ends it."""

    __slots__ = (
        "began", "connection", "counted_for", "error_form", "front", "holder", "keep_alive", "lines", "method", "minor",
        "model", "route", "started", "tells_error", "trace", "upload", "written",
    )  # fmt: skip

    quota: ByteQuota

    def __init__(self, connection: HttpConnection, front: Front, destination: Destination, began: float) -> None:
        super().__init__(destination.model.quota)
        self.connection = connection
        self.front = front
        self.model = destination.model
        self.route = destination.route
        self.lane = self.route.lane
        self.began = began
        self.keep_alive = True
        self.minor = 1
        self.started = False
        """Whether a streamed answer has begun."""
        self.written = False
        """Whether the whole answer has been written."""
        self.tells_error = False
        """Whether a stream that breaks off says so in a last part, because its client prefers that."""
        self.error_form = b""
        """The form of this part."""
        self.method = self.trace = b""
        self.lines = b""
        """Further header lines of the answer: the platform's request id, and what browsers need from other origins."""
        self.pieces: list[bytes | bytearray | memoryview] = []
        self.upload: SpooledBody | None = None
        """The body, where it is written to a file."""
        self.holder: KeyHolder | None = None
        """The client, where it came with a key."""
        self.counted_for: KeyHolder | None = None
        """The same until `release`: so long the key counts this among its open requests."""

    @property
    def goes_to_file(self) -> bool:
        """Whether the body is written to a file, so that the worker gets the path of it."""
        return self.route.spooled

    def count_for(self, holder: KeyHolder) -> None:
        """Count this for the key of its client, until its body is released; its answer tells the limits of the key."""
        self.holder = self.counted_for = holder
        holder.take()
        if holder.policy:
            self.lines += holder.limit_lines()

    def add_piece(self, body: bytes) -> None:
        """Add a piece to the body. Once there are many, small ones are joined: an object costs more than they do."""
        pieces = self.pieces
        if len(pieces) < MANY_PIECES or len(body) > SMALL_PIECE:
            pieces.append(body)
        elif isinstance(pieces[-1], bytearray):
            pieces[-1] += body
        else:
            pieces.append(bytearray(body))

    def use_upload(self, upload: SpooledBody) -> None:
        """Give the worker the path of the uploaded file as the body; on another machine, the content of the file."""
        body = upload.content() if self.model.settings.ray else bytes(upload.path)
        self.pieces, self.size = [body], len(body)
        # The bytes of the file were never counted. `release` gives `size` back, so it has to be counted now.
        self.quota.used += self.size

    def release(self) -> None:
        """Release the body and its file, and count the request out for its key. May be called again."""
        Call.release(self)  # `super()` costs as much again, for every request.
        if self.upload is not None:
            self.upload.close()
        if self.counted_for is not None:
            self.counted_for.release()
            self.counted_for = None

    def cancel(self) -> None:
        """Cancel the request: its client has disconnected."""
        if self.id:
            self.model.engine.cancel(self)
        self.release()

    # Answers

    def reply(self, reply: wire.Reply) -> None:
        """Write the script's answer, its failure as the platform writes it, or one chunk of a stream."""
        # The connection was lost, and this reply was on its way when the call was cancelled.
        if self.connection.transport is None:
            return
        try:
            if reply.flags & wire.MORE or self.started:
                self._stream(reply)
            elif reply.flags & wire.ERROR:
                self._script_failed(reply)
            else:
                self._send(reply.status, reply.head, reply.body, reply.times)
        except BadHead as error:
            # Raised before a byte is written: a whole other answer can still be sent.
            self._unsendable(error)
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            self.blunder()

    def _unsendable(self, error: BadHead) -> None:
        """Answer 500 instead of an answer with a head that the client would misread."""
        if self.state == RUNNING:
            # It is the first part of a stream: no more of it can be sent.
            self.model.engine.cancel(self)
        self.model.engine.trouble(self.request_id.decode("latin-1"), str(error), "", self.worker)
        self.fail(BAD_HEAD)

    def report(self, progress: CallProgress) -> None:
        """Note a progress report of the script, for a page that waits."""
        self.front.progress.note(self.request_id, progress)

    def fail(self, fault: Fault) -> None:
        """Answer instead of the script; break off a stream that has begun."""
        if self.connection.transport is None:
            return
        try:
            if self.started:
                self._break_off(fault)
            else:
                self._refuse(fault)
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            self.blunder()

    def _refuse(self, fault: Fault) -> None:
        answer = self.model.error_answer(self.route, fault, self.request_id)
        extra = b"retry-after: %d\r\n" % fault.retry_after if fault.retry_after else b""
        self._send(answer.status, answer.head, answer.body, wire.NO_TIMES, extra)

    def blunder(self) -> None:
        """Log the exception being handled, a fault of the server, and answer 500 if nothing has been written yet.

        It must not reach the engine, for which it would be the fault of a worker.
        """
        log.exception("request %s: the server itself failed on it", self.request_id.decode("latin-1"))
        if self.state == RUNNING:
            # More of its stream would follow the answer below.
            self.model.engine.cancel(self)
        transport = self.connection.transport
        if transport is None or transport.is_closing():
            return
        self.keep_alive = False
        try:
            # A stream that has begun cannot become a 500: only a cut connection tells the client.
            if self.started and not self.written:
                transport.abort()
                return
            if not self.written:
                self.written = True
                self.model.metrics.requests[self.route.name, BLUNDER.status] += 1
                transport.write(self.whole_answer(BLUNDER))
            # Also where the answer was written and what failed came after it: the queue must not wait for this request.
            self.connection.answers.finished(self)
        except Exception:
            log.exception("request %s: its connection ends", self.request_id.decode("latin-1"))
            transport.abort()

    def whole_answer(self, fault: Fault) -> bytes:
        """The answer to a request that never became a call; the connection closes after it."""
        answer = self.model.error_answer(self.route, fault, self.request_id)
        return answer_bytes(self.front, answer, fault, self.request_id, self.lines)

    def _script_failed(self, reply: wire.Reply) -> None:
        problem = json.loads(bytes(reply.body))
        extra = b""
        if problem["traceback"]:
            self._note(problem)
            if self.model.settings.dev:
                last = problem["traceback"].strip().rpartition("\n")[2]
                extra = b"x-panglot-error: " + header_text(last) + b"\r\n"
        fault = Fault(reply.status, problem["code"], problem["message"], details=problem.get("details"))
        answer = self.model.error_answer(self.route, fault, self.request_id)
        self._send(answer.status, answer.head, answer.body, reply.times, extra)

    def _note(self, problem: dict[str, Any]) -> None:
        """Report a failure of the script to the log and the page."""
        request_id = self.request_id.decode("latin-1")
        self.model.engine.trouble(request_id, problem["message"], problem["traceback"], self.worker)

    def _send(
        self,
        status: int,
        head: bytes,
        body: wire.Buffer,
        times: tuple[int, int, int, int, int],
        extra: bytes = b"",
    ) -> None:
        total = int((monotonic() - self.began) * 1e6)
        beginnings = self.front.beginnings
        # Decided once: draining may begin at any time, and the header must say what the connection then does.
        close = b"" if self.keep_alive and not self.front.draining else self._closing_line()
        lines = b"".join((
            beginnings.get((status, head)) or beginning(beginnings, status, head),
            b"content-length: %d\r\nx-request-id: %s\r\n" % (len(body), self.request_id),
            timing(self.queued_us, times, total, self.trail),
            self.front.date,
            self.lines,
            extra,
            close,
            b"\r\n",
        ))  # fmt: skip
        if status in BODILESS:
            if len(body):
                raise BadHead(f"an answer with status {status} has a body")
            # A script cannot set this header (`answer_head.OURS`), so the line that is found is the server's own.
            lines = lines.replace(b"content-length: 0\r\n", b"", 1)
        if close and self.connection.scheme == "http":
            peer.send_end_with_bytes(self.connection.transport.get_extra_info("socket"))
        if len(body) < JOIN_BELOW:
            self.connection.transport.write(lines + body)
        else:
            self._send_large(lines, body)
        self._done(status, times, total)

    def _send_large(self, lines: bytes, body: wire.Buffer) -> None:
        transport = self.connection.transport
        if self.connection.scheme == "http":
            # Not joined: that would copy a large body.
            transport.writelines((lines, body))
            return
        # Encrypted at once, it would be in a buffer below TLS, which does not tell how much of it is unsent.
        transport.write(lines)
        view = memoryview(body)
        for start in range(0, len(view), TLS_PIECE):
            transport.write(view[start : start + TLS_PIECE])

    def _closing_line(self) -> bytes:
        """Close the connection after this answer, and say so."""
        self.keep_alive = False
        return b"connection: close\r\n"

    def _done(self, status: int, times: tuple[int, int, int, int, int], total: int) -> None:
        front, route, model, metrics = self.front, self.route, self.model.name, self.model.metrics
        # Before the observers: where one of them raises, `blunder` must not write a second answer.
        self.written = True
        metrics.requests[route.name, status] += 1
        metrics.latency[route.name].add(total)
        front.recent.append((time.time(), self.request_id, route.name, status, total, self.queued_us, times, model))
        for observe in front.observers:
            observe(self, status, times, total)
        self.connection.answers.finished(self)

    # Streamed answers

    def _stream(self, reply: wire.Reply) -> None:
        transport = self.connection.transport
        if transport.is_closing():
            # After an abort chunks still come, until the loop calls `connection_lost` in a later turn.
            return
        if not self.started:
            self._open_stream(reply)
        if reply.flags & wire.ERROR:
            problem = json.loads(bytes(reply.body))
            if problem["traceback"]:
                self._note(problem)
            self._break_off(Fault(500, problem["code"], problem["message"], details=problem.get("details")))
            return
        if reply.status >= 400:
            # The dialect has worded the failure itself, and its worker has told the log: the text is no part of the
            # answer that has begun.
            self._break_off(WORDED._replace(status=reply.status))
            return
        if len(reply.body):
            if transport.get_write_buffer_size() > STREAM_BACKLOG:
                # Its worker serves other requests too and cannot wait: the client reads too slowly.
                self.model.metrics.refused["stream_backlog"] += 1
                transport.abort()
                return
            transport.write(self._chunk(reply.body))
        if not reply.flags & wire.MORE:
            if self.minor:
                transport.write(b"0\r\n\r\n")
            self._done(200, reply.times, int((monotonic() - self.began) * 1e6))

    def end_stream(self) -> None:
        """Complete a stream without its script: nothing more is coming."""
        if self.started and self.connection.transport is not None and not self.connection.transport.is_closing():
            # First, so that no chunk of the script follows the final one.
            self.model.engine.cancel(self)
            if self.minor:
                self.connection.transport.write(b"0\r\n\r\n")
            self.keep_alive = False
            self._done(200, wire.NO_TIMES, int((monotonic() - self.began) * 1e6))

    def _open_stream(self, reply: wire.Reply) -> None:
        if not self.minor:
            self.keep_alive = False
        elif self.tells_error:
            self.error_form = stream_errors.form_of(reply.head)
        lines = (
            beginning(self.front.beginnings, 200, reply.head),
            b"cache-control: no-store\r\nx-request-id: %s\r\n" % self.request_id,
            timing(self.queued_us, reply.times, int((monotonic() - self.began) * 1e6), self.trail),
            self.front.date,
            self.lines,
            stream_errors.APPLIED if self.error_form else b"",
            b"transfer-encoding: chunked\r\n" if self.minor else b"",
            b"" if self.keep_alive and not self.front.draining else self._closing_line(),
            b"\r\n",
        )
        self.connection.transport.write(b"".join(lines))
        # Not earlier: until here a bad head can still be answered with a 500.
        self.started = True

    def _chunk(self, body: wire.Buffer) -> bytes:
        return b"".join((b"%x\r\n" % len(body), body, b"\r\n")) if self.minor else bytes(body)

    def _break_off(self, fault: Fault) -> None:
        """End a stream that cannot be completed, and its connection, without the final chunk: so the client notices.

        To a client that wants to be told, it is complete with the fault as its last part.
        """
        transport = self.connection.transport
        if self.state == RUNNING:
            # The script may send more, which must not get into the next answer on this connection.
            self.model.engine.cancel(self)
        if self.error_form:
            part = stream_errors.error_part(self.error_form, fault, self.request_id)
            transport.write(self._chunk(part) + b"0\r\n\r\n")
        else:
            self.keep_alive = False
            if not self.minor:
                # HTTP/1.0 has no final chunk: only an aborted connection tells the client that the answer is cut.
                transport.abort()
        self._done(fault.status, wire.NO_TIMES, int((monotonic() - self.began) * 1e6))


def answer_bytes(
    front: Front, answer: ErrorAnswer, fault: Fault, request_id: bytes, header_lines: bytes = b""
) -> bytes:
    """The whole answer to a request that never became a call; the connection closes after it."""
    retry = b"retry-after: %d\r\n" % fault.retry_after if fault.retry_after else b""
    challenge = b"www-authenticate: Bearer\r\n" if fault.status == 401 else b""
    lines = (
        beginning(front.beginnings, answer.status, answer.head),
        b"content-length: %d\r\nx-request-id: %s\r\nserver-timing: total;dur=0\r\n" % (len(answer.body), request_id),
        front.date,
        header_lines,
        retry,
        challenge,
        b"connection: close\r\n\r\n",
        answer.body,
    )
    return b"".join(lines)


def refusal_without_route(front: Front, head: RequestHead, fault: Fault) -> bytes:
    """The whole answer to a request that was refused before its route was known."""
    front.metrics.requests["other", fault.status] += 1
    request_id = head.request_id(front, front.paths.id_header)
    write_error = v2_error if head.url.startswith(b"/v2") else neutral_error
    return answer_bytes(front, write_error(fault, request_id.decode("latin-1")), fault, request_id)
