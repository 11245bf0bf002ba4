"""The limits on time of a connection. The server looks at all of them now and then; nothing is armed per request."""

from __future__ import annotations

from panglot.engine.call import Fault
from panglot.web.http1.connection import HttpConnection
from panglot.web.http1.phases import BODY, CLOSING, HEADERS, IDLE
from panglot.web.limits.stall import drop_if_stalled

LINGER, LONGEST_LINGER = 2.0, 10.0
"""Seconds without data, and in all, that a connection reads on after its last answer, so that the answer arrives.

A refused client goes on to send until it looks for an answer: closing before that would destroy the answer.
"""


def sweep(connection: HttpConnection, now: float) -> None:
    """Close or refuse a connection that takes too long in its present phase."""
    if connection.transport is None:
        return
    reader = connection.reader
    connection.drop_if_gone()
    if connection.flow.write_paused:
        # The buffer shrinks as the client reads, and no callback tells so before writing resumes.
        connection.count_unsent(connection.transport.get_write_buffer_size())
    drop_if_stalled(connection, now)
    if connection.flow.read_paused:
        # The server does not read: it is not the client's fault that nothing arrives.
        reader.since = reader.last_data = now
    waited, limits = now - reader.since, connection.limits
    if reader.phase == IDLE:
        if waited > limits.keep_alive:
            connection.transport.close()
    elif reader.phase == HEADERS:
        if waited > limits.header_timeout:
            _late_head(connection)
    elif reader.phase == BODY:
        _check_body(connection, now, waited)
    elif reader.phase == CLOSING and connection.answers.current is None:
        # While an earlier answer is still being made, the moment of lingering has not begun.
        _finish(connection, now, waited)


def _late_head(connection: HttpConnection) -> None:
    if connection.reader.begun:
        connection.reader.refuse(Fault(408, "slow_headers", "the request's headers took too long"), "header_timeout")
    else:
        connection.front.metrics.refused["header_timeout"] += 1
        connection.transport.close()


def _check_body(connection: HttpConnection, now: float, waited: float) -> None:
    limits, reader = connection.limits, connection.reader
    too_slow = waited > limits.body_rate_after and reader.body_bytes < limits.body_rate * waited
    if now - reader.last_data > limits.body_gap or waited > limits.body_timeout or too_slow:
        reader.refuse(Fault(408, "slow_body", "the request's body took too long"), "body_timeout")


def _finish(connection: HttpConnection, now: float, waited: float) -> None:
    """Close a connection once its last answer is written and unread input has had its moment."""
    transport = connection.transport
    if transport.get_write_buffer_size():
        # The linger begins when the transport has passed on the last byte, not when the answer was written.
        connection.reader.since = now
    elif waited <= LINGER or (now - connection.reader.last_data <= LINGER and waited <= LONGEST_LINGER):
        return
    elif transport.can_write_eof():
        # The half-close has gone out when the linger began. Only TLS still has a goodbye to send.
        transport.abort()
    else:
        transport.close()
