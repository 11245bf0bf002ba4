"""What each frame of a client does: to its calls, to the windows, to the connection."""

from __future__ import annotations

from collections.abc import Callable

from panglot.web.http2 import frames
from panglot.web.http2.budget import SMALL_DATA, Budget, cost_of_headers
from panglot.web.http2.calls import Calls
from panglot.web.http2.frame_reader import LARGEST_FRAME
from panglot.web.http2.frames import (
    END_STREAM,
    ENHANCE_YOUR_CALM,
    EVERY_STREAM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    LARGEST_WINDOW,
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    ConnectionBroken,
    StreamBroken,
    frame,
)
from panglot.web.http2.headers.call_head import CallHeads
from panglot.web.http2.outflow import LARGEST, Outflow
from panglot.web.http2.stream import WINDOW, CallStream
from panglot_worker.line import wire

MOST_STREAMS = 1024
"""Calls at once on one connection."""
DRAINING = b"draining"
"""The payload of the PING that follows the news that the server stops: its echo tells that the client knows."""
CONNECTION_WINDOW = 1 << 24
"""Bytes that a client may send before we have read any of them."""
MOST_SETTINGS = 32
OURS = b"".join((
    frames.entry(frames.MAX_STREAMS, MOST_STREAMS), frames.entry(frames.INITIAL_WINDOW, WINDOW),
    frames.entry(frames.MAX_FRAME, LARGEST_FRAME),
))  # fmt: skip


class FrameActions:
    """Acts on the frames of one client. Raises ConnectionBroken where the client may not send them.

    `when_drained` is called once the client has seen that the server stops: then no further calls are on their way.
    """

    def __init__(
        self, calls: Calls, outflow: Outflow, budget: Budget, most_headers: int, when_drained: Callable[[], None]
    ) -> None:
        self.calls = calls
        self.outflow = outflow
        self.budget = budget
        self.most_headers = most_headers
        self.when_drained = when_drained
        self.heads = CallHeads(most_headers)
        self.credit = frames.FIRST_WINDOW
        """Bytes that the client may send on the connection."""
        self.owed = 0
        """Bytes that it has sent, and that no WINDOW_UPDATE has given back to it yet."""
        self.last = 0
        """The newest stream."""
        self.last_accepted = EVERY_STREAM
        """Streams beyond this one are refused."""

    def refuse_new(self) -> None:
        """Accept no further call, and tell the client which was the last."""
        self.last_accepted = self.last
        self.outflow.write(frames.go_away(self.last, NO_ERROR, "the server stops"))

    def greet(self) -> None:
        """Answer the preface with the settings of this server."""
        # SETTINGS cannot change the window of the connection, only those of its streams (RFC 9113, 6.9.2).
        window = frames.window_update(0, CONNECTION_WINDOW - self.credit)
        self.credit = CONNECTION_WINDOW
        most = frames.entry(frames.MAX_HEADERS, self.most_headers)
        self.outflow.write(frame(frames.SETTINGS, 0, 0, OURS + most) + window)

    def headers(self, stream: int, flags: int, block: bytes) -> None:
        """Begin a call, or take the trailers of one."""
        ended = bool(flags & END_STREAM)
        present = self.calls.streams.get(stream)
        try:
            if present is not None:
                self.budget.spend(1 + cost_of_headers(block))
                # Decoded before anything is refused: every block may change the table that later ones refer to.
                self.heads.trailers(block)
                self._trailers(present, ended)
            elif not stream & 1:
                raise ConnectionBroken(PROTOCOL_ERROR, "the number of a stream is even")
            elif stream <= self.last:
                self._late_headers(stream, block, ended)
            else:
                self._open(stream, block, ended)
        except StreamBroken as broken:
            self._break(stream, broken.code)

    def _open(self, stream: int, block: bytes, ended: bool) -> None:
        # Even if the call is refused: lower numbers cannot begin any more (RFC 9113, 5.1.1).
        self.last = stream
        cost = cost_of_headers(block)
        # Read even for a call that is refused, so that the table stays the same on both sides.
        head = self.heads.read(block)
        if len(self.calls.streams) >= MOST_STREAMS or stream > self.last_accepted:
            self.budget.spend(cost)
            # This code tells the client that the call did not run: it may make the call again.
            raise StreamBroken(REFUSED_STREAM, "too many calls at once, or the server stops")
        self.calls.open(stream, head, ended, cost)

    def _trailers(self, stream: CallStream, ended: bool) -> None:
        if stream.ended:
            raise StreamBroken(STREAM_CLOSED, "headers after the end of a stream")
        if not ended:
            raise StreamBroken(PROTOCOL_ERROR, "headers inside of a stream")
        self.calls.ended(stream)

    def _late_headers(self, stream: int, block: bytes, ended: bool) -> None:
        """Headers on a stream that is over: trailers of a call that we have ended, or wrong."""
        self.budget.spend(1 + cost_of_headers(block))
        self.heads.skip(block)
        if stream not in self.calls.ended_early:
            raise ConnectionBroken(STREAM_CLOSED, "headers on a stream that is closed")
        if ended:
            self.calls.forget_ended(stream)

    def _break(self, stream: int, code: int) -> None:
        """End a stream with an error; too many of these end the connection."""
        self.budget.spend()
        present = self.calls.streams.get(stream)
        if present is not None:
            self.calls.reset(present, code)
        else:
            self.outflow.write(frames.reset(stream, code))
            self.calls.remember_ended(stream)

    def data_begins(self, stream: int, flags: int, length: int) -> CallStream | None:
        """Count a frame of data against both windows; returns the stream that takes it, if one does."""
        # Data counts against the connection's window also on a stream that is over (RFC 9113, 5.1).
        self.credit -= length
        if self.credit < 0:
            raise ConnectionBroken(FLOW_CONTROL_ERROR, "more data than the connection's window")
        self.owed += length
        # Given back as data comes, not as calls take it: one slow call must not stop the others. Its own window does
        # stop it.
        if self.owed >= CONNECTION_WINDOW // 4:
            self.outflow.write(frames.window_update(0, self.owed))
            self.credit += self.owed
            self.owed = 0
        if length < SMALL_DATA and not flags & END_STREAM:
            self.budget.spend()
        present = self.calls.streams.get(stream)
        if present is None:
            self._check_idle(stream)
            if stream not in self.calls.ended_early:
                raise ConnectionBroken(STREAM_CLOSED, "data on a stream that is closed")
            if flags & END_STREAM:
                self.calls.forget_ended(stream)
            return None
        present.credit -= length
        present.owed += length
        # After END_STREAM the client may send nothing more on this stream.
        if present.ended or present.credit < 0:
            self._break(stream, STREAM_CLOSED if present.ended else FLOW_CONTROL_ERROR)
            return None
        return present

    def data(self, stream: CallStream, data: wire.Buffer) -> None:
        """Take some data of a frame; we may have ended its call while the frame came."""
        if stream.is_open:
            self.calls.feed(stream, data)

    def data_ends(self, stream: CallStream, flags: int) -> None:
        """Act on the end of a frame of data; we may have ended its call while the frame came."""
        if not flags & END_STREAM:
            self.calls.open_window(stream)
        elif stream.is_open:
            self.calls.ended(stream)
        else:
            # We have ended this call, and now the client has too: from here on a frame on it is an error.
            self.calls.forget_ended(stream.number)

    def _check_idle(self, stream: int) -> None:
        if not stream or not stream & 1 or stream > self.last:
            raise ConnectionBroken(PROTOCOL_ERROR, "a frame on a stream that has not begun")

    def control(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Act on a frame that is neither headers nor data."""
        if kind == frames.WINDOW_UPDATE:
            self._window_update(stream, payload)
        elif kind == frames.PING:
            self._of_connection(stream, len(payload) == 8)
            self._ping(flags, payload)
        elif kind == frames.RST_STREAM:
            self._of_stream(stream, len(payload) == 4)
            self._reset(stream)
        elif kind == frames.SETTINGS:
            self._of_connection(stream, len(payload) % 6 == 0 and not (flags & frames.ACK and payload))
            self._settings(flags, payload)
        elif kind == frames.GOAWAY:
            # Nothing else to do: the client makes no more calls, and those that are open are answered.
            self._of_connection(stream, len(payload) >= 8)
        elif kind == frames.PUSH_PROMISE:
            raise ConnectionBroken(PROTOCOL_ERROR, "clients do not push")
        else:
            self._priority(stream, payload)

    def _of_connection(self, stream: int, fits: bool) -> None:
        if stream:
            raise ConnectionBroken(PROTOCOL_ERROR, "a frame of the connection names a stream")
        if not fits:
            raise ConnectionBroken(FRAME_SIZE_ERROR, "a frame has a wrong size")

    def _of_stream(self, stream: int, fits: bool) -> None:
        if not fits:
            raise ConnectionBroken(FRAME_SIZE_ERROR, "a frame has a wrong size")
        self._check_idle(stream)

    def _window_update(self, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionBroken(FRAME_SIZE_ERROR, "a WINDOW_UPDATE has a wrong size")
        # The highest bit is reserved, and ignored.
        more = int.from_bytes(payload, "big") & LARGEST_WINDOW
        if stream:
            self._check_idle(stream)
            present = self.calls.streams.get(stream)
            # No error for a stream that is over: the frame may have crossed our end of it on the way.
            if present is not None and (not more or not self.outflow.open(present, more)):
                self._break(stream, FLOW_CONTROL_ERROR if more else PROTOCOL_ERROR)
        elif not more:
            raise ConnectionBroken(PROTOCOL_ERROR, "a window of a connection grows by nothing")
        else:
            self.outflow.widen(more)
        # The answers that calls wait behind may have been sent just now.
        if self.calls.deferred:
            self.calls.run_deferred_soon()

    def _ping(self, flags: int, payload: bytes) -> None:
        if not flags & frames.ACK:
            self.outflow.write(frame(frames.PING, frames.ACK, 0, payload))
        elif payload == DRAINING:
            self.when_drained()

    def _reset(self, stream: int) -> None:
        present = self.calls.streams.get(stream)
        if present is not None:
            # Besides this frame, the headers are paid for: opening and resetting calls (Rapid Reset) must not be cheap.
            self.budget.spend(present.cost)
            self.calls.close(present)

    def _settings(self, flags: int, payload: bytes) -> None:
        """Follow what the client sets."""
        if flags & frames.ACK:
            return
        if len(payload) > 6 * MOST_SETTINGS:
            raise ConnectionBroken(ENHANCE_YOUR_CALM, "too many settings at once")
        before = self.outflow.initial
        for identifier, value in frames.entries(payload):
            if identifier == frames.INITIAL_WINDOW:
                if value > LARGEST_WINDOW:
                    raise ConnectionBroken(FLOW_CONTROL_ERROR, "an initial window is too large")
                # Also shrinks windows that are in use. They may become negative (RFC 9113, 6.9.2).
                self.outflow.resize(value, self.calls.streams)
            elif identifier == frames.MAX_FRAME:
                if not frames.SMALLEST_FRAME <= value <= frames.LARGEST_FRAME:
                    raise ConnectionBroken(PROTOCOL_ERROR, "a largest frame is out of bounds")
                self.outflow.frame = min(value, LARGEST)
            elif identifier == frames.ENABLE_PUSH and value > 1:
                raise ConnectionBroken(PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1")
        # RFC 9113, 6.5.3: first the acknowledgement, then what the new windows allow. Until it has come, the client may
        # take data beyond the old ones for a fault.
        self.outflow.write(frame(frames.SETTINGS, frames.ACK, 0))
        if self.outflow.initial > before:
            self.outflow.use_new_windows()

    def _priority(self, stream: int, payload: bytes) -> None:
        """Nothing depends on priorities, which RFC 9113 has given up."""
        if not stream:
            raise ConnectionBroken(PROTOCOL_ERROR, "a priority of no stream")
        if len(payload) != 5:
            self._break(stream, FRAME_SIZE_ERROR)
