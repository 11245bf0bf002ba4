"""Requests whose body names their model: it is read when it has come whole, before the call is submitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from panglot.engine.call import Fault
from panglot.web.front import Front
from panglot.web.http1.exchange import NO_MEMORY, Exchange
from panglot.web.json_fields import SMALL, read_fields
from panglot.web.paths import Destination
from panglot_worker.line import wire


def find_model(front: Front, exchange: Exchange, then: Callable[[Fault | None], None]) -> None:
    """Have an exchange be for the model that its body names, and call `then`, with a fault where there is none.

    A large body is read on a thread, which owns a buffer of its own: the client may disconnect meanwhile, and the
    exchange then releases the one it has.
    """
    names, depth = exchange.route.fields, exchange.model.settings.max_json_depth
    pieces = exchange.body()
    if exchange.size <= SMALL:
        then(_direct(front, exchange, read_fields(_joined(pieces), names, depth)))
        return
    buffer = exchange.buffer.share() if exchange.buffer is not None else None
    loop = asyncio.get_running_loop()
    reading = loop.run_in_executor(None, lambda: read_fields(_joined(pieces), names, depth))

    def go_on(done: asyncio.Future[dict[str, object]]) -> None:
        if buffer is not None:
            buffer.release()
        # The client may have disconnected meanwhile: then the exchange has released its body and must not be moved.
        then(None if exchange.connection.answers.current is not exchange else _direct(front, exchange, done.result()))

    reading.add_done_callback(go_on)


def _joined(pieces: Sequence[wire.Buffer]) -> wire.Buffer:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _direct(front: Front, exchange: Exchange, fields: dict[str, object]) -> Fault | None:
    """Give an exchange the destination that its fields say. The fault, where there is none or it has no memory left."""
    destination = front.paths.named(exchange.route, fields)
    if isinstance(destination, Fault):
        return destination
    if exchange.holder is not None:
        # Its rights and its path were looked at with the head.
        fault = exchange.holder.forbids_model(destination.model.name)
        if fault is not None:
            return fault
    return None if destination.model is exchange.model else _move(exchange, destination)


def _move(exchange: Exchange, destination: Destination) -> Fault | None:
    """Have another model answer: with its own quota, timeout, shared memory, and route of its worker."""
    former, model = exchange.model, destination.model
    # Workers of the other model have not mapped this model's memory.
    exchange.copy_out()
    exchange.model, exchange.route, exchange.lane = model, destination.route, destination.route.lane
    if not exchange.recount(model.quota):
        return NO_MEMORY
    size = exchange.size
    buffer = model.engine.buffer(size) if size >= model.settings.share_from > 0 else None
    if buffer is not None:
        exchange.copy_in(buffer)
    request_id, _, rest = exchange.head.split(b"\0", 2)
    exchange.head = b"\0".join((request_id, destination.worker_route, rest))
    # A deadline that the client did not shorten follows the new model's timeout; a shorter one stays the client's.
    whole = exchange.deadline >= exchange.arrived + former.settings.timeout
    latest = exchange.arrived + model.settings.timeout
    exchange.deadline = latest if whole else min(exchange.deadline, latest)
    return None
