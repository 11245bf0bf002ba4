"""What becomes of the calls of a dead worker. This module only decides; the pool acts on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from panglot.engine.call import RUNNING, Call, Fault

CRASHED = Fault(500, "worker_died", "the script's process died on this request; the server's log says how")
BROKEN = Fault(500, "bad_reply", "the script's process gave an answer that cannot be read; the server's log says more")
LOST_PLACEMENT = Fault(503, "place_lost", "the machine that ran this request was lost; try again", 1)
READ_SLOWLY = Fault(503, "slow_reader", "this answer was read too slowly while other requests waited for its worker")
LOST_FRONT = Fault(503, "place_lost", "the process that ran this request was lost twice; try again", 1)
RETRY_PLACEMENT = 5
"""Seconds after which a client may ask again, when no machine can be had for a worker."""
MOVES = 3
"""How often a call goes on elsewhere when the machine that ran it is lost."""
OVERRAN = Fault(504, "timeout", "the script did not answer in time")


def back_off(seconds: float) -> Fault:
    """The fault of a call during back-off: workers keep dying, and no call is to blame."""
    return Fault(503, "back_off", "the script keeps failing and is being restarted", max(1, math.ceil(seconds)))


def no_placement(outage: str) -> Fault:
    """The fault of a call that waited to its deadline while no machine could be had."""
    return Fault(503, "no_place", f"there is no worker to run this: {outage}", RETRY_PLACEMENT)


@dataclass(frozen=True)
class Fates:
    """Calls in `again` return to the head of the queue, in order. Calls in `guilty` get a fault. `suspected` counts
    the calls that run again because they may have killed the worker."""

    again: list[Call]
    guilty: list[Call]
    suspected: int


def judge(lost: Sequence[Call], suspects: int, rerun: bool) -> Fates:
    """Sort the calls of a dead worker, given in the order it got them.

    The first `suspects` of them were running. Each of these runs once more, alone. A call that was suspected before
    gets a fault, and so does a stream that has begun: it cannot begin again. The rest had not started, and lose
    nothing.
    """
    again: list[Call] = []
    guilty: list[Call] = []
    suspected = 0
    for position, call in enumerate(lost):
        # Nobody waits for this call, but it counts as a position: perhaps the worker was running it.
        if call.state != RUNNING:
            continue
        if call.chunks:
            guilty.append(call)
        elif position >= suspects:
            again.append(call)
        elif call.killers or not rerun:
            guilty.append(call)
        else:
            call.killers += 1
            call.alone = True
            suspected += 1
            again.append(call)
    return Fates(again, guilty, suspected)


def move(lost: Sequence[Call], running: int, rerun: bool) -> Fates:
    """Sort the calls of a worker that was lost with its machine, the first `running` of which had begun.

    Nobody is suspected: they run again as they were, a few times at most. A stream that has begun cannot.
    """
    again: list[Call] = []
    guilty: list[Call] = []
    for position, call in enumerate(lost):
        if call.state != RUNNING:
            continue
        begun = position < running
        if call.chunks or (begun and (not rerun or call.moves >= MOVES)):
            guilty.append(call)
        else:
            # Only a call that had begun uses one of its moves. The others have lost nothing.
            call.moves += begun
            again.append(call)
    return Fates(again, guilty, 0)


def come_home(lost: Sequence[Call], rerun: bool) -> Fates:
    """Sort the calls that were lost with the front that ran them.

    Each runs once more, unless a worker of that front had died of it before: no script sees a call a third time.
    """
    again: list[Call] = []
    guilty: list[Call] = []
    for call in lost:
        if call.state != RUNNING:
            continue
        if call.chunks or call.killers or not rerun:
            guilty.append(call)
        else:
            call.killers += 1
            again.append(call)
    return Fates(again, guilty, 0)
