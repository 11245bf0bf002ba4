"""Pairs out of the bytes of one connection, as they pass. It only watches, within its memory, and never raises."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from panglot.recording.framing import (
    Framing,
    MessageHead,
    MessageReader,
    Piece,
    PieceKind,
    answer_framing,
    request_framing,
)
from panglot.recording.recording import Pair, RecordedAnswer, RecordedRequest
from panglot.recording.sink import PAIR_COST, PairSink

log = logging.getLogger("panglot.record")
HTTP2 = b"PRI * HTTP/2"
clock = time.monotonic


@dataclass
class _Body:
    """The bytes of a body that are held in memory."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    held: int = 0
    complete: bool = False
    too_long: bool = False

    def why(self, limit: int) -> str:
        if self.too_long:
            return f"longer than {limit} bytes"
        return "" if self.complete else "it did not come to its end"


@dataclass
class _Exchange:
    """A request whose answer has not ended. `recorded` is False if the exchange is only followed."""

    head: MessageHead
    began: float
    recorded: bool
    cost: int = 0
    """Bytes that are counted for heads and objects."""
    answer_head: MessageHead | None = None
    first_byte: float = 0.0
    ended: float = 0.0
    request: _Body = field(default_factory=_Body)
    answer: _Body = field(default_factory=_Body)

    @property
    def held(self) -> int:
        return self.cost + self.request.held + self.answer.held


class ConnectionTap:
    """Follows both directions of one connection. All calls come from one thread.

    A fault in here ends the recording of this connection: its memory is released, and its bytes pass on.
    """

    def __init__(self, recorder: PairSink) -> None:
        self._recorder = recorder
        self._requests = MessageReader(True, request_framing)
        self._answers = MessageReader(False, self._answer_framing)
        self._open: deque[_Exchange] = deque()
        """Exchanges whose answer has not ended, the oldest first."""
        self._reading: _Exchange | None = None
        """The exchange whose request has not ended."""
        self._begun = 0.0
        self._interim = False

    @property
    def idle(self) -> bool:
        """Whether no exchange is under way. Never true once answers cannot be told apart."""
        return not self._open and self._requests.between and not self._answers.opaque

    # Requests

    def request(self, data: bytes) -> Iterator[Piece]:
        """The pieces of the bytes that a client has sent. Their raw bytes are to be passed on."""
        if self._requests.between:
            self._begun = clock()
        for piece in self._requests.feed(data):
            self._guarded(self._note_request, piece)
            yield piece

    def request_ended(self) -> Iterator[Piece]:
        """The client sends no more: bytes that were held back."""
        for piece in self._requests.finish():
            self._guarded(self._note_request, piece)
            yield piece

    def _note_request(self, piece: Piece) -> None:
        if piece.kind is PieceKind.HEAD and piece.head is not None:
            self._begin(piece.head, PAIR_COST + len(piece.raw))
        elif piece.kind is PieceKind.BODY and self._reading is not None:
            self._hold(self._reading, self._reading.request, piece.payload)
        elif piece.kind is PieceKind.END and self._reading is not None:
            exchange, self._reading = self._reading, None
            exchange.request.complete = True
            # The whole answer may have come before the end of the request.
            if exchange.ended:
                self._finish(exchange)
            self._begun = clock()
        elif piece.kind is PieceKind.OPAQUE:
            self._note_opaque(piece.raw)

    def _begin(self, head: MessageHead, cost: int) -> None:
        if self._answers.opaque:
            # No answer can be found for it, so each exchange would stay in memory.
            return
        recorder = self._recorder
        recorded = recorder.recording
        if recorded and not recorder.sampler.wants(head.first[1], head.headers, self._begun, head.first[0]):
            recorder.skipped += 1
            recorded = False
        if recorded and not recorder.take(cost):
            recorder.dropped += 1
            recorded = False
        # Also if it is not recorded: answers are matched with requests by their order alone.
        self._reading = _Exchange(head, self._begun, recorded, cost)
        self._open.append(self._reading)

    def _note_opaque(self, raw: bytes) -> None:
        if not self._answers.opaque and not self._open:
            self._answers.opaque = True
            self._recorder.skipped += 1
            if raw.startswith(HTTP2):
                self._recorder.note_http2()

    # Answers

    def answer(self, data: bytes) -> None:
        """Note bytes that the service has sent."""
        if not self._answers.opaque:
            self._guarded(self._note_answers, data)

    def _note_answers(self, data: bytes) -> None:
        for piece in self._answers.feed(data):
            self._note_answer(piece)

    def _answer_framing(self, head: MessageHead) -> Framing:
        return answer_framing(head, self._open[0].head.first[0] if self._open else "")

    def _note_answer(self, piece: Piece) -> None:
        if piece.kind is PieceKind.OPAQUE:
            self._give_up()
            return
        if not self._open:
            return
        exchange = self._open[0]
        if piece.kind is PieceKind.HEAD and piece.head is not None:
            status = int(piece.head.first[0])
            self._interim = status < 200 and status != 101
            if not self._interim:
                exchange.answer_head, exchange.first_byte = piece.head, clock() - exchange.began
                self._count_head(exchange, len(piece.raw))
            if self._answers.opaque:
                # An upgrade: from here on neither direction is HTTP/1.
                self._requests.opaque = True
                self._give_up()
        elif piece.kind is PieceKind.BODY:
            self._hold(exchange, exchange.answer, piece.payload)
        elif piece.kind is PieceKind.END and not self._interim:
            self._open.popleft()
            exchange.answer.complete = True
            exchange.ended = clock()
            if exchange is not self._reading:
                self._finish(exchange)

    # Exchanges

    def _guarded(self, note: Callable[[Any], None], given: Any) -> None:
        try:
            note(given)
        except Exception:
            log.exception("an exchange could not be recorded; it passed")
            self._release_all()

    def _release_all(self) -> None:
        """Release the memory of every exchange, and record no more of this connection."""
        self._answers.opaque = True
        for exchange in (*self._open, *((self._reading,) if self._reading is not None else ())):
            self._forget(exchange)
        self._open.clear()
        self._reading = None

    def _count_head(self, exchange: _Exchange, size: int) -> None:
        if exchange.recorded and self._recorder.take(size):
            exchange.cost += size
        elif exchange.recorded:
            self._recorder.dropped += 1
            self._forget(exchange)

    def _hold(self, exchange: _Exchange, body: _Body, payload: bytes) -> None:
        body.size += len(payload)
        if not exchange.recorded or body.too_long or not payload:
            return
        recorder = self._recorder
        if body.held + len(payload) > recorder.options.max_body:
            recorder.release(body.held)
            body.too_long, body.held, body.pieces = True, 0, []
        elif recorder.take(len(payload)):
            body.pieces.append(payload)
            body.held += len(payload)
        else:
            recorder.dropped += 1
            self._forget(exchange)

    def _forget(self, exchange: _Exchange) -> None:
        """Give back the memory of an exchange, which is followed and no longer recorded."""
        if exchange.recorded:
            exchange.recorded = False
            self._recorder.release(exchange.held)
            exchange.request, exchange.answer = _Body(), _Body()

    def _give_up(self) -> None:
        """Stop the recording of this connection: its answers cannot be told apart any more."""
        self._recorder.skipped += max(1, len(self._open))
        self._release_all()

    def _finish(self, exchange: _Exchange, problem: str = "") -> None:
        if not exchange.recorded:
            return
        try:
            self._offer(exchange, problem)
        finally:
            # Releases nothing if the recorder has taken the pair, and its memory with it.
            self._forget(exchange)

    def _offer(self, exchange: _Exchange, problem: str) -> None:
        recorder, limit = self._recorder, self._recorder.options.max_body
        head, answer_head = exchange.head, exchange.answer_head
        status, reason = (int(answer_head.first[0]), answer_head.first[1]) if answer_head is not None else (0, "")
        ended = exchange.ended or clock()
        if not recorder.recording or not recorder.sampler.wants_answer(status, bool(problem), ended):
            recorder.skipped += 1
            return
        request, answer = exchange.request, exchange.answer
        recorder.offer(
            Pair(
                RecordedRequest(
                    head.headers, [], request.size, request.why(limit), b"".join(request.pieces), *head.first
                ),
                RecordedAnswer(
                    answer_head.headers if answer_head is not None else [], [], answer.size, answer.why(limit),
                    b"".join(answer.pieces), status, reason,
                ),
                at=exchange.began - recorder.began,
                first_byte=exchange.first_byte,
                took=ended - exchange.began,
                problem=problem,
            ),
            exchange.held,
        )  # fmt: skip
        exchange.recorded = False

    def closed(self, problem: str) -> None:
        """The connection has ended. `problem` tells why exchanges that are under way have no whole answer."""
        self._guarded(self._note_closed, problem)

    def _note_closed(self, problem: str) -> None:
        for piece in self._answers.finish() if not self._answers.opaque else ():
            self._note_answer(piece)
        if self._reading is not None and self._reading.ended:
            # Its answer ended before its request, so it is in `_open` no more.
            self._finish(self._reading)
        for exchange in self._open:
            self._finish(exchange, problem)
        self._open.clear()
        self._reading = None
