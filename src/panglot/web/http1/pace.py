"""The limits on time of a connection. The server looks at all of them now and then; nothing is armed per request."""

from __future__ import annotations

from panglot.engine.call import Fault
from panglot.web.http1.answering import BODY, CLOSING, HEADERS, IDLE
from panglot.web.http1.connection import HttpConnection
from panglot.web.limits.stall import drop_if_stalled

LINGER = 1.0
"""Seconds that a connection which is done reads on, so that its last answer arrives."""


def sweep(connection: HttpConnection, now: float) -> None:
    """Close or refuse a connection that takes too long in its present phase."""
    if connection.transport is None:
        return
    connection.drop_if_gone()
    if connection.flow.write_paused:
        connection.owe(connection.transport.get_write_buffer_size())
    drop_if_stalled(connection, now)
    if connection.flow.read_paused:
        # We do not read: that nothing arrives is not the client's fault.
        connection.since = connection.last_data = now
    waited, limits = now - connection.since, connection.limits
    if connection.phase == IDLE:
        if waited > limits.keep_alive:
            connection.transport.close()
    elif connection.phase == HEADERS:
        if waited > limits.header_timeout:
            _late_head(connection)
    elif connection.phase == BODY:
        _check_body(connection, now, waited)
    elif connection.phase == CLOSING and connection.current is None:
        _finish(connection, now, waited)


def _late_head(connection: HttpConnection) -> None:
    if connection.begun:
        connection.refuse(Fault(408, "slow_headers", "the request's headers took too long"), "header_timeout")
    else:
        connection.front.metrics.refused["header_timeout"] += 1
        connection.transport.close()


def _check_body(connection: HttpConnection, now: float, waited: float) -> None:
    limits = connection.limits
    too_slow = waited > limits.body_rate_after and connection.body_bytes < limits.body_rate * waited
    if now - connection.last_data > limits.body_gap or waited > limits.body_timeout or too_slow:
        connection.refuse(Fault(408, "slow_body", "the request's body took too long"), "body_timeout")


def _finish(connection: HttpConnection, now: float, waited: float) -> None:
    """Close a connection once its last answer is written and unread input has had its moment."""
    transport = connection.transport
    if transport.get_write_buffer_size():
        connection.since = now
    elif waited > LINGER and transport.can_write_eof():
        transport.abort()
    elif waited > LINGER:
        transport.close()
