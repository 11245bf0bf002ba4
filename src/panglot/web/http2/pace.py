"""The limits on time of a connection. The server looks at all of them now and then; nothing is armed per call."""

from __future__ import annotations

from panglot.web.grpc.statuses import DEADLINE_EXCEEDED, Refusal
from panglot.web.http2 import frames
from panglot.web.http2.connection import Http2Connection
from panglot.web.http2.stream import CallStream
from panglot.web.limits.stall import drop_if_stalled

ALIVE = b"are you?"
"""The payload of the PING that asks a silent client whether it is there."""
LINGER = 1.0
"""Seconds that a closing connection reads on, so that its last frames arrive."""
IDLE = 300.0
"""Seconds after which a connection without calls is closed; clients of gRPC make another when they need it."""
SLOW_BODY = Refusal(DEADLINE_EXCEEDED, "the message took too long")


def sweep(connection: Http2Connection, now: float) -> None:
    """End a connection, or calls of it, that take too long."""
    if connection.transport is None:
        return
    connection.calls.now = now
    if connection.closing:
        _finish(connection, now)
        return
    connection.note_unsent()
    drop_if_stalled(connection, now)
    _check_head(connection, now)
    if connection.stopping_since and now - connection.stopping_since > LINGER:
        connection.refuse_new_calls()
    # A list of its own, because refusing a call removes it.
    for stream in list(connection.calls.streams.values()):
        _check_call(connection, stream, now)
    if not connection.calls.streams:
        _check_idle(connection, now)
    _check_silence(connection, now)


def _finish(connection: Http2Connection, now: float) -> None:
    """Close a connection once its last frames are written and unread input has had its moment."""
    if connection.transport.get_write_buffer_size() and now - connection.since < connection.limits.write_stall:
        return
    if now - connection.since > LINGER:
        connection.transport.abort()


def _check_head(connection: Http2Connection, now: float) -> None:
    """Close on a client that takes too long for its first frames, or for the rest of a frame."""
    reader = connection.reader
    if (reader.is_within or not reader.settled) and now - connection.since > connection.limits.header_timeout:
        connection.front.metrics.refused["header_timeout"] += 1
        if reader.settled:
            connection.close(frames.ENHANCE_YOUR_CALM, "a frame took too long")
        else:
            # Before its SETTINGS the client may not speak HTTP/2 at all: a GOAWAY would tell it nothing.
            connection.transport.abort()


def _check_call(connection: Http2Connection, stream: CallStream, now: float) -> None:
    limits = connection.limits
    # The server waits for the client to read, which has a limit of its own.
    if stream.pending:
        if now - stream.last_sent > limits.write_stall:
            connection.front.metrics.refused["write_stall"] += 1
            connection.calls.reset(stream, frames.CANCEL)
        return
    if stream.bidi is not None and stream.inbox.has_more:
        # We let the client send no more: that nothing comes is not its fault.
        stream.since = stream.last = now
        return
    awaited = stream.inbox.is_within or (stream.bidi is None and not stream.ended)
    waited = now - stream.since
    too_slow = waited > limits.body_rate_after and stream.inbox.arrived < limits.body_rate * waited
    if awaited and (now - stream.last > limits.body_gap or waited > limits.body_timeout or too_slow):
        connection.front.metrics.refused["body_timeout"] += 1
        connection.calls.refuse(stream, SLOW_BODY.code, SLOW_BODY.message)


def _check_idle(connection: Http2Connection, now: float) -> None:
    if connection.reader.settled and now - connection.calls.idle_since > max(IDLE, connection.limits.keep_alive):
        connection.close(frames.NO_ERROR, "idle")


def _check_silence(connection: Http2Connection, now: float) -> None:
    """Ask a client that has been silent for long whether it is there, and close when it does not answer."""
    silent = now - connection.last_data
    if silent <= connection.limits.peer_timeout:
        connection.pinged = False
    elif not connection.pinged:
        connection.pinged = True
        connection.outflow.write(frames.frame(frames.PING, 0, 0, ALIVE))
    elif silent > 2 * connection.limits.peer_timeout:
        connection.front.metrics.refused["silent"] += 1
        connection.transport.abort()
